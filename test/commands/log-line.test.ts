import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { logLineText } from '../../src/commands/log-line.ts';
import { painter } from '../../src/commands/terminal.ts';
import { createLogger } from '../../src/lib/log.ts';
import { OUTCOMES } from '../../src/plans/outcome.ts';
import { CASES, seedOr } from '../cases.ts';

const plain = { paint: (text: string) => text, stacks: false };

/** The readable form of the lines logged by `write`, without the time. */
function shown(write: (log: ReturnType<typeof createLogger>) => void, options = plain): string {
  const lines = new PassThrough();
  write(createLogger('trace', lines));
  const text = logLineText(String(lines.read()), options);
  expect(text).toMatch(/^\d\d:\d\d:\d\d\.\d{3} /);
  return text.slice('hh:mm:ss.mmm '.length);
}

beforeAll(() => {
  process.env.TZ = 'UTC';
});

describe('a line of the log', () => {
  it('begins with the time of day, the level and what happened', () => {
    const line = { level: 'info', time: '2026-11-28T18:05:50.123Z', msg: 'stopped' };
    expect(logLineText(JSON.stringify(line), plain)).toBe('18:05:50.123 info  stopped');
  });

  it('names its run, then every field by its name', () => {
    const fields = { cause: 'idle_stall', run: 'run_1', attempt: 2, evidence: { kind: 'clock' }, why: 'a b' };
    expect(shown((log) => log.warn(fields, 'interrupted'))).toBe(
      'warn  interrupted run_1 cause=idle_stall attempt=2 evidence={"kind":"clock"} why="a b"',
    );
  });

  it('says what an error is, and its causes, and not where it was thrown', () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET' });
    const err = new Error('outer', { cause });
    expect(shown((log) => log.error({ err, run: 'run_1' }, 'relay failed'))).toBe(
      'error relay failed: Error: outer, caused by TypeError: inner (ECONNRESET) run_1',
    );
    expect(shown((log) => log.warn({ unreported: err }, 'salvage failed'))).toBe(
      'warn  salvage failed unreported="Error: outer, caused by TypeError: inner (ECONNRESET)"',
    );
    expect(shown((log) => log.error({ err: 'no error at all' }, 'odd'))).toBe(
      'error odd err="no error at all"',
    );
  });

  it('says where an error was thrown if it is to, still on one line', () => {
    const text = shown((log) => log.error(new Error('two\nlines')), { ...plain, stacks: true });
    expect(text).toMatch(/^error two\\u000alines: Error: two\\u000alines at .*log-line\.test\.ts:\d+:\d+/);
    expect(text).not.toContain('\n');
  });

  it('has its colours on a terminal', () => {
    const paint = painter(Object.assign(new PassThrough(), { isTTY: true }), {});
    expect(shownColours(paint)).toContain('\u001b[31merror\u001b[0m');
  });
});

const shownColours = (paint: ReturnType<typeof painter>): string =>
  logLineText(JSON.stringify({ level: 'error', time: '2026-11-28T18:05:50.123Z', msg: 'm' }), {
    paint,
    stacks: false,
  });

