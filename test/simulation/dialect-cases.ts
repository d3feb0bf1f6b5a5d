import fc from 'fast-check';
import type { Fault } from '../provider/fault.ts';
import type { Continuation, Plan } from '../provider/script.ts';
import { mannersOf } from '../proxy/wires/dialects/fixture-plan.ts';
import type { Fixture } from '../proxy/wires/dialects/fixtures/fixture.ts';
import { CONTINUATIONS, faults, positions } from './arbitraries.ts';
import type { Case } from './cases.ts';

/** Statuses with which a provider refuses a request. */
const STATUSES = [400, 404, 422, 429, 500, 502, 504, 529];

/** Faults in the provider's own form, and those that could be mistaken for them. */
const ownFaults: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 4, arbitrary: positions.map((at): Fault => ({ kind: 'error_own', at })) },
  {
    weight: 2,
    arbitrary: positions.map(
      (at): Fault => ({ kind: 'pings', at, every_ms: 10_000, for_ms: 40_000, cut: 'reset' }),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(...STATUSES).map((status): Fault => ({ kind: 'status', status })) },
);

/** Mostly other providers' ways to continue a prefix, and sometimes this provider's own. */
const continuationsOf = ({ continuation = 'obedient' }: Fixture): fc.Arbitrary<Continuation> =>
  fc.oneof(
    { weight: 1, arbitrary: fc.constant(continuation) },
    { weight: 2, arbitrary: fc.constantFrom(...CONTINUATIONS) },
  );

/** The same cases in the form of this fixture's provider, with any cuts and with its own faults. */
export const spokenAs = (fixture: Fixture, cases: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc
    .record({
      each: cases,
      faults: fc.array(
        fc.option(fc.oneof({ weight: 2, arbitrary: faults() }, { weight: 1, arbitrary: ownFaults }), {
          nil: null,
          freq: 6,
        }),
        { minLength: 1, maxLength: 3 },
      ),
      continuation: continuationsOf(fixture),
    })
    .map(({ each: { plan, options }, faults, continuation }): Case => {
      const { usage: _, ...script }: Plan = plan;
      const { dialect, model, request, reportsAlong = false } = fixture;
      return {
        plan: { ...script, ...mannersOf(fixture), faults, continuation },
        options: { ...options, dialect, reportsAlong, request: { ...request, ...options.request, model } },
      };
    });
