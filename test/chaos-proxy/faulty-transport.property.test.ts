import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CUTS, ERROR_NAMES, type Fault, type Place } from '../../src/chaos/fault.ts';
import { FaultyTransport } from '../../src/chaos/faulty-transport.ts';
import type { FaultReport } from '../../src/chaos/report.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { caseShare, PROPERTY_MAX_MS } from '../cases.ts';
import { expectShares } from '../shares.ts';
import { type Case, chatCases, onCompletions, outcomesOf, SEED } from '../simulation/cases.ts';
import { onMessages } from '../simulation/messages-cases.ts';
import { onResponses } from '../simulation/responses-cases.ts';

const NUMBER = caseShare(5);

const places: fc.Arbitrary<Place> = fc.oneof(
  fc.constantFrom('start' as const, 'tool' as const, 'end' as const).map((kind) => ({ kind })),
  fc.nat(100).map((percent) => ({ kind: 'percent' as const, percent })),
  fc.nat(120).map((characters) => ({ kind: 'characters' as const, characters })),
);

/**
 * Every fault except statuses: a request that gets a status never reaches the provider, and the invariants compare the
 * provider's requests with the attempts.
 */
const faults: fc.Arbitrary<Fault> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('cut'), cut: fc.constantFrom(...CUTS), place: places }),
  },
  fc.record({ kind: fc.constant('stall'), duration_ms: fc.integer({ min: 1, max: 400_000 }), place: places }),
  fc.record({ kind: fc.constant('error'), error: fc.constantFrom(...ERROR_NAMES), place: places }),
);

/**
 * The same runs, but all faults are injected: the provider itself never fails. Each report counts as `struck` or
 * `missed`.
 */
function injected(cases: fc.Arbitrary<Case>, seen: { struck: number; missed: number }): fc.Arbitrary<Case> {
  const onFault = ({ missed }: FaultReport) => void (missed === undefined ? seen.struck++ : seen.missed++);
  return fc
    .tuple(cases, fc.array(faults, { minLength: 1, maxLength: 3 }))
    .map(([{ plan, options }, given]) => {
      const wire = WIRES[options.wire ?? 'chat_completions'];
      const around: Case['options']['around'] = (transport, time) =>
        new FaultyTransport(transport, { wire, faults: given, time, onFault });
      return { plan: { ...plan, faults: [] }, options: { ...options, around } };
    });
}

describe('an injected fault loses and repeats nothing', { timeout: PROPERTY_MAX_MS }, () => {
  test.each([
    ['chat completions', chatCases],
    ['completions', onCompletions(chatCases)],
    ['messages', onMessages(chatCases)],
    ['responses', onResponses(chatCases)],
  ])(`%s (${NUMBER} cases, seed ${SEED})`, async (_, cases) => {
    const seen = { struck: 0, missed: 0 };
    const outcomes = await outcomesOf(injected(cases, seen), NUMBER);
    expectShares(outcomes, NUMBER, { recovered: 1 / 5 });
    expect(seen.struck).toBeGreaterThan(NUMBER / 2);
  });
});