describe('the end of a run', () => {
  const ended = (fields: object) => shown((log) => log.info({ run: 'run_1', ...fields }, 'run ended'));
  const upstream = 'openai';
  const reset = { upstream, cause: 'connection_reset', phase: 'text', evidence: 'transport' };
  const lost = { ...reset, evidence: 'replica_lost' };
  const astray = { upstream, cause: 'provider_5xx', phase: 'text', evidence: 'seam_rejected', status: 502 };
  const busy = { upstream, cause: 'provider_5xx', phase: 'connect', evidence: 'status', status: 503 };
  const refused = { upstream, cause: 'unauthorised', phase: 'connect', evidence: 'status', status: 401 };
  const model = 'gpt-4o-mini';

  it.each([
    [
      { outcome: 'complete', model, characters: 812, attempts: 1, duration_ms: 2134 },
      '✔ run_1 gpt-4o-mini 812 chars 2.1s',
    ],
    [
      {
        ...{ outcome: 'recovered', model, characters: 350, attempts: 3, interruptions: [reset, busy] },
        ...{ duration_ms: 3712, gap_ms: 393 },
      },
      '✔ run_1 gpt-4o-mini rescued ×2 (reset, 503) 350 chars 3.7s, gap 393ms',
    ],
    [
      {
        ...{ outcome: 'recovered', model, characters: 5, attempts: 3, interruptions: [lost, astray] },
        ...{ duration_ms: 2, gap_ms: 1 },
      },
      '✔ run_1 gpt-4o-mini rescued ×2 (replica lost, no seam) 5 chars 2ms, gap 1ms',
    ],
    [
      { outcome: 'salvaged', model, characters: 60, attempts: 1, interruptions: [reset], duration_ms: 900 },
      '✔ run_1 gpt-4o-mini rescued (reset) 60 chars 900ms',
    ],
    [
      { outcome: 'rejected', model, characters: 0, attempts: 1, interruptions: [refused], duration_ms: 80 },
      '✖ run_1 gpt-4o-mini 401 from openai: key refused, 80ms',
    ],
    [
      {
        ...{ outcome: 'failed', model, characters: 12, attempts: 2, duration_ms: 31_000 },
        interruptions: [busy, { ...reset, phase: 'connect' }],
      },
      '✖ run_1 gpt-4o-mini no response from openai, 2 attempts, 12 chars 31.0s',
    ],
    [{ outcome: 'failed', duration_ms: 3 }, '✖ run_1 failed, 3ms'],
    [
      { outcome: 'cancelled', model, characters: 12, attempts: 1, duration_ms: 1000 },
      '– run_1 gpt-4o-mini cancelled 12 chars 1.0s',
    ],
    [{ outcome: 'superseded', model, duration_ms: 5 }, '→ run_1 gpt-4o-mini taken over elsewhere 5ms'],
    [{ outcome: 'handed_over', model, duration_ms: 5 }, '→ run_1 gpt-4o-mini handed over 5ms'],
    [
      { outcome: 'replayed', model, characters: 9, attempts: 1, duration_ms: 5 },
      '✔ run_1 gpt-4o-mini replayed 9 chars 5ms',
    ],
  ])('%j', (fields, text) => {
    expect(ended(fields)).toBe(text);
  });

  it('names its client, and whatever else is said of it', () => {
    const fields = {
      outcome: 'complete',
      client: 'chat-ui',
      upstream: 'openai',
      duration_ms: 1,
      trace_id: 'f',
    };
    expect(ended(fields)).toBe('✔ run_1 1ms client=chat-ui trace_id=f');
  });

  it('is a line like any other where its outcome is unknown', () => {
    expect(ended({ outcome: 'odd' })).toBe('info  run ended run_1 outcome=odd');
  });
});

describe('whatever is logged', () => {
  it('cannot move the cursor, turn the text around or begin a second line', () => {
    const evil = '\u001b[2J\r\n\u009b31m\u202e\u2028\u0007';
    const fields = {
      run: evil,
      [evil]: evil,
      list: [evil],
      err: Object.assign(new Error(evil), { code: evil }),
    };
    const ended = {
      run: evil,
      outcome: 'recovered',
      model: evil,
      interruptions: [{ upstream: evil, cause: evil }],
    };
    for (const text of [
      shown((log) => log.warn(fields, evil), { ...plain, stacks: true }),
      shown((log) => log.info(ended, 'run ended')),
    ])
      expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202e]/u);
  });

  it('is one line of printable text', () => {
    const field = fc.constantFrom(
      'run',
      'outcome',
      'model',
      'interruptions',
      'gap_ms',
      'err',
      'level',
      'time',
    );
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>(...OUTCOMES));
    const line = fc.tuple(
      fc.dictionary(fc.oneof(field, fc.string({ unit: 'binary' })), value),
      fc.constantFrom('run ended', 'interrupted', 7, null),
    );
    fc.assert(
      fc.property(line, fc.boolean(), ([fields, msg], stacks) => {
        const text = logLineText(JSON.stringify({ ...fields, msg }), { ...plain, stacks });
        expect(text).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      }),
      { seed: seedOr(1), numRuns: CASES },
    );
  });
});
