import { describe, expect, test } from 'vitest';
import { foldJournal } from '../../../../src/checkpoint/journal-fold.ts';
import { MemoryRuns } from '../../../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { SalvagedRun } from '../../../../src/checkpoint/salvaged-run.ts';
import type { Delta } from '../../../../src/plans/delta.ts';
import {
  leaveThreadNote,
  readThreadNote,
  salvageNote,
  threadKey,
  threadNote,
  threadNoticeText,
} from '../../../../src/proxy/run/notices/thread-notice.ts';
import {
  HEADER,
  HEADER_RECORD,
  newRunId,
  OWNER,
  STRANGER,
  textRecord,
} from '../../../checkpoint/fixtures.ts';
import { ran, running, transcriptOf } from '../../../plans/saying.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const AT_MS = Date.UTC(2026, 10, 21, 12);
const cut = (text: string, created_at_ms = AT_MS - 5000) => ({
  run: newRunId(),
  created_at_ms,
  model: 'gpt-test',
  interrupted_at_ms: AT_MS,
  end: { status: 'recovered_from_partial', cause: 'replica_lost' } as const,
  text,
  calls: [],
});

describe('what the model is told', () => {
  test('has a fixed beginning, compact JSON, and one sentence', () => {
    expect(threadNoticeText(threadNote(cut('Kelp grips "the" rock')))).toBe(
      'last_partial_recovery: {"status":"recovered_from_partial","interrupted_at":"2026-11-21T12:00:00.000Z",' +
        '"model":"gpt-test","cause":"replica_lost","partial_tail":"Kelp grips \\"the\\" rock"} ' +
        'Your previous answer in this conversation was cut off after the text in partial_tail: ' +
        'go on from there or start again, whichever the conversation calls for now.',
    );
  });

  test('names the calls that were complete', () => {
    const calls = [
      { id: 'call_1', name: 'forecast', arguments: '{"city":"Brest"}' },
      { id: 'call_2', name: 'x'.repeat(100) },
    ];
    const told = threadNoticeText(threadNote({ ...cut('Kelp'), calls }));
    expect(told).toContain(
      `"partial_tail":"Kelp","settled_calls":[{"id":"call_1","name":"forecast"},{"id":"call_2","name":"${'x'.repeat(64)}"}]} `,
    );
    expect(told).toMatch(/ The calls in settled_calls were complete and may have run: do not make one again/);
  });

  test('names the calls that were cut off', () => {
    const unfinished = [{ id: 'call_1', name: 'forecast', arguments: '{"ci' }];
    const told = threadNoticeText(threadNote({ ...cut('Kelp'), unfinished }));
    expect(told).toContain('"partial_tail":"Kelp","unfinished_calls":[{"id":"call_1","name":"forecast"}]} ');
    expect(told).toMatch(/ The calls in unfinished_calls were cut off and did not run: make one again if/);
  });

  test('names the tools that the provider ran, with the beginning of what they returned', () => {
    const { providerTools } = transcriptOf(ran('mcp_1'), running('mcp_2', 'close_ticket'));
    const note = threadNote({ ...cut('Kelp'), providerTools });
    expect(note.provider_tools).toEqual([
      {
        name: 'create_ticket',
        result: 'settled',
        output: '{"type":"mcp_call","id":"mcp_1","name":"create_ticket","output":"ticket 7"}',
      },
      { name: 'close_ticket', result: 'unknown' },
    ]);
    expect(threadNoticeText(note)).toMatch(
      / The tools in provider_tools ran on your side .* do not run one again/,
    );
  });

  test('brings no more than the end of a long text', () => {
    expect(threadNote(cut(`${'x'.repeat(1000)}end`)).partial_tail).toBe(`${'x'.repeat(397)}end`);
  });

  test('fits a note whatever the text was', () => {
    const calls = Array(100).fill({ id: '\u0000'.repeat(1000), name: '\u0000'.repeat(1000) });
    const tool = { id: '', state: 'settled', offset: 0, items: [{ output: '\u0000'.repeat(1000) }] } as const;
    const providerTools = Array(100).fill({ ...tool, name: '\u0000'.repeat(1000) });
    const note = threadNote({ ...cut('\u0000'.repeat(100_000)), calls, unfinished: calls, providerTools });
    expect(JSON.stringify(note).length).toBeLessThan(16_384);
  });
});

