import fc from 'fast-check';
import { DIALECT_NAMES } from '../../src/config/dialect-names.ts';
import type { EventsMode } from '../../src/proxy/wires/common/wire.ts';
import { END_ON_FAILURE, seedOr } from '../cases.ts';
import type { Part, Plan } from '../provider/script.ts';
import { faults, plans, TOOLS } from './arbitraries.ts';
import { assertInvariants } from './invariants.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

export const SEED = seedOr(20_261_120);

const WHOLE = Number.POSITIVE_INFINITY;

/** One run: the provider's behaviour, and the request. */
export interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

/** Cases on `/v1/chat/completions`, with OpenAI's fields in any dialect. */
export const chatCases: fc.Arbitrary<Case> = fc
  .record({
    plan: plans(),
    faults: fc.array(fc.option(faults(), { nil: null, freq: 6 }), { minLength: 0, maxLength: 3 }),
    dialect: fc.constantFrom(...DIALECT_NAMES),
    events: fc.constantFrom<EventsMode>('none', 'none', 'live', 'chunks', 'comments'),
    tool_proof: fc.constantFrom(1 as const, 2 as const, 3 as const),
    // Splitting into single bytes costs as much as all the others together, so keep it rare.
    piece_bytes: fc.constantFrom(1, 7, 7, 64, 64, 1000, 1000, WHOLE, WHOLE),
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

/** The same cases on `/v1/completions`, which supports only text. */
export const onCompletions = <Same extends Case>(cases: fc.Arbitrary<Same>): fc.Arbitrary<Same> =>
  cases.map(({ plan, options, ...rest }) => {
    const { tools: _, ...request } = options.request ?? {};
    const changed = {
      plan: { ...plan, parts: textsOf(plan.parts), prefilled: 'exact' as const },
      options: { ...options, wire: 'completions', request },
    };
    return { ...rest, ...changed } as unknown as Same;
  });

/** The texts and reasoning, without the calls. */
const textsOf = (parts: readonly Part[]): Part[] => {
  const texts = parts.flatMap((part) =>
    'text' in part ? [part] : 'reasoning' in part ? [{ text: part.reasoning }] : [],
  );
  return texts.length > 0 ? texts : [{ text: 'Kelp holds fast.' }];
};

/** Simulates the cases, asserts their invariants and anything more, and counts the outcomes. */
export async function outcomesOf(
  cases: fc.Arbitrary<Case>,
  numRuns: number,
  assertMore: (run: Awaited<ReturnType<typeof simulate>>) => void = () => {},
): Promise<Readonly<Record<string, number>>> {
  const outcomes: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(cases, async (each) => {
      const run = await simulate(each.plan, each.options);
      outcomes[run.outcome] = (outcomes[run.outcome] ?? 0) + 1;
      assertInvariants(each.plan, each.options, run);
      assertMore(run);
    }),
    { seed: SEED, numRuns, endOnFailure: END_ON_FAILURE },
  );
  return outcomes;
}
