import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Interruption } from '../../src/interrupts/interruption.ts';
import {
  attemptWork,
  type Budget,
  type BudgetLimits,
  backoffMs,
  charge,
  exhaustion,
  newBudget,
  type Spending,
  workLimit,
} from '../../src/plans/budget.ts';
import { CASES, seedOr } from '../cases.ts';

const SEED = seedOr(20_261_120);

const limits: BudgetLimits = {
  max_attempts: 4,
  unreachable_ms: 20_000,
  no_progress_ms: 60_000,
  backoff_ms: 500,
  backoff_max_ms: 8_000,
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
  /** Where the answer was cut, if it had any text. */
  readonly position?: number;
  readonly now_ms?: number;
  readonly target?: number;
  readonly gone?: boolean;
  readonly begun?: boolean;
}

/** The budget after these attempts. */
const failing = (...attempts: readonly Spent[]): Budget =>
  attempts.reduce<Budget>(
    (budget, { interruption = reset, added = 0, position, now_ms = 0, ...more }) =>
      charge(budget, { interruption, added, position, now_ms, ...more }, limits),
    newBudget(0),
  );

const times = (count: number, attempt: Spent): Spent[] => Array.from({ length: count }, () => attempt);
const NOTHING: Omit<Spending, 'now_ms'> = {
  work_tokens: 0,
  max_work_tokens: Number.POSITIVE_INFINITY,
  left_ms: Number.POSITIVE_INFINITY,
  moves: false,
};
const spent = (budget: Budget, now_ms = 0, more: Partial<Spending> = {}) =>
  exhaustion(budget, limits, { now_ms, ...NOTHING, ...more });

describe('attempts', () => {
  test('none is spent at first', () => {
    expect(spent(newBudget(0))).toBeUndefined();
  });

  test('as many as are allowed may fail', () => {
    expect(spent(failing(...times(3, {})))).toBeUndefined();
    expect(spent(failing(...times(4, {})))).toBe('attempts');
  });

  test('are counted from the last progress, of whatever size, and that one counts', () => {
    const progress = { added: 1 };
    expect(spent(failing(...times(3, {}), progress, ...times(2, {})))).toBeUndefined();
    expect(spent(failing(...times(3, {}), progress, ...times(3, {})))).toBe('attempts');
    expect(spent(failing(...times(1000, progress)))).toBeUndefined();
  });

  test('with one allowed, nothing is recovered, however far it got', () => {
    const once = { ...limits, max_attempts: 1 };
    const progress = failing({ added: 5_000 });
    expect(exhaustion(progress, once, { now_ms: 0, ...NOTHING })).toBe('attempts');
  });
});

test('an answer that was to be come back to, and was gone, takes no attempt and is no failure', () => {
  const gone: Spent = { position: 100, gone: true };
  expect(failing({ position: 100 }, gone, gone).charged).toBe(1);
  expect(spent(failing({ position: 100 }, ...times(9, gone)))).toBeUndefined();
});

describe('a connection that cannot be made', () => {
  const refusal = { kind: 'transport', code: 'ECONNREFUSED' } as const;
  const evidences: readonly Interruption['evidence'][] = [
    refusal,
    ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'].map((code) => ({ ...refusal, code })),
    { kind: 'clock', clock: 'connect' },
  ];
  const unreached: Interruption = { ...reset, phase: 'connect', evidence: refusal };
  const cut: Spent = { added: 10, position: 10, now_ms: 1000, begun: true };
  const at = (now_ms: number, more: Spent = {}): Spent => ({
    interruption: unreached,
    now_ms,
    begun: true,
    ...more,
  });

  test.each(evidences)('takes no attempt from an answer that has begun: %j', (evidence) => {
    const refused = at(2000, { interruption: { ...unreached, evidence } });
    expect(failing(cut, ...times(50, refused))).toMatchObject({ charged: 1, fruitless: 50 });
  });

  test('does so for a time after the last progress', () => {
    const inTime = at(1000 + limits.unreachable_ms - 1);
    const late = at(1000 + limits.unreachable_ms);
    expect(spent(failing(cut, ...times(50, inTime), late, late))).toBeUndefined();
    expect(spent(failing(cut, ...times(50, inTime), late, late, late))).toBe('attempts');
  });

  test('counts where nothing was delivered: the client can ask elsewhere', () => {
    expect(spent(failing(...times(4, at(0, { begun: false }))))).toBe('attempts');
  });

  test('is none that broke, or that was refused by what answered', () => {
    const broken = at(2000, { interruption: { ...unreached, evidence: reset.evidence } });
    const status = {
      cause: 'provider_5xx',
      phase: 'connect',
      evidence: { kind: 'status', status: 503 },
    } as const;
    for (const failure of [broken, at(2000, { interruption: status })])
      expect(spent(failing(cut, ...times(3, failure)))).toBe('attempts');
  });

  test('brings nothing back that recovery turned off has given up', () => {
    const once = { ...limits, max_attempts: 1 };
    expect(exhaustion(failing(cut, at(2000)), once, { now_ms: 2000, ...NOTHING })).toBe('attempts');
  });
});

