import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../../../src/config/dialect-names.ts';
import { HEDGES } from '../../../../src/metrics/label-values.ts';
import type { EventsMode } from '../../../../src/proxy/wires/common/wire.ts';
import { CASES, caseShare, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../../../cases.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { expectShares } from '../../../shares.ts';
import { faults, plans, positions, TOOLS } from '../../../simulation/arbitraries.ts';
import { assertInvariants } from '../../../simulation/invariants.ts';
import { METRICS, type SimulationOptions, simulate } from '../../../simulation/simulate.ts';
import { withTwoCuts } from '../../../simulation/two-cuts.ts';

const SEED = seedOr(20_261_120);
const FEWER_CASES = caseShare(4);

interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

const dialects = fc.constantFrom(...DIALECT_NAMES);

const cases: fc.Arbitrary<Case> = fc
  .record({
    plan: plans(),
    faults: fc.array(fc.option(faults(), { nil: null, freq: 6 }), { minLength: 1, maxLength: 4 }),
    dialect: dialects,
    others: fc.array(dialects, { minLength: 1, maxLength: 2 }),
    same_target_retries: fc.nat(2),
    events: fc.constantFrom<EventsMode>('none', 'live', 'chunks', 'comments'),
    randomness: fc.double({ min: 0, max: 0.999, noNaN: true }),
    declared: fc.boolean(),
  })
  .map(({ plan, faults, same_target_retries, randomness, declared, ...options }) => ({
    // The one provider behind all targets continues a prefill, whatever its dialect.
    plan: { ...plan, faults, prefill: 'any', prefilled: 'exact' },
    options: {
      ...options,
      recovery: { same_target_retries },
      random: () => randomness,
      ...(declared && { request: { tools: TOOLS } }),
    },
  }));

test(`whichever target continues an answer, the invariants hold (${CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  const outcomes: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(cases, async ({ plan, options }) => {
      const run = await simulate(plan, options);
      outcomes[run.outcome] = (outcomes[run.outcome] ?? 0) + 1;
      if (run.outcome === 'recovered' && run.stream.advisories.some((advisory) => 'upstream' in advisory))
        outcomes.moved = (outcomes.moved ?? 0) + 1;
      assertInvariants(plan, options, run);
    }),
    { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
  );
  expectShares(outcomes, CASES, { moved: 1 / 10, salvaged: 1 / 20 });
});

/** Silences around the time after which another target is asked as well. */
const silences: fc.Arbitrary<Fault> = fc
  .tuple(
    fc.oneof(positions, fc.constant({ event: 0 })),
    fc.option(fc.integer({ min: 1, max: 4000 }), { nil: undefined, freq: 3 }),
    fc.constantFrom('silence', 'comments', 'pings'),
  )
  .map(([at, for_ms, kind]): Fault => {
    const lasts = for_ms === undefined ? {} : { for_ms };
    return kind === 'silence' ? { kind, at, ...lasts } : { kind, at, every_ms: 150, ...lasts };
  });

const wait = fc.integer({ min: 1, max: 2000 });
/** Before the first token, after it, or both. */
const waits = fc.record({ after_ms: wait, stall_ms: wait }, { requiredKeys: [] });

const hedged: fc.Arbitrary<Case> = fc
  .record({
    drawn: cases,
    faults: fc.array(fc.oneof({ weight: 3, arbitrary: silences }, { weight: 1, arbitrary: faults() }), {
      minLength: 1,
      maxLength: 6,
    }),
    hedge: waits,
    piece_ms: fc.constantFrom(0, 0, 20, 300),
    piece_bytes: fc.constantFrom(7, 90, Number.POSITIVE_INFINITY),
  })
  .map(({ drawn: { plan, options }, faults, hedge, piece_ms, piece_bytes }) => ({
    plan: { ...plan, faults },
    options: { ...options, hedge, piece_ms, piece_bytes },
  }));

test(`one that is asked beside another, too (${CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  const counts: Record<string, number> = {};
  const before = await hedges();
  await fc.assert(
    fc.asyncProperty(hedged, async ({ plan, options }) => {
      const run = await simulate(plan, options);
      assertInvariants(plan, options, run);
      // After a complete answer, what may follow its end is still read.
      const isWhole = run.outcome === 'complete' || run.outcome === 'recovered';
      const left = run.requests.filter(({ aborted, over }) => !aborted && !over);
      expect(left.length).toBeLessThanOrEqual(Number(isWhole));
    }),
    { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
  );
  const after = await hedges();
  for (const outcome of HEDGES) counts[outcome] = (after[outcome] ?? 0) - (before[outcome] ?? 0);
  expectShares(counts, CASES, { won: 1 / 10, lost: 1 / 200, failed: 1 / 50 });
});

/** The totals of this process so far. */
async function hedges(): Promise<Record<string, number>> {
  const { values } = await METRICS.hedges.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.outcome), value]));
}

const MORE_THAN_ATTEMPTS = 5;
const awayAtTimes = fc.record({
  drawn: cases,
  first: fc.nat(3),
  later: fc.array(fc.oneof(fc.nat(3), fc.integer({ min: MORE_THAN_ATTEMPTS, max: 40 })), {
    minLength: 1,
    maxLength: 4,
  }),
  alone: fc.boolean(),
});

test(`an answer whose targets cannot be reached for a while, too (${CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  const outcomes = { outlasted: 0, 'given up': 0 };
  await fc.assert(
    fc.asyncProperty(awayAtTimes, async ({ drawn: { plan, options }, first, later, alone }) => {
      const { others = [], ...rest } = options;
      const away: SimulationOptions = {
        ...rest,
        ...(!alone && { others }),
        refused_connections: [first, ...later],
      };
      const run = await simulate(plan, away);
      assertInvariants(plan, away, run);
      const [longest = 0] = later;
      if (longest < MORE_THAN_ATTEMPTS) return;
      if (run.outcome === 'recovered' && run.requests.length > 1) outcomes.outlasted++;
      if (run.outcome === 'failed') outcomes['given up']++;
    }),
    { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
  );
  expectShares(outcomes, CASES, { outlasted: 1 / 10, 'given up': 1 / 50 });
});

const thereAndBack: fc.Arbitrary<Case> = withTwoCuts(
  fc.tuple(cases, dialects).map(([{ plan, options }, other]) => ({
    plan,
    options: { ...options, others: [other], recovery: { same_target_retries: 0 } },
  })),
);

test(`an answer that goes to another target and comes back, too (${FEWER_CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  let returned = 0;
  await fc.assert(
    fc.asyncProperty(thereAndBack, async ({ plan, options }) => {
      const run = await simulate(plan, options);
      assertInvariants(plan, options, run);
      const said = run.journal.segments.map(({ upstream }) => upstream);
      if (said.join() === 'default,other-1,default') returned++;
    }),
    { seed: SEED, numRuns: FEWER_CASES, endOnFailure: END_ON_FAILURE },
  );
  expectShares({ returned }, FEWER_CASES, { returned: 2 / 5 });
});
