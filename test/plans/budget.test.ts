import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Interruption } from '../../src/interrupts/interruption.ts';
import {
  type Budget,
  type BudgetLimits,
  backoffMs,
  type Charge,
  charge,
  exhaustion,
  newBudget,
} from '../../src/plans/budget.ts';

const SEED = Number(process.env.HOLDFAST_SEED ?? 20_261_120);

const limits: BudgetLimits = {
  max_attempts: 4,
  no_progress_ms: 60_000,
  backoff_ms: 500,
  backoff_max_ms: 8_000,
  retry_after_max_s: 60,
};

const reset: Interruption = {
  cause: 'connection_reset',
  phase: 'text',
  evidence: { kind: 'transport', code: 'ECONNRESET' },
};
const refusedConnection: Interruption = { ...reset, phase: 'connect' };
const errorEvent: Interruption = {
  cause: 'provider_5xx',
  phase: 'text',
  evidence: { kind: 'error_event', type: 'server_error' },
};
const diverged: Interruption = { ...errorEvent, evidence: { kind: 'seam_rejected', reason: 'diverged' } };

interface Spent {
  readonly interruption?: Interruption;
  readonly added?: number;
  /** Where it failed; by default at the end of what was added so far. */
  readonly offset?: number;
  readonly now_ms?: number;
  readonly gone?: boolean;
}

/** The budget after these attempts. Without an offset of their own they fail at different places. */
function failing(...attempts: readonly Spent[]): Budget {
  return attempts.reduce<Budget>(
    (budget, { interruption = reset, added = 0, offset, now_ms = 0, gone = false }, index) =>
      charge(budget, limits, { interruption, added, offset: offset ?? 1_000 * index + added, now_ms, gone }),
    newBudget(0),
  );
}

const times = (count: number, attempt: Spent): Spent[] => Array.from({ length: count }, () => attempt);
const spent = (budget: Budget, now_ms = 0) => exhaustion(budget, limits, now_ms);

describe('attempts', () => {
  test('none is spent at first', () => {
    expect(spent(newBudget(0))).toBeUndefined();
  });

  test('as many as are allowed may fail', () => {
    expect(spent(failing(...times(3, {})))).toBeUndefined();
    expect(spent(failing(...times(4, {})))).toBe('attempts');
    expect(failing(...times(4, {})).attempts).toBe(4);
  });

  test('one that got the answer a good way on is forgiven', () => {
    expect(spent(failing(...times(3, {}), { added: 200 }))).toBeUndefined();
    expect(spent(failing(...times(3, {}), { added: 199 }))).toBe('attempts');
  });

  test('those that are not forgiven take nothing from those that are', () => {
    const progress = times(4, { added: 200 });
    expect(spent(failing(...times(3, {}), ...progress))).toBeUndefined();
    expect(spent(failing(...times(3, {}), ...progress, { added: 200 }))).toBe('attempts');
  });

  test('not more are forgiven than are allowed', () => {
    const progress = { added: 5_000 };
    expect(spent(failing(...times(7, progress)))).toBeUndefined();
    expect(spent(failing(...times(8, progress)))).toBe('attempts');
  });
});

test('an answer that was to be come back to, and was gone, takes no attempt and is no failure', () => {
  const gone: Spent = { offset: 100, gone: true };
  expect(failing({ offset: 100 }, gone, gone)).toMatchObject({ attempts: 3, charged: 1 });
  expect(spent(failing({ offset: 100 }, gone, gone))).toBeUndefined();
  expect(spent(failing({ offset: 100 }, gone, { offset: 100 }))).toBe('repeated_failure');
});

describe('the same failure at the same place', () => {
  const again = (first: Spent, second: Spent) =>
    spent(failing({ offset: 100, ...first }, { offset: 100, ...second }));

  test('is not tried a third time', () => {
    expect(again({}, {})).toBe('repeated_failure');
  });

  test.each<[string, Spent, Spent]>([
    ['further on', {}, { offset: 101, added: 1 }],
    ['after one that got there', { added: 100 }, {}],
    ['for another cause', {}, { interruption: errorEvent }],
    ['in another phase', {}, { interruption: { ...reset, phase: 'reasoning' } }],
    [
      'before anything was sent, as in an outage',
      { interruption: refusedConnection },
      { interruption: refusedConnection },
    ],
    [
      'of our own way of asking, after the provider failed',
      { interruption: errorEvent },
      { interruption: diverged },
    ],
    ['of one way of asking and then of another', { interruption: diverged }, { interruption: diverged }],
  ])('is another one %s', (_, first, second) => {
    expect(again(first, second)).toBeUndefined();
  });

  test('is still the same after a way of asking failed in between', () => {
    const budget = failing({ offset: 100 }, { offset: 100, interruption: diverged }, { offset: 100 });
    expect(spent(budget)).toBe('repeated_failure');
  });

  test('is forgotten when another one comes between', () => {
    const budget = failing(
      { offset: 100 },
      { offset: 150, added: 50 },
      { offset: 150, interruption: errorEvent },
    );
    expect(spent(budget)).toBeUndefined();
  });
});

