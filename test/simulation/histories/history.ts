import fc from 'fast-check';
import type { WordPlan } from './word-provider.ts';

/** What goes wrong, and when. Replicas count from 0 and are taken modulo how many there are. */
export type Fault =
  /** SIGSTOP and SIGCONT. `readsFirst`: what came in meanwhile is read before late timers fire. */
  | {
      readonly kind: 'pause';
      readonly at_ms: number;
      readonly replica: number;
      readonly for_ms: number;
      readonly readsFirst: boolean;
    }
  /** SIGKILL; another process takes its place. */
  | { readonly kind: 'kill'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** SIGTERM: its runs are handed over; another process takes its place. */
  | { readonly kind: 'drain'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** Nothing passes between the replica and Redis. */
  | { readonly kind: 'partition'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** Redis takes this long to answer the replica, each way. */
  | {
      readonly kind: 'delay';
      readonly at_ms: number;
      readonly replica: number;
      readonly for_ms: number;
      readonly latency_ms: number;
    }
  /** The next thing that the replica asks for is carried out, and the answer lost. */
  | { readonly kind: 'lost_reply'; readonly at_ms: number; readonly replica: number }
  /** Redis comes back with what it had `lost_ms` before, after `for_ms`; 0 is a failover. */
  | { readonly kind: 'restart'; readonly at_ms: number; readonly for_ms: number; readonly lost_ms: number }
  /** The connection of the first client breaks. `away_ms`: how long the client stays away, at once back without it. */
  | { readonly kind: 'disconnect'; readonly at_ms: number; readonly away_ms?: number };

/** Another client that reads the run from its beginning, at the replica. */
export interface SecondReader {
  readonly at_ms: number;
  readonly replica: number;
}

/** Everything that is decided from outside in the life of one run. */
export interface History {
  readonly replicas: number;
  readonly durability: 'interval' | 'write_ahead';
  readonly plan: WordPlan;
  readonly faults: readonly Fault[];
  readonly readers: readonly SecondReader[];
  /** A client that has heard nothing for so long tries another replica. */
  readonly patience_ms: number;
  /** Of the replicas' wall clocks, in turn. */
  readonly skews_ms: readonly number[];
  /** What every process draws its random numbers from. */
  readonly seed: number;
}

export const LEASE_MS = 1000;
/** When the last fault begins, at the latest. */
const FAULTS_MS = 4000;

const at_ms = fc.integer({ min: 0, max: FAULTS_MS });
const replica = fc.nat({ max: 2 });
const for_ms = fc.integer({ min: 50, max: 3 * LEASE_MS });

const faults: fc.Arbitrary<Fault> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pause' as const),
      at_ms,
      replica,
      for_ms,
      readsFirst: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('kill' as const), at_ms, replica, for_ms }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drain' as const), at_ms, replica, for_ms }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('partition' as const),
      at_ms,
      replica,
      for_ms: fc.integer({ min: 50, max: 6000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('delay' as const),
      at_ms,
      replica,
      for_ms,
      latency_ms: fc.integer({ min: 5, max: 1500 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('lost_reply' as const), at_ms, replica }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('restart' as const),
      at_ms,
      for_ms: fc.constantFrom(0, 0, 100, 800),
      lost_ms: fc.constantFrom(0, 50, 300, 1000, 2000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('disconnect' as const), at_ms }) },
);

const anyHistories: fc.Arbitrary<History> = fc.record({
  replicas: fc.constantFrom(2, 2, 3),
  durability: fc.constantFrom('interval' as const, 'write_ahead' as const),
  plan: fc.record({
    words: fc.integer({ min: 3, max: 30 }),
    pace_ms: fc.constantFrom(20, 60, 130),
    cut_after: fc.option(fc.nat({ max: 29 }), { nil: undefined, freq: 2 }),
    calls: fc.boolean(),
  }),
  faults: fc.array(faults, { minLength: 1, maxLength: 5 }),
  readers: fc.array(fc.record({ at_ms, replica }), { maxLength: 2 }),
  patience_ms: fc.constantFrom(700, 1500, 5000),
  skews_ms: fc.array(fc.constantFrom(0, -60_000, 3_600_000), { minLength: 3, maxLength: 3 }),
  seed: fc.nat(),
});

/** A replica is stopped, its run taken over for a reader, and the takeover forgotten. */
const forgottenTakeovers = anyHistories.chain((history) =>
  fc.record({ at_ms: fc.integer({ min: 300, max: 1500 }), taken_ms: fc.integer({ min: 50, max: 1500 }) }).map(
    ({ at_ms, taken_ms }): History => ({
      ...history,
      plan: { ...history.plan, words: 30, pace_ms: 130 },
      faults: [
        { kind: 'pause', at_ms, replica: 0, for_ms: LEASE_MS + taken_ms, readsFirst: true },
        { kind: 'restart', at_ms: at_ms + LEASE_MS + taken_ms, for_ms: 0, lost_ms: 1000 },
      ],
      readers: [{ at_ms, replica: 1 }],
    }),
  ),
);

/** A replica is cut off from Redis for so long that its run is salvaged, while its client gets more and more of it. */
const salvagedMeanwhile = anyHistories.chain((history) =>
  fc.record({ at_ms: fc.integer({ min: 200, max: 1000 }), for_ms: fc.integer({ min: 2600, max: 5000 }) }).map(
    ({ at_ms, for_ms }): History => ({
      ...history,
      durability: 'interval',
      plan: { ...history.plan, words: 60, pace_ms: 130 },
      faults: [{ kind: 'partition', at_ms, replica: 0, for_ms }],
      readers: [],
      patience_ms: 5000,
    }),
  ),
);

/** A client leaves, its replica dies, and others have the key to continue the run; something else happens meanwhile. */
const unattended = anyHistories.chain((history) =>
  fc
    .record({
      at_ms: fc.integer({ min: 200, max: 1500 }),
      away_ms: fc.integer({ min: 2000, max: 15_000 }),
      alive_ms: fc.integer({ min: 0, max: 500 }),
      dead_ms: fc.integer({ min: 50, max: 8000 }),
    })
    .map(
      ({ at_ms, away_ms, alive_ms, dead_ms }): History => ({
        ...history,
        plan: { ...history.plan, words: 30, pace_ms: 130 },
        faults: [
          { kind: 'disconnect', at_ms, away_ms },
          { kind: 'kill', at_ms: at_ms + alive_ms, replica: 0, for_ms: dead_ms },
          ...history.faults.slice(0, 2).map((fault) => ({ ...fault, at_ms: fault.at_ms + at_ms + 1000 })),
        ],
        seed: history.seed - (history.seed % 2),
      }),
    ),
);

/** Mostly anything, and now and then what anything hits too rarely. */
export const histories: fc.Arbitrary<History> = fc.oneof(
  { weight: 18, arbitrary: anyHistories },
  { weight: 1, arbitrary: forgottenTakeovers },
  { weight: 1, arbitrary: salvagedMeanwhile },
  { weight: 1, arbitrary: unattended },
);