describe('the note of a thread', () => {
  const notes = () =>
    new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000, runs: new MemoryRuns() }).notes;

  test('is found under its name by its owner alone', async () => {
    const store = notes();
    const note = threadNote(cut('Kelp'));
    await leaveThreadNote(store, OWNER, 'thread', note, 1000);
    expect(await store.consume(STRANGER, threadKey('thread'))).toBeUndefined();
    expect(await store.consume(OWNER, threadKey('other'))).toBeUndefined();
    expect(readThreadNote((await store.consume(OWNER, threadKey('thread'))) ?? '')).toEqual(note);
    expect(await store.consume(OWNER, threadKey('thread'))).toBeUndefined();
  });

  test.each([
    ['first', true],
    ['last', false],
  ])('is about the later of two runs when that is salvaged %s', async (_, laterFirst) => {
    const store = notes();
    const earlier = threadNote(cut('earlier', 1000));
    const later = threadNote(cut('later', 2000));
    for (const note of laterFirst ? [later, earlier] : [earlier, later])
      await leaveThreadNote(store, OWNER, 'thread', note, 1000);
    expect(readThreadNote((await store.consume(OWNER, threadKey('thread'))) ?? '')).toEqual(later);
  });
});

describe('a salvaged run', () => {
  const salvaged = (
    status: SalvagedRun['end']['status'],
    more: Partial<SalvagedRun> = {},
    said = ['Kelp'],
  ): SalvagedRun => ({
    run: newRunId(),
    owner: OWNER,
    end: { status, at_ms: AT_MS, cause: 'replica_lost' },
    journal: foldJournal([HEADER_RECORD, ...(said.length > 0 ? [textRecord(0, ...said)] : [])]),
    givenUp: false,
    ...more,
  });

  test('has its thread told about the partial', () => {
    const run = salvaged('recovered_from_partial', {}, ['Kelp', ' grips']);
    expect(salvageNote(run)).toEqual({
      run: run.run,
      created_at_ms: HEADER.created_at_ms,
      status: 'recovered_from_partial',
      interrupted_at: '2026-11-21T12:00:00.000Z',
      model: 'gpt-test',
      cause: 'replica_lost',
      partial_tail: 'Kelp grips',
    });
  });

  test('says when it was interrupted, not when it was salvaged', () => {
    const last = { ...textRecord(0, 'Kelp'), at_ms: AT_MS - 90_000 };
    const journal = foldJournal([{ ...HEADER_RECORD, at_ms: AT_MS - 95_000 }, last]);
    expect(salvageNote(salvaged('recovered_from_partial', { journal }))?.interrupted_at).toBe(
      '2026-11-21T11:58:30.000Z',
    );
  });

  test('has the calls named that were settled, and no others', () => {
    const calls: Delta[] = [
      { kind: 'tool_start', index: 0, id: 'call_1', name: 'forecast' },
      { kind: 'tool_close', index: 0, proof: 3 },
      { kind: 'tool_start', index: 1, id: 'call_2', name: 'tides' },
    ];
    const journal = foldJournal([HEADER_RECORD, { seq: 1, events: [{ deltas: calls, payload: '{}' }] }]);
    expect(salvageNote(salvaged('recovered_from_partial', { journal }))?.settled_calls).toEqual([
      { id: 'call_1', name: 'forecast' },
    ]);
  });

  test('names the tools that the provider ran for it', () => {
    const journal = foldJournal([
      HEADER_RECORD,
      { seq: 1, events: [{ deltas: ran('mcp_1'), payload: '{}' }] },
    ]);
    expect(salvageNote(salvaged('recovered_from_partial', { journal }))?.provider_tools).toMatchObject([
      { name: 'create_ticket', result: 'settled' },
    ]);
  });

  test.each<[string, SalvagedRun]>([
    ['nothing was cut', salvaged('complete')],
    ['nothing was said', salvaged('failed', {}, [])],
    ['it left its note when it was given up', salvaged('failed', { givenUp: true })],
  ])('has nothing to tell when %s', (_, run) => {
    expect(salvageNote(run)).toBeUndefined();
  });
});
