import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Fault } from '../../src/chaos/fault.ts';
import { faultOf, type Schedule } from '../../src/chaos/schedule.ts';
import { CASES, seedOr } from '../cases.ts';
import { ROOT } from '../docs/pages.ts';
import { expectShares } from '../shares.ts';

const SEED = seedOr(7);
const REQUESTS = 1000;

const FAULTS: readonly Fault[] = [
  { kind: 'cut', cut: 'reset', place: { kind: 'start' } },
  { kind: 'error', error: 'overloaded', place: { kind: 'tool' } },
  { kind: 'status', status: 529 },
];
const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const requests = Array.from({ length: REQUESTS }, (_, index) => index + 1);

test('the same seed has the same faults, in whatever order the requests are looked at', () => {
  fc.assert(
    fc.property(seeds, fc.double({ min: 0, max: 1, noNaN: true }), (seed, share) => {
      const schedule: Schedule = { faults: FAULTS, share, seed };
      const forwards = requests.slice(0, 50).map((request) => faultOf(schedule, request));
      const backwards = requests
        .slice(0, 50)
        .toReversed()
        .map((request) => faultOf({ ...schedule }, request));
      expect(backwards.toReversed()).toEqual(forwards);
    }),
    { seed: SEED, numRuns: CASES },
  );
});

test('a larger share adds faults and changes none', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      for (const request of requests.slice(0, 50)) {
        const few = faultOf({ faults: FAULTS, share: 0.2, seed }, request);
        if (few) expect(faultOf({ faults: FAULTS, share: 0.6, seed }, request)).toBe(few);
      }
    }),
    { seed: SEED, numRuns: CASES },
  );
});

test('the share is the share of the requests, and faults are drawn alike', () => {
  const counts: Record<string, number> = {};
  let cases = 0;
  const count = (situation: string) => {
    counts[situation] = (counts[situation] ?? 0) + 1;
  };
  fc.assert(
    fc.property(seeds, (seed) => {
      for (const request of requests) {
        cases++;
        const fault = faultOf({ faults: FAULTS, share: 0.3, seed }, request);
        count(fault?.kind ?? 'none');
      }
    }),
    { seed: SEED, numRuns: 20 },
  );
  // The four shares add up to one, so if each count reaches its share, none can exceed it.
  expectShares(counts, cases, { none: 0.7, cut: 0.1, error: 0.1, status: 0.1 });
});

test('a share of none and a share of all', () => {
  for (const request of requests) {
    expect(faultOf({ faults: FAULTS, share: 0, seed: 1 }, request)).toBeUndefined();
    expect(faultOf({ faults: FAULTS, share: 1, seed: 1 }, request)).toBeDefined();
  }
});

test('the requests of the example in docs/chaos.md are those of its seed', () => {
  const struck = requests
    .slice(0, 12)
    .filter((request) => faultOf({ faults: FAULTS, share: 0.2, seed: 7 }, request));
  const page = readFileSync(join(ROOT, 'docs/chaos.md'), 'utf8');
  expect([...page.matchAll(/^request (\d+): reset at 40%/gm)].map(([, request]) => Number(request))).toEqual(
    struck,
  );
});
