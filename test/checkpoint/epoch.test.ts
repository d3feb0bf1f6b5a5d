import { expect, test } from 'vitest';
import { epochAt, epochNameAt, epochNames, latestEpochName } from '../../src/checkpoint/epoch.ts';

test('a run that was never taken over has one epoch', () => {
  expect(epochNames([])).toEqual(['1']);
  expect(latestEpochName([])).toBe('1');
  expect([epochAt(9, []), epochNameAt(9, [])]).toEqual([1, '1']);
});

test('an epoch begins with the event after its takeover', () => {
  const takeovers = [{ seq: 3, mark: 'a1' }, { seq: 3 }, { seq: 5, mark: 'c3' }];
  expect(epochNames(takeovers)).toEqual(['1', '2-a1', '3', '4-c3']);
  expect(latestEpochName(takeovers)).toBe('4-c3');
  expect([3, 4, 5, 6].map((seq) => epochNameAt(seq, takeovers))).toEqual(['1', '3', '3', '4-c3']);
  expect([3, 4, 5, 6].map((seq) => epochAt(seq, takeovers))).toEqual([1, 3, 3, 4]);
});

test('an event belongs to the epoch that said it last, although the one before it got further', () => {
  expect(epochAt(4, [{ seq: 3 }, { seq: 5 }, { seq: 3 }])).toBe(4);
});
