import { describe, expect, test } from 'vitest';
import { defaultMemoryBytes, MemoryBudget, type MemoryShare } from '../../src/lib/memory-budget.ts';

const exhausted = expect.objectContaining({ code: 'memory_exhausted', status: 503 });

function answerIn(budget: MemoryBudget, bytes: number): MemoryShare {
  const share = budget.share();
  share.beginAnswer(bytes);
  return share;
}

test('the default leaves room for what is not counted', () => {
  expect(defaultMemoryBytes(1)).toBeGreaterThan(16_777_216);
  expect(defaultMemoryBytes(1)).toBeLessThan(process.memoryUsage().heapTotal + 2 ** 36);
});

describe('a request', () => {
  test('gets what is left and no more', () => {
    let refusals = 0;
    const budget = new MemoryBudget(100, () => refusals++);
    const share = budget.share();
    share.take(60);
    expect(() => share.take(41)).toThrow(exhausted);
    expect(() => budget.require(41)).toThrow(exhausted);
    expect([budget.held_bytes, refusals]).toEqual([60, 2]);
    share.take(40);
    expect(budget.held_bytes).toBe(100);
    share.release();
    expect(budget.held_bytes).toBe(0);
  });

  test('holds it until all who hold it have released it, in whichever order they come', () => {
    const budget = new MemoryBudget(100);
    const share = budget.share();
    share.take(10);
    share.hold();
    share.release();
    expect(budget.held_bytes).toBe(10);
    share.release();
    expect(budget.held_bytes).toBe(0);
    // The client disconnects before its request begins, and the last piece of its body still arrives.
    share.hold();
    share.take(5);
    expect(budget.held_bytes).toBe(15);
    share.release();
    share.take(5);
    expect(budget.held_bytes).toBe(0);
  });
});

describe('an answer', () => {
  const MB = 1_048_576;

  test('is not begun when nothing is left', () => {
    const budget = new MemoryBudget(100);
    const first = answerIn(budget, 60);
    expect(() => answerIn(budget, 60)).toThrow(exhausted);
    first.release();
    expect(budget.held_bytes).toBe(0);
    answerIn(budget, 60).release();
    expect(budget.held_bytes).toBe(0);
  });

  test('is counted in steps, ahead of what is said', () => {
    const budget = new MemoryBudget(100 * MB);
    const answer = answerIn(budget, 0);
    let steps = 0;
    for (let said = 0; said <= 16 * MB; said += 1000) {
      if (said <= answer.said_bytes) continue;
      expect(answer.grow(said)).toBe(true);
      expect(answer.said_bytes).toBeGreaterThan(said);
      steps++;
    }
    expect(steps).toBeLessThan(60);
    expect(budget.held_bytes).toBeGreaterThan(16 * MB - 65_536);
    expect(budget.held_bytes).toBeLessThan(19 * MB);
    answer.release();
    expect(budget.held_bytes).toBe(0);
  });

  test('goes on when nothing is left, unless it is larger than others may be', () => {
    let refusals = 0;
    const budget = new MemoryBudget(8 * MB, () => refusals++);
    const [large, small] = [answerIn(budget, 0), answerIn(budget, 0)];
    expect(large.grow(6 * MB)).toBe(true);
    const request = budget.share();
    request.take(budget.limit_bytes - budget.held_bytes);
    expect(() => answerIn(budget, 1)).toThrow(exhausted);
    expect(small.grow(MB)).toBe(true);
    expect(small.grow(2 * MB)).toBe(true);
    expect(small.grow(2 * MB + 1)).toBe(false);
    expect(large.grow(7 * MB)).toBe(false);
    expect(refusals).toBe(3);
    // With fewer answers, each may be larger.
    large.release();
    request.release();
    expect(small.grow(7 * MB)).toBe(true);
    small.release();
    expect(budget.held_bytes).toBe(0);
  });

  test('all of them together take half as much again at most, and a step each', () => {
    const budget = new MemoryBudget(16 * MB);
    const request = budget.share();
    request.take(16 * MB - 100);
    const answers = Array.from({ length: 100 }, () => answerIn(budget, 1));
    for (const answer of answers)
      for (let said = 1000; answer.grow(said); said += 1000) expect(said).toBeLessThan(16 * MB);
    expect(budget.held_bytes).toBeLessThanOrEqual(24 * MB + answers.length * 65_536);
  });
});
