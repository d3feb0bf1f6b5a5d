import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../src/config/dialect-names.ts';
import type { EventsMode } from '../../src/proxy/run.ts';
import type { Part, Plan } from '../provider/script.ts';
import { faults, plans, TOOLS } from '../simulation/arbitraries.ts';
import { assertInvariants } from '../simulation/invariants.ts';
import { onMessages } from '../simulation/messages-cases.ts';
import { onResponses } from '../simulation/responses-cases.ts';
import { type SimulationOptions, simulate } from '../simulation/simulate.ts';

/** `HOLDFAST_SEED` and `HOLDFAST_CASES` look further; a failure prints the seed that reproduces it. */
const SEED = Number(process.env.HOLDFAST_SEED ?? 20_261_120);
const CASES = Number(process.env.HOLDFAST_CASES ?? 10_000);

interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    plan: plans(),
    faults: fc.array(fc.option(faults(), { nil: null, freq: 6 }), { minLength: 0, maxLength: 3 }),
    dialect: fc.constantFrom(...DIALECT_NAMES),
    events: fc.constantFrom<EventsMode>('none', 'none', 'chunks', 'comments'),
    tool_proof: fc.constantFrom(1 as const, 2 as const, 3 as const),
    piece_bytes: fc.constantFrom(1, 7, 64, 1000, Number.POSITIVE_INFINITY),
    randomness: fc.double({ min: 0, max: 0.999, noNaN: true }),
    usage: fc.boolean(),
    declared: fc.boolean(),
  })
  .map(({ declared, plan, faults, dialect, events, tool_proof, piece_bytes, randomness, usage }) => ({
    plan: { ...plan, faults, prefill: dialect === 'openai' || dialect === 'generic' ? 'any' : dialect },
    options: {
      dialect,
      events,
      recovery: { tool_proof },
      piece_bytes,
      random: () => randomness,
      request: { stream_options: { include_usage: usage }, ...(declared && { tools: TOOLS }) },
    },
  }));

/** The same on `/v1/completions`, which has nothing but text. */
const completions: fc.Arbitrary<Case> = cases.map(({ plan, options }) => ({
  plan: { ...plan, parts: textsOf(plan.parts) },
  options: {
    ...options,
    wire: 'completions',
    request: { stream_options: options.request?.stream_options ?? null },
  },
}));

/** Calls are left out. */
const textsOf = (parts: readonly Part[]): Part[] => {
  const texts = parts.flatMap((part) =>
    'text' in part ? [part] : 'reasoning' in part ? [{ text: part.reasoning }] : [],
  );
  return texts.length > 0 ? texts : [{ text: 'Kelp holds fast.' }];
};

describe('whatever is cut, wherever, by whatever, however it goes on', () => {
  test(`the invariants hold (${CASES} cases, seed ${SEED})`, { timeout: 300_000 }, async () => {
    const outcomes = await outcomesOf(cases, CASES);
    // A property over cases that never interrupt or never recover would prove nothing.
    expect(outcomes.recovered).toBeGreaterThan(CASES / 10);
    expect(outcomes.salvaged).toBeGreaterThan(CASES / 100);
    expect(outcomes.failed).toBeGreaterThan(CASES / 400);
  });

  test(`the invariants hold on /v1/completions (${CASES / 5} cases, seed ${SEED})`, {
    timeout: 300_000,
  }, async () => {
    const outcomes = await outcomesOf(completions, CASES / 5);
    expect(outcomes.recovered).toBeGreaterThan(CASES / 50);
    expect(outcomes.failed).toBeGreaterThan(0);
  });

  test(`the invariants hold on /v1/messages (${CASES / 5} cases, seed ${SEED})`, {
    timeout: 300_000,
  }, async () => {
    const outcomes = await outcomesOf(onMessages(cases), CASES / 5);
    expect(outcomes.recovered).toBeGreaterThan(CASES / 50);
    expect(outcomes.salvaged).toBeGreaterThan(CASES / 500);
    expect(outcomes.failed).toBeGreaterThan(CASES / 5000);
  });

  test(`the invariants hold on /v1/responses (${CASES / 5} cases, seed ${SEED})`, {
    timeout: 300_000,
  }, async () => {
    const outcomes = await outcomesOf(onResponses(cases), CASES / 5);
    expect(outcomes.recovered).toBeGreaterThan(CASES / 50);
    expect(outcomes.salvaged).toBeGreaterThan(CASES / 500);
    expect(outcomes.failed).toBeGreaterThan(CASES / 5000);
  });
});

/** How many cases ended how; all of them have kept the invariants. */
async function outcomesOf(cases: fc.Arbitrary<Case>, numRuns: number): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(cases, async (each) => {
      const run = await simulate(each.plan, each.options);
      outcomes[run.outcome] = (outcomes[run.outcome] ?? 0) + 1;
      assertInvariants(each.plan, each.options, run);
    }),
    { seed: SEED, numRuns, endOnFailure: process.env.HOLDFAST_SHRINK === undefined },
  );
  return outcomes;
}
