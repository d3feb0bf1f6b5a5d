import { expect, test } from 'vitest';
import { remember } from '../../src/lib/bounded-map.ts';

test('the oldest entry is forgotten, and one that is put in again is the youngest', () => {
  const entries = new Map<string, number>();
  remember(entries, 'a', 1, 2);
  remember(entries, 'b', 2, 2);
  remember(entries, 'a', 3, 2);
  expect([...entries]).toEqual([
    ['b', 2],
    ['a', 3],
  ]);
  remember(entries, 'c', 4, 2);
  expect([...entries]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
});
