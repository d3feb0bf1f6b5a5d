import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RetryBudget } from '../../src/client/retry-budget.ts';

const LIMITS = {
  endpoints: ['http://a:8080'],
  maxRetries: 8,
  giveUpMs: 120_000,
  backoffMs: 50,
  backoffMaxMs: 2_000,
  retryAfterMaxMs: 10_000,
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const random = (value: number) => vi.spyOn(Math, 'random').mockReturnValue(value);
const waits = (budget: RetryBudget, count: number) => Array.from({ length: count }, () => budget.next());

describe('the wait', () => {
  test('doubles up to its limit, and is at most that', () => {
    random(1);
    expect(waits(new RetryBudget(LIMITS), 8)).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000]);
  });

  test('is at least half of that', () => {
    random(0);
    expect(waits(new RetryBudget(LIMITS), 8)).toEqual([25, 50, 100, 200, 400, 800, 1000, 1000]);
  });

  test('is what the replica asked for, if that is longer, and a little more', () => {
    random(0);
    expect(new RetryBudget(LIMITS).next({ retry_after_ms: 1_500 })).toBe(1_500);
    expect(new RetryBudget(LIMITS).next({ retry_after_ms: 1 })).toBe(25);
    random(1);
    expect(new RetryBudget(LIMITS).next({ retry_after_ms: 1_500 })).toBeCloseTo(1_650);
  });

  test('is not as long as any replica asks for', () => {
    random(0);
    expect(new RetryBudget(LIMITS).next({ retry_after_ms: 3_600_000 })).toBe(10_000);
  });
});

describe('the budget', () => {
  test('is spent after as many retries', () => {
    const budget = new RetryBudget(LIMITS);
    expect(waits(budget, 9).at(-1)).toBeUndefined();
  });

  test('is whole again after new events', () => {
    random(1);
    const budget = new RetryBudget(LIMITS);
    waits(budget, 8);
    budget.progressed();
    expect(waits(budget, 9)).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000, undefined]);
  });

  test('is spent when nothing was heard for long', () => {
    random(1);
    const budget = new RetryBudget(LIMITS);
    vi.advanceTimersByTime(119_949);
    expect(budget.remaining_ms).toBe(51);
    expect(budget.next()).toBe(50);
    expect(budget.next()).toBeUndefined();
    budget.heard();
    expect(budget.next()).toBe(200);
  });

  test('of no retries is none, not even after a closed door', () => {
    const budget = new RetryBudget({ ...LIMITS, maxRetries: 0 });
    expect(budget.next()).toBeUndefined();
    expect(budget.next({ isClosedDoor: true })).toBeUndefined();
  });

  test('is not spent by closed doors, of which each is waited for longer than the one before', () => {
    random(1);
    const budget = new RetryBudget({ ...LIMITS, maxRetries: 1 });
    const doors = () => Array.from({ length: 8 }, () => budget.next({ isClosedDoor: true }));
    expect(doors()).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000]);
    expect(budget.next()).toBe(2000);
    expect(budget.next()).toBeUndefined();
    expect(budget.next({ isClosedDoor: true })).toBe(2000);
  });

  test('asks every replica before it waits longer, because any of them may be back', () => {
    random(1);
    const endpoints = ['http://a:8080', 'http://b:8080', 'http://c:8080'];
    const budget = new RetryBudget({ ...LIMITS, endpoints });
    const doors = (count: number) => Array.from({ length: count }, () => budget.next({ isClosedDoor: true }));
    expect(doors(9)).toEqual([50, 50, 50, 50, 50, 100, 50, 50, 200]);
    expect(budget.next()).toBe(400);
    expect(doors(3)).toEqual([50, 50, 800]);
    doors(1);
    budget.progressed();
    expect(doors(6)).toEqual([50, 50, 50, 50, 50, 100]);
  });

  test('waits as long as a replica asks for, even before the others were asked', () => {
    random(0);
    const budget = new RetryBudget({ ...LIMITS, endpoints: ['http://a:8080', 'http://b:8080'] });
    expect(budget.next({ isClosedDoor: true, retry_after_ms: 1_500 })).toBe(1_500);
  });

  test('is spent by closed doors once nothing was heard for long', () => {
    random(1);
    const budget = new RetryBudget(LIMITS);
    vi.advanceTimersByTime(119_950);
    expect(budget.next({ isClosedDoor: true })).toBeUndefined();
  });

  test('without a wait outlasts thousands of closed doors', () => {
    const budget = new RetryBudget({ ...LIMITS, backoffMs: 0 });
    for (let door = 0; door < 2_000; door += 1) expect(budget.next({ isClosedDoor: true })).toBe(0);
  });
});
