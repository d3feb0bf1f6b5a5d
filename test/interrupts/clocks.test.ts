import { describe, expect, test } from 'vitest';
import type { ClockLimits } from '../../src/config/configuration.ts';
import {
  type Circumstances,
  type Deadline,
  type HedgeWaits,
  type Limits,
  limitsFor,
  nextDeadline,
  type Readings,
  UNAIDED,
} from '../../src/interrupts/clocks.ts';

const limits: Limits = {
  first_byte_ms: 120,
  first_token_ms: 150,
  idle_ms: 90,
  idle_thinking_ms: 200,
  progress_ms: 300,
  progress_reasoning_ms: 600,
  attempt_ms: 1_800,
};

const readings: Readings = {
  started_ms: 1_000,
  byte_ms: undefined,
  progress_ms: undefined,
  reasoning: false,
  thought: false,
  hedged: false,
};

describe('the limits of an attempt', () => {
  const configured: ClockLimits = {
    connect_ms: 10_000,
    progress_ms: 300_000,
    progress_reasoning_ms: 600_000,
    attempt_ms: 1_800_000,
  };
  const waits = (circumstances: Partial<Circumstances>, explicit: Partial<ClockLimits> = {}) => {
    const found = limitsFor({ ...configured, ...explicit }, { ...UNAIDED, ...circumstances });
    return [found.first_byte_ms, found.first_token_ms, found.idle_ms, found.idle_thinking_ms];
  };

  test.each<[string, Partial<Circumstances>, readonly number[]]>([
    ['where nothing can stand in', {}, [120_000, 120_000, 90_000, 90_000]],
    ['with a stand-in', { hasStandIn: true }, [30_000, 30_000, 30_000, 90_000]],
    [
      'with a stand-in, of a model that is known to think',
      { hasStandIn: true, thinks: true },
      [120_000, 120_000, 90_000, 90_000],
    ],
    [
      'of an answer that no client sees before it is whole: those of thoughts',
      { unstreamed: true },
      [600_000, 600_000, 600_000, 600_000],
    ],
    [
      'of such an answer, with a stand-in',
      { unstreamed: true, hasStandIn: true },
      [30_000, 30_000, 30_000, 600_000],
    ],
  ])('%s', (_, circumstances, expected) => {
    expect(waits(circumstances)).toEqual(expected);
  });

  test.each<Partial<Circumstances>>([{}, { hasStandIn: true }, { unstreamed: true }, { thinks: true }])(
    'are those that are configured, whatever the circumstances: %j',
    (circumstances) => {
      const explicit = { first_byte_ms: 1, first_token_ms: 700_000, idle_ms: 3 };
      expect(waits(circumstances, explicit)).toEqual([1, 700_000, 3, 3]);
    },
  );

  test('end with the deadline of the run, as long as nothing was said', () => {
    const limits = limitsFor({ ...configured, first_token_ms: 500 }, { ...UNAIDED, left_ms: 1000 });
    expect(limits).toMatchObject({ connect_ms: 1000, first_byte_ms: 1000, first_token_ms: 500 });
    expect(limits).toMatchObject({ idle_ms: 90_000, progress_ms: 300_000, attempt_ms: 1_800_000 });
    expect(limitsFor(configured, { ...UNAIDED, left_ms: -5 }).first_byte_ms).toBe(1);
  });
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
    [
      'silence of a model that was seen to think',
      { byte_ms: 1_250, progress_ms: 1_250, thought: true },
      {},
      { clock: 'idle', at_ms: 1_450 },
    ],
    ['an endless answer', { byte_ms: 2_790, progress_ms: 2_790 }, {}, { clock: 'attempt', at_ms: 2_800 }],
  ])('%s', (_, reading, limit, deadline) => {
    expect(nextDeadline({ ...readings, ...reading }, { ...limits, ...limit })).toEqual(deadline);
  });

  test.each<[string, Partial<Readings>, HedgeWaits | undefined, Deadline]>([
    ['before the first token', {}, { after_ms: 40, stall_ms: 30 }, { clock: 'hedge', at_ms: 1_040 }],
    [
      'before it, though headers came',
      { byte_ms: 1_020 },
      { after_ms: 40 },
      { clock: 'hedge', at_ms: 1_040 },
    ],
    [
      'after it',
      { byte_ms: 1_200, progress_ms: 1_200 },
      { after_ms: 40, stall_ms: 30 },
      { clock: 'hedge', at_ms: 1_230 },
    ],
    [
      'after it, for pings',
      { byte_ms: 1_225, progress_ms: 1_200 },
      { stall_ms: 30 },
      { clock: 'hedge', at_ms: 1_230 },
    ],
    ['before the first token, unless it is set', {}, { stall_ms: 30 }, { clock: 'first_byte', at_ms: 1_120 }],
    [
      'after it, unless it is set',
      { byte_ms: 1_200, progress_ms: 1_200 },
      { after_ms: 40 },
      { clock: 'idle', at_ms: 1_290 },
    ],
    ['once for each silence', { hedged: true }, { after_ms: 40 }, { clock: 'first_byte', at_ms: 1_120 }],
    [
      'and not beyond the end of the answer',
      { byte_ms: 1_200, progress_ms: 1_200, finish_at_ms: 1_300 },
      { stall_ms: 30 },
      { clock: 'progress', at_ms: 1_300 },
    ],
  ])('another target is asked as well %s', (_, reading, hedge, deadline) => {
    expect(nextDeadline({ ...readings, ...reading }, { ...limits, hedge })).toEqual(deadline);
  });

  test('of two that are due at once, the more telling one', () => {
    const same = { ...limits, first_token_ms: 120, attempt_ms: 120 };
    expect(nextDeadline(readings, same).clock).toBe('first_byte');
    expect(nextDeadline({ ...readings, byte_ms: 1_100 }, same).clock).toBe('first_token');
  });
});
