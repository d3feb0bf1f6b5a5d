import fc from 'fast-check';
import { callTo } from '../e2e/situations.ts';
import type { Fault } from '../provider/fault.ts';
import type { Part, Plan } from '../provider/script.ts';

/** The client receives events of this size in many pieces, so a replica can die in the middle of one. */
const HUGE_CHARACTERS = 40_000;
const HUGE_PARTS = 8;

const words = (count: number, salt: number) =>
  Array.from({ length: count }, (_, index) => `w${salt}-${index} à 満潮 🌊`).join(' ');

/**
 * The provider cuts some runs, too, at a place that the answer reaches, so that replicas also die during continuations.
 */
const faults: fc.Arbitrary<readonly Fault[]> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Fault[]>([]) },
  {
    weight: 2,
    arbitrary: fc.array(
      fc.record({
        kind: fc.constantFrom('reset' as const, 'clean_eof' as const, 'error_vllm' as const),
        at: fc.record({ event: fc.integer({ min: 2, max: 60 }) }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  },
);

const parts: fc.Arbitrary<Pick<Plan, 'parts' | 'chunk' | 'delay_ms'>> = fc
  .tuple(fc.integer({ min: 60, max: 160 }), fc.nat({ max: 999 }), fc.integer({ min: 0, max: 8 }))
  .map(([count, salt, kind]) => {
    const text: Part = { text: words(count, salt) };
    const tool: Part = { tool: callTo('call_brest', `Brest ${salt} ${words(20, salt)}`) };
    const reasoning: Part = { reasoning: `First I think. ${words(20, salt)}` };
    switch (kind) {
      case 0:
      case 1:
        return { parts: [text], delay_ms: 3 };
      case 2:
      case 3:
        return { parts: [text, tool], delay_ms: 3 };
      case 4:
      case 5:
        return { parts: [tool], delay_ms: 8 };
      case 6:
      case 7:
        return { parts: [reasoning, text], delay_ms: 3 };
      default: {
        const huge = Array.from({ length: HUGE_PARTS }, (_, index) => ({
          text: `${index}${String(salt).padEnd(HUGE_CHARACTERS, `à${index}`)} `,
        }));
        return { parts: huge, chunk: 'part' as const, delay_ms: 80 };
      }
    }
  });

/** An answer, the faults of its provider, and when it is requested. */
export interface ChaosRun {
  readonly plan: Plan;
  /** The delay before the request, so that the replica dies at a different place in each answer. */
  readonly delay_ms: number;
}

export const chaosRuns = (seed: number, runs: number): readonly ChaosRun[] =>
  fc.sample(
    fc.record({
      plan: fc.tuple(parts, faults).map(
        ([said, broken]): Plan => ({
          ...said,
          faults: broken,
          prefill: 'vllm',
        }),
      ),
      delay_ms: fc.integer({ min: 0, max: 300 }),
    }),
    { seed, numRuns: runs },
  );
