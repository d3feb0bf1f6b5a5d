import fc from 'fast-check';
import type { Plan } from '../provider/script.ts';
import type { SimulationOptions } from './simulate.ts';

interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

/** The same cases on `/v1/responses`, with reasoning in plain form or as a summary. */
export const onResponses = <Same extends Case>(cases: fc.Arbitrary<Same>): fc.Arbitrary<Same> =>
  fc.tuple(cases, fc.boolean()).map(([{ plan, options, ...rest }, isSummary]) => {
    const request = { ...options.request, stream_options: { include_usage: true } };
    const field = isSummary ? 'reasoning_content' : 'reasoning';
    const parts = plan.parts.map((part) => ('reasoning' in part ? { ...part, field } : part));
    const changed = {
      plan: { ...plan, prefill: 'any', parts },
      options: { ...options, wire: 'responses', request },
    };
    return { ...rest, ...changed } as unknown as Same;
  });
