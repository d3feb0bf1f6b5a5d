import fc from 'fast-check';
import { test } from 'vitest';
import { DIALECT_NAMES } from '../../../../src/config/dialect-names.ts';
import type { EventsMode } from '../../../../src/proxy/wires/common/wire.ts';
import { CASES, caseShare, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../../../cases.ts';
import type { Plan } from '../../../provider/script.ts';
import { expectShares } from '../../../shares.ts';
import { faults, plans, TOOLS } from '../../../simulation/arbitraries.ts';
import { assertInvariants } from '../../../simulation/invariants.ts';
import { type SimulationOptions, simulate } from '../../../simulation/simulate.ts';
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
    events: fc.constantFrom<EventsMode>('none', 'chunks', 'comments'),
    randomness: fc.double({ min: 0, max: 0.999, noNaN: true }),
    declared: fc.boolean(),
  })
  .map(({ plan, faults, same_target_retries, randomness, declared, ...options }) => ({
    // Whatever the dialect, the one provider behind all targets takes what it is sent for a prefill.
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