describe('poison', () => {
  test('is an attempt that spoke and died at the same position, three times', () => {
    const death = { position: 100 };
    expect(spent(failing(death, death))).toBeUndefined();
    expect(spent(failing(death, death, death))).toBe('repeated_failure');
    expect(spent(failing({ ...death, added: 100 }, death, death))).toBe('repeated_failure');
  });

  test('is no outage: what fails before the first token has all attempts', () => {
    for (const interruption of [reset, refusedConnection, errorEvent])
      expect(spent(failing(...times(3, { interruption })))).toBeUndefined();
  });

  test('is so whatever killed the attempt', () => {
    const first = { position: 100 };
    const other = { position: 100, interruption: errorEvent };
    expect(spent(failing(first, other, first))).toBe('repeated_failure');
  });

  test('is found although attempts that said nothing, or were asked for in the wrong way, come between', () => {
    const death = { position: 100, added: 1 };
    const wrong = { position: 60, interruption: diverged };
    expect(spent(failing(death, {}, death, wrong, death))).toBe('repeated_failure');
  });

  test('is forgotten when another position comes between', () => {
    const death = { position: 100, added: 1 };
    expect(spent(failing(death, death, { position: 101 }, death))).toBeUndefined();
  });

  test('is that of one target, and no reason to stop while another one is asked next', () => {
    const at = (target: number): Spent => ({ position: 0, target });
    expect(spent(failing(at(0), at(0), at(1)))).toBeUndefined();
    expect(spent(failing(at(0), at(0), at(0)), 0, { moves: true })).toBeUndefined();
    expect(spent(failing(at(0), at(0), at(0)))).toBe('repeated_failure');
  });
});

describe('the work of all attempts', () => {
  test('is limited by the configuration, else by a multiple of what was asked for', () => {
    expect(workLimit(7, 100)).toBe(7);
    expect(workLimit(undefined, 8_000)).toBe(32_000);
    expect(workLimit(undefined, 16)).toBe(16_384);
    expect(workLimit(undefined, Number.POSITIVE_INFINITY)).toBe(131_072);
  });

  test('counts an attempt for its prompt, however little it said', () => {
    expect(attemptWork(0)).toBe(256);
    expect(attemptWork(1_000)).toBe(1_000);
  });

  test('ends the recovery where it is done, whatever the progress', () => {
    const progress = failing({ added: 1_000 });
    expect(spent(progress, 0, { work_tokens: 999, max_work_tokens: 1_000 })).toBeUndefined();
    expect(spent(progress, 0, { work_tokens: 1_000, max_work_tokens: 1_000 })).toBe('work');
  });
});

test('nothing is asked for after the deadline', () => {
  const progress = failing({ added: 1_000 });
  expect(spent(progress, 0, { left_ms: 1 })).toBeUndefined();
  expect(spent(progress, 0, { left_ms: 0 })).toBe('deadline');
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

describe('the wait before the next attempt', () => {
  const fruitless = fc.nat(30);
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const failed = (count: number): Budget => ({ ...newBudget(0), fruitless: count });
  const check = (property: fc.IPropertyWithHooks<[number, number, number]>) =>
    fc.assert(property, { seed: SEED, numRuns: CASES });

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

  test(`is no shorter than the provider asked for (seed ${SEED})`, () => {
    check(
      fc.property(fruitless, random, fc.nat(600_000), (count, uniform, asked_ms) => {
        const wait_ms = backoffMs(failed(count), limits, asked_ms, uniform);
        expect(wait_ms).toBeGreaterThanOrEqual(asked_ms);
        expect(wait_ms).toBeLessThanOrEqual(Math.max(asked_ms * 1.1, limits.backoff_max_ms));
      }),
    );
  });

  test('is spread, so that requests that were refused together do not come back together', () => {
    const waits = [0, 0.5, 0.9].map((uniform) => backoffMs(failed(1), limits, 10_000, uniform));
    expect(waits).toEqual([10_000, 10_500, 10_900]);
  });

  test('is our own where the provider asks for less', () => {
    expect(backoffMs(failed(2), limits, 100, 0.5)).toBe(1_000);
  });
});
