import { describe, expect, test } from 'vitest';
import { Attempt } from '../../../src/proxy/upstream/attempt.ts';
import { type Transport, TransportFailure } from '../../../src/proxy/upstream/transport.ts';
import { DEFAULTS, simulate } from '../../simulation/simulate.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const TEXT = { parts: [{ text: 'Kelp grips the rock through the surge.' }] } as const;

test('a provider that ends neither the stream nor the connection after the finish reason is left, whatever the store does', async () => {
  const checkpoint = { ...DEFAULTS.checkpoint, durability: 'write_ahead' as const };
  const fault = { kind: 'silence', at: { after_finish: true } } as const;
  const run = await simulate({ ...TEXT, faults: [fault] }, { configuration: { checkpoint } });

  expect([run.outcome, run.stream.text]).toEqual(['complete', 'Kelp grips the rock through the surge.']);
  expect(run.elapsed_ms).toBeLessThan(3_000);
});

describe('a provider that goes silent is given up on when its clock runs out, not later', () => {
  const clocks = {
    connect_ms: 10_000,
    first_byte_ms: 120_000,
    first_token_ms: 110_000,
    idle_ms: 5_000,
    progress_ms: 20_000,
    progress_reasoning_ms: 90_000,
    attempt_ms: 1_800_000,
  };
  const configuration = { clocks };

  test.each([
    ['in mid-stream: idle_ms', { kind: 'silence', at: { event: 4 } }, 5_000],
    [
      'before the response: first_byte_ms, or first_token_ms if that is shorter',
      { kind: 'silence', at: { before_headers: true } },
      110_000,
    ],
    ['but for comments: progress_ms', { kind: 'comments', at: { event: 4 }, every_ms: 1_000 }, 20_000],
    [
      'but for pings before the first token: first_token_ms',
      { kind: 'pings', at: { event: 0 }, every_ms: 1_000 },
      110_000,
    ],
  ] as const)('%s', async (_, fault, after_ms) => {
    const run = await simulate({ ...TEXT, faults: [fault] }, { configuration, random: () => 0 });

    expect(run.outcome).toBe('recovered');
    expect(run.elapsed_ms).toBeGreaterThanOrEqual(after_ms);
    expect(run.elapsed_ms).toBeLessThan(after_ms + 1_000);
  });

  test('while it answers after reasoning: progress_ms, not the longer clock of reasoning', async () => {
    const plan = {
      parts: [{ reasoning: 'Let me think about kelp.' }, ...TEXT.parts],
      faults: [{ kind: 'comments', at: { event: 9 }, every_ms: 1_000 }],
    } as const;
    const run = await simulate(plan, { configuration, random: () => 0 });

    expect(run.outcome).toBe('recovered');
    expect(run.elapsed_ms).toBeGreaterThanOrEqual(20_000);
    expect(run.elapsed_ms).toBeLessThan(21_000);
  });
});

describe('the limit on the wait for the end after the finish reason', () => {
  const FINISH_WAIT_MS = 2_000;

  /** A provider that sends a finish reason and nothing after it. */
  const hanging: Transport = {
    open: ({ signal }) =>
      Promise.resolve({
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: {
          async consume(take) {
            await take(Buffer.from('data: finish\n\n'));
            return new Promise<void>((_, reject) => {
              signal.addEventListener('abort', () => reject(new TransportFailure('ECONNRESET')));
            });
          },
        },
      }),
    close: () => Promise.resolve(),
  };

  /** Reads from it, with a reader that sets the limit and then does `next`. Resolves with the attempt's end. */
  async function endOf(time: VirtualTime, next: (attempt: Attempt) => Promise<void> | undefined) {
    const { limits } = DEFAULTS;
    const clocks = {
      ...DEFAULTS.clocks,
      first_byte_ms: 60_000,
      first_token_ms: 60_000,
      idle_ms: 60_000,
      idle_thinking_ms: 60_000,
    };
    const request = { url: 'http://127.0.0.1/', headers: {}, body: '{}' };
    const { signal } = new AbortController();
    const attempt = new Attempt(hanging, request, { clocks, event_bytes: limits.event_bytes }, time, signal);
    await time.drive(attempt.open());
    const read = attempt.read(() => {
      attempt.finishWithin(FINISH_WAIT_MS);
      return next(attempt);
    });
    await time.drive(read);
    return attempt.end;
  }

  test('begins with the finish reason', async () => {
    const time = new VirtualTime();
    expect(await endOf(time, () => undefined)).toMatchObject({ kind: 'broken', clock: 'progress' });
    expect(time.now()).toBe(FINISH_WAIT_MS);
  });

  test('stands still while the client takes nothing, and continues afterwards', async () => {
    const time = new VirtualTime();
    const end = await endOf(time, async (attempt) => {
      const resume = attempt.pauseClocks();
      await new Promise<void>((resolve) => time.after(10 * FINISH_WAIT_MS, resolve));
      resume();
    });
    expect(end).toMatchObject({ kind: 'broken', clock: 'progress' });
    expect(time.now()).toBe(11 * FINISH_WAIT_MS);
  });
});
