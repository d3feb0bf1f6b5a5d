import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { caseShare, END_ON_FAILURE, seedOr } from '../cases.ts';
import type { Fault } from '../provider/fault.ts';
import type { Generation } from '../provider/kept-answers.ts';
import type { Plan } from '../provider/script.ts';
import { expectShares } from '../shares.ts';
import { plans, TOOLS } from '../simulation/arbitraries.ts';
import { KeptDeployment, seen } from './kept-deployment.ts';

const SEED = seedOr(20_261_122);
/** Each case waits for connections. */
const CASES = caseShare(125);
/** Enough to contain something new in any case, even after events without content and half an event. */
const GETS_ON_BYTES = 1_500;

interface Cut {
  readonly kind: 'reset' | 'fin_in_chunk' | 'clean_eof';
  /** Fraction of what this connection could deliver. */
  readonly part: number;
}

const cuts = fc.array(
  fc.record<Cut>({
    kind: fc.constantFrom('reset', 'fin_in_chunk', 'clean_eof'),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { minLength: 1, maxLength: 3 },
);

/** Ensures that even a small number of cases includes one with a loss. */
const LONG_AND_CUT: [Plan, Cut[], 'whole', boolean] = [
  {
    parts: [{ text: 'The holdfast grips the rock through the surge. '.repeat(20) }],
    chunk: 'token',
    tool_shape: 'openai',
    continuation: 'obedient',
  },
  [{ kind: 'reset', part: 0.5 }],
  'whole',
  false,
];

describe.each(['llamacpp', 'cloudflare'] as const)('an answer that is kept as %s does it', (as) => {
  test(`is whole wherever and however often the connection is lost, and is never made twice (${CASES} cases, seed ${SEED})`, {
    timeout: 60_000 + CASES * 2_000,
  }, async () => {
    const deployment = await KeptDeployment.begin({ dialect: as });
    const { provider } = deployment;
    let resumed = 0;
    await fc.assert(
      fc.asyncProperty(
        plans(),
        cuts,
        fc.constantFrom('whole', 'whole', 'event', 'bytes'),
        fc.boolean(),
        async (script, places, write, live) => {
          const plan = { ...script, write, keeps: { as } };
          const asking = {
            more: { tools: TOOLS },
            ...(live && { headers: { 'holdfast-events': 'comments' } }),
          };
          const uncut = await deployment.ask(plan, [], asking);
          const faults = cutsIn(provider.generations.at(-1) as Generation, places);
          const made = provider.generations.length;
          const cut = await deployment.ask(plan, faults, asking);
          expect(seen(cut)).toEqual(seen(uncut));
          // Nothing that was shown had to be retracted.
          for (const advisory of cut.stream.advisories) expect(advisory.type).toBe('Recovered');
          expect(provider.generations).toHaveLength(made + 1);
          expect(cut.asked.filter((each) => each === 'POST')).toHaveLength(1);
          // A cut after the last needed event takes no further connection.
          expect(cut.asked.length).toBeLessThanOrEqual(1 + faults.length);
          if (cut.asked.length > 1) resumed++;
        },
      ),
      { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE, examples: [LONG_AND_CUT] },
    );
    expect(resumed).toBeGreaterThan(0);
    expectShares({ resumed }, CASES, { resumed: 1 / 2 });
  });
});

/** Positions in the answer, each far enough from the last to count as progress. */
function cutsIn(generation: Generation, places: readonly Cut[]): Fault[] {
  let from = 0;
  return places.flatMap(({ kind, part }) => {
    const room = generation.size - from - GETS_ON_BYTES;
    if (room <= 0) return [];
    const byte = GETS_ON_BYTES + Math.floor(part * room);
    // An event that was cut comes again, unless only its blank line is missing, which the end of the body replaces.
    from = generation.wholeBefore(from + byte + '\n\n'.length);
    return [{ kind, at: { byte } }];
  });
}
