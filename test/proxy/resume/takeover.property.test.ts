import fc from 'fast-check';
import { describe, test } from 'vitest';
import { DIALECT_NAMES } from '../../../src/config/dialect-names.ts';
import type { EventsMode } from '../../../src/proxy/wires/common/wire.ts';
import { CASES, caseShare, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../../cases.ts';
import type { Plan } from '../../provider/script.ts';
import { expectShares } from '../../shares.ts';
import { faults, plans, TOOLS } from '../../simulation/arbitraries.ts';
import { onMessages } from '../../simulation/messages-cases.ts';
import { onResponses } from '../../simulation/responses-cases.ts';
import { assertTakeoverInvariants } from '../../simulation/takeover-invariants.ts';
import {
  type Fate,
  type Manner,
  simulateTakeovers,
  type TakeoverOptions,
  type Takeovers,
} from '../../simulation/takeovers.ts';
import { withTwoCuts } from '../../simulation/two-cuts.ts';

const SEED = seedOr(20_261_121);
const FEWER_CASES = caseShare(5);

interface Case {
  readonly plan: Plan;
  readonly options: TakeoverOptions;
}

const deaths = fc.record({ append: fc.integer({ min: 1, max: 8 }), stored: fc.boolean() });

const fates = (manner: Manner): fc.Arbitrary<Fate> => {
  const event = fc.record({ kind: fc.constant('event' as const), event: fc.nat(40) });
  const handOver = fc.record({ kind: fc.constant('hand_over' as const), event: fc.nat(30) });
  const append = deaths.map((death) => ({ kind: 'append' as const, ...death }));
  // If the client keeps nothing, its run doesn't continue without it.
  if (manner === 'anew') return fc.oneof(event, append, handOver);
  const leave = fc.record(
    { kind: fc.constant('leave' as const), event: fc.nat(30), death: deaths },
    { requiredKeys: ['kind', 'event'] },
  );
  return fc.oneof(event, append, handOver, leave);
};

const cases: fc.Arbitrary<Case> = fc
  .constantFrom<Manner>('wrapper', 'wrapper', 'event_id', 'anew')
  .chain((manner) =>
    fc.record({
      manner: fc.constant(manner),
      plan: plans(),
      faults: fc.array(fc.option(faults(), { nil: null, freq: 3 }), { minLength: 0, maxLength: 2 }),
      fates: fc.array(fates(manner), { minLength: 1, maxLength: 3 }),
      dialect: fc.constantFrom(...DIALECT_NAMES),
      durability: fc.constantFrom('interval' as const, 'write_ahead' as const),
      events: fc.constantFrom<EventsMode>('none', 'none', 'live', 'chunks', 'comments'),
      tool_proof: fc.constantFrom(1 as const, 2 as const, 3 as const),
      piece_bytes: fc.constantFrom(7, 64, 300, 1000, Number.POSITIVE_INFINITY),
      pace_ms: fc.constantFrom(0, 0, 15, 60),
      usage: fc.boolean(),
      declared: fc.boolean(),
    }),
  )
  .map(({ plan, faults, dialect, tool_proof, usage, declared, ...options }) => ({
    plan: { ...plan, faults, prefill: dialect === 'openai' || dialect === 'generic' ? 'any' : dialect },
    options: {
      ...options,
      dialect,
      recovery: { tool_proof },
      request: { stream_options: { include_usage: usage }, ...(declared && { tools: TOOLS }) },
    },
  }));

/** The same with a second target, which is asked as soon as the first one has failed. */
const acrossTargets: fc.Arbitrary<Case> = withTwoCuts(
  fc.tuple(cases, fc.constantFrom(...DIALECT_NAMES)).map(([{ plan, options }, other]) => ({
    plan,
    options: {
      ...options,
      others: [other],
      recovery: { ...options.recovery, same_target_retries: 0 },
    },
  })),
);

/** The same, but another client takes over the run before the first one comes back, which is often ahead of the log. */
const withReaders = (some: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc
    .record({
      each: some,
      death: fc.record({ kind: fc.constant('event' as const), event: fc.integer({ min: 2, max: 20 }) }),
      readers: fc.array(fc.option(fc.nat(60), { nil: null, freq: 8 }), { minLength: 1, maxLength: 3 }),
      pace_ms: fc.constantFrom(0, 5, 15),
    })
    .map(({ each: { plan, options }, death, readers, pace_ms }) => {
      const manner = options.manner === 'anew' ? 'wrapper' : options.manner;
      const fates = [death, ...options.fates.slice(1)];
      return { plan, options: { ...options, manner, fates, readers, pace_ms, durability: 'interval' } };
    });

describe('whichever replica is lost, wherever, however its client comes back', () => {
  test(`the invariants hold (${CASES} cases, seed ${SEED})`, { timeout: PROPERTY_MAX_MS }, () =>
    assertOn(cases, CASES),
  );

  test(`the invariants hold across two targets (${FEWER_CASES} cases, seed ${SEED})`, {
    timeout: PROPERTY_MAX_MS,
  }, async () => {
    let returned = 0;
    await endsOf(acrossTargets, FEWER_CASES, ({ journal }) => {
      const said = journal.segments.flatMap(({ upstream }) => upstream ?? []);
      if (/default,other-1,(.*,)?default/.test(said.join())) returned++;
    });
    // The answer has moved to the other target and back.
    expectShares({ returned }, FEWER_CASES, { returned: 3 / 10 });
  });

  test(
    `the invariants hold on /v1/messages (${CASES} cases, seed ${SEED})`,
    { timeout: PROPERTY_MAX_MS },
    () => assertOn(onMessages(cases), CASES),
  );

  test(
    `the invariants hold on /v1/responses (${CASES} cases, seed ${SEED})`,
    { timeout: PROPERTY_MAX_MS },
    () => assertOn(onResponses(cases), CASES),
  );
});

describe('whichever replica is lost, while another client takes the run over before the first one comes back', () => {
  test.each(['chat_completions', 'messages', 'responses'] as const)(
    `the invariants hold on the wire of %s (${FEWER_CASES} cases, seed ${SEED})`,
    { timeout: PROPERTY_MAX_MS },
    async (wire) => {
      const on = { chat_completions: cases, messages: onMessages(cases), responses: onResponses(cases) }[
        wire
      ];
      let forked = 0;
      await endsOf(withReaders(on), FEWER_CASES, ({ forks }) => {
        if (forks > 0) forked++;
      });
      expectShares({ forked }, FEWER_CASES, { forked: 1 / 20 });
    },
  );
});

async function assertOn(some: fc.Arbitrary<Case>, numRuns: number): Promise<void> {
  const ends = await endsOf(some, numRuns);
  expectShares(ends, numRuns, { salvaged: 1 / 10 });
}

/** The number of cases by ending, all of which kept the invariants. */
async function endsOf(
  some: fc.Arbitrary<Case>,
  numRuns: number,
  observe: (run: Takeovers) => void = () => {},
): Promise<Readonly<Record<string, number>>> {
  const ends: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(some, async (each) => {
      const run = await simulateTakeovers(each.plan, each.options);
      ends[run.outcome] = (ends[run.outcome] ?? 0) + 1;
      if (run.outcomes.length > 1) ends.taken_over = (ends.taken_over ?? 0) + 1;
      assertTakeoverInvariants(each.plan, each.options, run);
      observe(run);
    }),
    { seed: SEED, numRuns, endOnFailure: END_ON_FAILURE },
  );
  expectShares(ends, numRuns, { taken_over: 1 / 2, recovered: 1 / 4, replayed: 1 / 20 });
  return ends;
}
