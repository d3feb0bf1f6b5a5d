import fc from 'fast-check';
import type { Fault } from '../provider/fault.ts';
import type { Continuation, Plan } from '../provider/script.ts';
import { mannersOf } from '../proxy/wires/dialects/fixture-plan.ts';
import type { Fixture } from '../proxy/wires/dialects/fixtures/fixture.ts';
import { CONTINUATIONS, faults, positions } from './arbitraries.ts';
import type { Case } from './cases.ts';

/** How requests end that a provider refuses. */
const STATUSES = [400, 404, 422, 429, 500, 502, 504, 529];

/** What goes wrong with one provider in its own way, and what that may be taken for. */
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

/** In most cases it continues as it does, in others as other providers do. */
const continuationsOf = ({ continuation = 'obedient' }: Fixture): fc.Arbitrary<Continuation> =>
  fc.oneof(
    { weight: 1, arbitrary: fc.constant(continuation) },
    { weight: 2, arbitrary: fc.constantFrom(...CONTINUATIONS) },
  );

/** The same cases as the provider of this fixture tells them, whatever is cut, and whatever goes wrong with it besides. */
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
