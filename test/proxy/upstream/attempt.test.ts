import { describe, expect, test } from 'vitest';
import { DEFAULTS, simulate } from '../../simulation/simulate.ts';

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
