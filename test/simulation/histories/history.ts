import fc from 'fast-check';
import type { WordPlan } from './word-provider.ts';

/** A fault and its time. Replicas count from 0, modulo their number. */
export type Fault =
  /** SIGSTOP and SIGCONT. `readsFirst`: the process reads pending input before late timers fire. */
  | {
      readonly kind: 'pause';
      readonly at_ms: number;
      readonly replica: number;
      readonly for_ms: number;
      readonly readsFirst: boolean;
    }
  /** SIGKILL; another process takes its place. */
  | { readonly kind: 'kill'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** SIGTERM: the replica hands its runs over, and another process takes its place. */
  | { readonly kind: 'drain'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** Cuts the network between the replica and Redis. */
  | { readonly kind: 'partition'; readonly at_ms: number; readonly replica: number; readonly for_ms: number }
  /** Delays everything between the replica and Redis, in each direction. */
  | {
      readonly kind: 'delay';
      readonly at_ms: number;
      readonly replica: number;
      readonly for_ms: number;
      readonly latency_ms: number;
    }
  /** Redis executes the replica's next command, but the reply is lost. */
  | { readonly kind: 'lost_reply'; readonly at_ms: number; readonly replica: number }
  /** Redis returns after `for_ms` with its state of `lost_ms` earlier; 0 stands for a failover. */
  | { readonly kind: 'restart'; readonly at_ms: number; readonly for_ms: number; readonly lost_ms: number }
  /** The first client's connection breaks. The client returns after `away_ms`, by default at once. */
  | { readonly kind: 'disconnect'; readonly at_ms: number; readonly away_ms?: number };

/** Another client that reads the run from its beginning on this replica. */
export interface SecondReader {
  readonly at_ms: number;
  readonly replica: number;
}

/** Every external event in the life of one run. */
export interface History {
  readonly replicas: number;
  readonly durability: 'interval' | 'write_ahead';
  readonly plan: WordPlan;
  readonly faults: readonly Fault[];
  readonly readers: readonly SecondReader[];
  /** A client that receives nothing for this long tries another replica. */
  readonly patience_ms: number;
  /** The errors of the replicas' wall clocks, in turn. */
  readonly skews_ms: readonly number[];
  /** The seed of the random numbers of all processes. */
  readonly seed: number;
}

export const LEASE_MS = 1000;
/** The latest start of a fault. */
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

/** A replica is stopped, its run is taken over for a reader, and Redis forgets the takeover. */
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

/** A replica is cut off from Redis until its run is salvaged, while its client keeps receiving the answer. */
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

/** A client leaves, its replica dies, and other replicas hold the key to continue the run while other faults happen. */
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

/** Mostly random histories, with a share of those that random ones hit too rarely. */
export const histories: fc.Arbitrary<History> = fc.oneof(
  { weight: 18, arbitrary: anyHistories },
  { weight: 1, arbitrary: forgottenTakeovers },
  { weight: 1, arbitrary: salvagedMeanwhile },
  { weight: 1, arbitrary: unattended },
);
