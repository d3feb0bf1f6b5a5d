import fc from 'fast-check';
import type { Plan } from '../provider/script.ts';
import type { SimulationOptions } from './simulate.ts';

interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

/** The same cases on `/v1/messages`, with models that continue a prefix and later ones that refuse it. */
export const onMessages = <Same extends Case>(cases: fc.Arbitrary<Same>): fc.Arbitrary<Same> =>
  fc
    .tuple(cases, fc.constantFrom('claude-sonnet-4-5', 'claude-opus-4-6'))
    .map(([{ plan, options, ...rest }, model]) => {
      const request = { ...options.request, model, stream_options: { include_usage: true } };
      const changed = {
        // The scripted model continues a prefill verbatim.
        plan: { ...plan, prefill: 'any', prefilled: 'exact' },
        options: { ...options, wire: 'messages', request },
      };
      return { ...rest, ...changed } as unknown as Same;
    });
