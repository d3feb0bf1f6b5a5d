import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HedgeBudget } from '../../src/plans/hedge-budget.ts';

const spent = (budget: HedgeBudget, wanted: number): number => {
  let count = 0;
  for (let index = 0; index < wanted; index++) if (budget.spend()) count++;
  return count;
};

describe('a budget of hedges', () => {
  test('begins with one', () => {
    expect(spent(new HedgeBudget(0.05), 5)).toBe(1);
  });

  test.each([
    [0.05, 20],
    [0.1, 10],
    [0.2, 5],
    [1, 1],
    [0.001, 1000],
  ])('a share of %f is one of so many requests: %i', (max_share, requests) => {
    const budget = new HedgeBudget(max_share);
    budget.spend();
    for (let hedge = 0; hedge < 50; hedge++) {
      for (let index = 0; index < requests - 1; index++) budget.earn();
      expect(budget.spend()).toBe(false);
      budget.earn();
      expect(budget.spend()).toBe(true);
    }
  });

  test('saves up no more than ten', () => {
    const budget = new HedgeBudget(0.05);
    for (let index = 0; index < 10_000; index++) budget.earn();
    expect(spent(budget, 100)).toBe(10);
  });

  test('whatever comes in whatever order, there are no more than the share and those that were saved up', () => {
    const steps = fc.array(fc.constantFrom('request', 'hedge'), { maxLength: 400 });
    fc.assert(
      fc.property(steps, fc.double({ min: 0.001, max: 1, noNaN: true }), (said, max_share) => {
        const budget = new HedgeBudget(max_share);
        let requests = 0;
        let hedges = 0;
        for (const step of said) {
          if (step === 'request') {
            budget.earn();
            requests++;
          } else if (budget.spend()) hedges++;
        }
        expect(hedges).toBeLessThanOrEqual(1 + requests * max_share + 1e-9);
      }),
    );
  });
});
