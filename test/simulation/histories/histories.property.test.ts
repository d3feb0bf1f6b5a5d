import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CASES, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../../cases.ts';
import { expectShares } from '../../shares.ts';
import { Deployment } from './deployment.ts';
import { type History, histories } from './history.ts';
import { violationsOf } from './verdict.ts';

const SEED = seedOr(20_261_123);

describe('several replicas that share a Redis, whatever happens to them, to it and to what is between them', () => {
  test(`keep the invariants (${CASES} histories, seed ${SEED})`, { timeout: PROPERTY_MAX_MS }, async () => {
    const shares = { done: 0, taken_over: 0, lost: 0 };
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        const consequences = await new Deployment(history).run();
        expect(violationsOf(consequences)).toEqual([]);
        if (consequences.clients.every(({ end }) => end === 'done')) shares.done++;
        if ([...consequences.stored.values()].some(({ takeovers }) => takeovers.length > 0))
          shares.taken_over++;
        if (consequences.losses_ms.length > 0) shares.lost++;
      }),
      { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
    );
    expectShares(shares, CASES, { done: 8 / 10, taken_over: 2 / 10, lost: 1 / 10 });
  });
});

/** Histories that once revealed a defect. */
const KNOWN: readonly (readonly [string, History])[] = [
  [
    'Redis comes back with a run as it was before it had lost it, and before the same replica had begun it once more',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 20, calls: false },
      faults: [
        { kind: 'kill', at_ms: 0, replica: 0, for_ms: 50 },
        { kind: 'restart', at_ms: 2200, for_ms: 0, lost_ms: 2000 },
        { kind: 'restart', at_ms: 1788, for_ms: 100, lost_ms: 2000 },
        { kind: 'delay', at_ms: 0, replica: 0, for_ms: 50, latency_ms: 5 },
      ],
      readers: [{ at_ms: 1938, replica: 0 }],
      patience_ms: 700,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'the opening of a run arrives when its replica is dead and others have looked for what it left',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 20, calls: false },
      faults: [
        { kind: 'kill', at_ms: 1081, replica: 0, for_ms: 50 },
        { kind: 'partition', at_ms: 3, replica: 0, for_ms: 1075 },
      ],
      readers: [],
      patience_ms: 1500,
      skews_ms: [0, 0, 0],
      seed: 420_442_709,
    },
  ],
  [
    'a reader that brings the request makes a run known whose replica was stopped before it had a lease',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 13, pace_ms: 130, calls: true },
      faults: [
        { kind: 'pause', at_ms: 885, replica: 0, for_ms: 1634, readsFirst: false },
        { kind: 'pause', at_ms: 0, replica: 0, for_ms: 683, readsFirst: false },
      ],
      readers: [{ at_ms: 604, replica: 1 }],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 1,
    },
  ],
  [
    'a reader at the replica that has just begun the run tries to make it known',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 23, pace_ms: 60, cut_after: 1, calls: false },
      faults: [
        { kind: 'restart', at_ms: 1558, for_ms: 0, lost_ms: 1000 },
        { kind: 'lost_reply', at_ms: 0, replica: 1 },
      ],
      readers: [{ at_ms: 0, replica: 0 }],
      patience_ms: 700,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'a run that its replica opened for a reader and then once more for itself comes back from an older state',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 20, calls: false },
      faults: [
        { kind: 'pause', at_ms: 1, replica: 0, for_ms: 1990, readsFirst: false },
        { kind: 'restart', at_ms: 3000, for_ms: 0, lost_ms: 1000 },
      ],
      readers: [{ at_ms: 1, replica: 0 }],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'a replica reaches the store again while its run is being finalised elsewhere',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 60, pace_ms: 130, calls: false },
      faults: [{ kind: 'partition', at_ms: 986, replica: 0, for_ms: 2607 }],
      readers: [],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 1_768_932_230,
    },
  ],
  [
    'a replica reaches the store again, in which others have finalised its run, after it has delivered the end',
    {
      replicas: 3,
      durability: 'interval',
      plan: { words: 60, pace_ms: 130, calls: false },
      faults: [{ kind: 'partition', at_ms: 665, replica: 0, for_ms: 4868 }],
      readers: [],
      patience_ms: 5000,
      skews_ms: [3_600_000, 0, -60_000],
      seed: 626_403_913,
    },
  ],
  [
    'a replica takes its run back from one that is slow, and has shown its client what it could not store',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 130, calls: false },
      faults: [
        { kind: 'disconnect', at_ms: 1 },
        { kind: 'pause', at_ms: 0, replica: 0, for_ms: 157, readsFirst: false },
        { kind: 'delay', at_ms: 179, replica: 1, for_ms: 128, latency_ms: 999 },
      ],
      readers: [],
      patience_ms: 1500,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'a replica that has no answer yet when it asked for a lease does not take the run over from a reader of its own',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 20, calls: false },
      faults: [
        { kind: 'restart', at_ms: 0, for_ms: 0, lost_ms: 0 },
        { kind: 'delay', at_ms: 0, replica: 0, for_ms: 508, latency_ms: 7 },
      ],
      readers: [{ at_ms: 318, replica: 0 }],
      patience_ms: 700,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'others finalise a run whose replica has had no answer yet when it asked for a lease',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 20, calls: false },
      faults: [{ kind: 'partition', at_ms: 4, replica: 0, for_ms: 2581 }],
      readers: [],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 196_706_582,
    },
  ],
  [
    'a replica gives back a lease that Redis never opened, since it was restarted before the opening came',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 3, pace_ms: 60, calls: false },
      faults: [
        { kind: 'restart', at_ms: 514, for_ms: 0, lost_ms: 300 },
        { kind: 'restart', at_ms: 3, for_ms: 0, lost_ms: 0 },
      ],
      readers: [],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
  [
    'a replica hands over a lease whose answer was lost while it asks for it again',
    {
      replicas: 2,
      durability: 'interval',
      plan: { words: 8, pace_ms: 60, calls: false },
      faults: [{ kind: 'partition', at_ms: 3, replica: 0, for_ms: 1496 }],
      readers: [],
      patience_ms: 5000,
      skews_ms: [0, 0, 0],
      seed: 0,
    },
  ],
];

describe('a history that once ended badly', () => {
  test.each(KNOWN)('keeps the invariants: %s', async (_, history) => {
    expect(violationsOf(await new Deployment(history).run())).toEqual([]);
  });
});