describe('nothing new for the client', () => {
  test('for as long as is allowed', () => {
    const budget = failing({ now_ms: 30_000 });
    expect(spent(budget, 59_999)).toBeUndefined();
    expect(spent(budget, 60_000)).toBe('no_progress');
  });

  test('is counted from the last progress, however small', () => {
    const budget = failing({ now_ms: 30_000, added: 1 }, { now_ms: 80_000 });
    expect(spent(budget, 89_999)).toBeUndefined();
    expect(spent(budget, 90_000)).toBe('no_progress');
  });
});

describe('with several targets, a failure', () => {
  const at = (target: number, moves = false): Charge => ({
    interruption: errorEvent,
    offset: 0,
    added: 0,
    now_ms: 0,
    target,
    moves,
  });
  const charged = (...charges: readonly Charge[]): Budget =>
    charges.reduce((budget, each) => charge(budget, limits, each), newBudget(0));

  test('repeats only where the same target is asked again', () => {
    expect(spent(charged(at(0), at(0)))).toBe('repeated_failure');
    expect(spent(charged(at(0), at(0, true)))).toBeUndefined();
    expect(spent(charged(at(0, true), at(1)))).toBeUndefined();
    expect(spent(charged(at(0, true), at(1), at(1)))).toBe('repeated_failure');
  });

  test('is charged all the same', () => {
    expect(spent(charged(at(0, true), at(1, true), at(0, true), at(1, true)))).toBe('attempts');
  });
});

describe('the wait before the next attempt', () => {
  const fruitless = fc.nat(30);
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const failed = (count: number): Budget => ({ ...newBudget(0), fruitless: count });
  const check = (property: fc.IPropertyWithHooks<[number, number, number]>) =>
    fc.assert(property, { seed: SEED });

  test('doubles with every attempt that brought nothing', () => {
    const longest = (budget: Budget) => backoffMs(budget, limits, undefined, 1);
    expect(longest(failing({ added: 1 }))).toBe(500);
    expect(longest(failing({}))).toBe(500);
    expect(longest(failing({}, {}))).toBe(1_000);
    expect(longest(failing({}, {}, {}))).toBe(2_000);
    expect(longest(failing({}, {}, { added: 1 }))).toBe(500);
  });

  test(`has full jitter and a ceiling (seed ${SEED})`, () => {
    check(
      fc.property(fruitless, random, fc.nat(100_000), (count, uniform, backoff_max_ms) => {
        const wait_ms = backoffMs(failed(count), { ...limits, backoff_max_ms }, undefined, uniform);
        const ceiling_ms = Math.min(backoff_max_ms, 500 * 2 ** count);
        expect(wait_ms).toBeCloseTo(ceiling_ms * uniform, 6);
        expect(wait_ms).toBeLessThanOrEqual(backoff_max_ms);
      }),
    );
  });

  test(`is no shorter than the provider asked for, up to the cap (seed ${SEED})`, () => {
    check(
      fc.property(fruitless, random, fc.nat(600_000), (count, uniform, asked_ms) => {
        const wait_ms = backoffMs(failed(count), limits, asked_ms, uniform);
        const asked = Math.min(asked_ms, 60_000);
        expect(wait_ms).toBeGreaterThanOrEqual(asked);
        expect(wait_ms).toBeLessThanOrEqual(Math.max(asked * 1.1, limits.backoff_max_ms));
      }),
    );
  });

  test('is spread, so that those who were refused together do not come back together', () => {
    const waits = [0, 0.5, 0.9].map((uniform) => backoffMs(failed(1), limits, 10_000, uniform));
    expect(waits).toEqual([10_000, 10_500, 10_900]);
  });

  test('is our own where the provider asks for less', () => {
    expect(backoffMs(failed(2), limits, 100, 0.5)).toBe(1_000);
  });
});
