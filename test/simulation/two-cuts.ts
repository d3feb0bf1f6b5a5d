import fc from 'fast-check';
import type { Fault } from '../provider/fault.ts';
import type { Part, Plan } from '../provider/script.ts';
import { faultOf } from './arbitraries.ts';

/** Unambiguous failures after which Holdfast also asks another target. */
const CUTS = ['reset', 'fin_in_chunk', 'clean_eof', 'tls_cut', 'h2_rst', 'error_openai', 'error_vllm'];
/** Shorter answers would end before the second cut. */
const CHARACTERS_MIN = 150;

const cut = (max: number): fc.Arbitrary<Fault> =>
  fc
    .tuple(fc.constantFrom(...CUTS), fc.integer({ min: 3, max }))
    .map(([kind, event]) => faultOf(kind, { event }));

/** The same cases, but with an answer that is only text and is cut twice. */
export const withTwoCuts = <Same extends { readonly plan: Plan }>(
  cases: fc.Arbitrary<Same>,
): fc.Arbitrary<Same> =>
  fc
    .tuple(cases, cut(12), cut(20))
    .map(([{ plan, ...rest }, ...faults]) => {
      // Whatever the dialects, one provider serves all targets and treats every continuation as a prefill.
      const said = { parts: [{ text: textIn(plan.parts) }], prefill: 'any', prefilled: 'exact' };
      return { ...rest, plan: { ...plan, ...said, faults } } as unknown as Same;
    })
    .filter(({ plan }) => textIn(plan.parts).length >= CHARACTERS_MIN);

const textIn = (parts: readonly Part[]): string =>
  parts.map((part) => ('text' in part ? part.text : 'reasoning' in part ? part.reasoning : '')).join('');
