import { describe, expect, test } from 'vitest';
import { type Limits, nextDeadline, patient, type Readings } from '../../src/interrupts/clocks.ts';

const limits: Limits = {
  first_byte_ms: 120,
  first_token_ms: 150,
  idle_ms: 90,
  progress_ms: 300,
  progress_reasoning_ms: 600,
  attempt_ms: 1_800,
};

const readings: Readings = {
  started_ms: 1_000,
  byte_ms: undefined,
  progress_ms: undefined,
  reasoning: false,
};

test('an answer that nobody sees before it is whole is waited for like thoughts', () => {
  const more = { first_byte_ms: 600, first_token_ms: 600, idle_ms: 600 };
  expect(patient(limits)).toEqual({ ...limits, ...more });
  const long = { ...limits, first_byte_ms: 700, first_token_ms: 800, idle_ms: 900 };
  expect(patient(long)).toEqual(long);
});

describe('the clock that runs out first', () => {
  test.each<[string, Partial<Readings>, Partial<Limits>, { clock: string; at_ms: number }]>([
    ['before any byte', {}, {}, { clock: 'first_byte', at_ms: 1_120 }],
    [
      'before any byte, with little patience for a token',
      {},
      { first_token_ms: 50 },
      { clock: 'first_token', at_ms: 1_050 },
    ],
    ['after headers', { byte_ms: 1_010 }, {}, { clock: 'idle', at_ms: 1_100 }],
    ['pings, but no token', { byte_ms: 1_100 }, {}, { clock: 'first_token', at_ms: 1_150 }],
    ['tokens', { byte_ms: 1_200, progress_ms: 1_200 }, {}, { clock: 'idle', at_ms: 1_290 }],
    ['pings after tokens', { byte_ms: 1_450, progress_ms: 1_200 }, {}, { clock: 'progress', at_ms: 1_500 }],
    [
      'pings after thoughts',
      { byte_ms: 1_750, progress_ms: 1_200, reasoning: true },
      {},
      { clock: 'progress', at_ms: 1_800 },
    ],
    ['an endless answer', { byte_ms: 2_790, progress_ms: 2_790 }, {}, { clock: 'attempt', at_ms: 2_800 }],
  ])('%s', (_, reading, limit, deadline) => {
    expect(nextDeadline({ ...readings, ...reading }, { ...limits, ...limit })).toEqual(deadline);
  });

  test('of two that are due at once, the more telling one', () => {
    const same = { ...limits, first_token_ms: 120, attempt_ms: 120 };
    expect(nextDeadline(readings, same).clock).toBe('first_byte');
    expect(nextDeadline({ ...readings, byte_ms: 1_100 }, same).clock).toBe('first_token');
  });
});
