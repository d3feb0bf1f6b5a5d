import fc from 'fast-check';
import { test } from 'vitest';
import type { EventsMode } from '../../src/proxy/wires/common/wire.ts';
import { CASES, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../cases.ts';
import type { Part, Plan, ToolCall } from '../provider/script.ts';
import { expectShares } from '../shares.ts';
import { faults, plans, TOOLS } from '../simulation/arbitraries.ts';
import { assertTakeoverInvariants } from '../simulation/takeover-invariants.ts';
import { type Fate, simulateTakeovers, type TakeoverOptions } from '../simulation/takeovers.ts';

const SEED = seedOr(20_261_122);

interface Case {
  readonly plan: Plan;
  readonly options: TakeoverOptions;
}

/** The same call written differently. */
function restated(call: ToolCall, { id }: ToolCall): ToolCall {
  if (call.arguments === '') return { ...call, id, arguments: '{}' };
  const fields = Object.entries(JSON.parse(call.arguments) as object).reverse();
  return { ...call, id, arguments: JSON.stringify(Object.fromEntries(fields), undefined, 1) };
}

/** The answer with its first call in place of others. */
function repeating(parts: readonly Part[], again: readonly boolean[]): Part[] {
  let first: ToolCall | undefined;
  let calls = 0;
  const repeat = (call: ToolCall) => {
    first ??= call;
    return again[calls++ % again.length] && call !== first ? restated(first, call) : call;
  };
  return parts.map((part) => {
    if ('tool' in part) return { tool: repeat(part.tool) };
    return 'tools' in part ? { tools: part.tools.map(repeat) } : part;
  });
}

const fates: fc.Arbitrary<Fate> = fc.oneof(
  fc.record({ kind: fc.constant('event' as const), event: fc.nat(30) }),
  fc.record({ kind: fc.constant('hand_over' as const), event: fc.nat(30) }),
  fc.record({
    kind: fc.constant('append' as const),
    append: fc.integer({ min: 1, max: 8 }),
    stored: fc.boolean(),
  }),
);

const cases: fc.Arbitrary<Case> = fc
  .record({
    plan: plans(),
    again: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    faults: fc.array(fc.option(faults(), { nil: null, freq: 3 }), { minLength: 0, maxLength: 2 }),
    fates: fc.array(fates, { minLength: 0, maxLength: 2 }),
    manner: fc.constantFrom('wrapper' as const, 'event_id' as const, 'anew' as const),
    durability: fc.constantFrom('interval' as const, 'write_ahead' as const),
    events: fc.constantFrom<EventsMode>('none', 'live', 'chunks', 'comments'),
    tool_proof: fc.constantFrom(1 as const, 2 as const, 3 as const),
    piece_bytes: fc.constantFrom(7, 64, 300, Number.POSITIVE_INFINITY),
    pace_ms: fc.constantFrom(0, 15),
    declared: fc.boolean(),
  })
  .map(({ plan, again, faults, tool_proof, declared, ...options }) => ({
    plan: { ...plan, parts: repeating(plan.parts, again), faults, prefill: 'any', prefilled: 'exact' },
    options: {
      ...options,
      recovery: { tool_proof, drop_repeated_calls: true },
      request: declared ? { tools: TOOLS } : {},
    },
  }));

test(`whatever is repeated, cut or lost, no call is delivered twice (${CASES} cases, seed ${SEED})`, {
  timeout: PROPERTY_MAX_MS,
}, async () => {
  let repeated = 0;
  await fc.assert(
    fc.asyncProperty(cases, async ({ plan, options }) => {
      const run = await simulateTakeovers(plan, options);
      assertTakeoverInvariants(plan, options, run);
      if (run.stream.advisories.some(({ reason }) => reason === 'repeated')) repeated++;
    }),
    { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE },
  );
  expectShares({ repeated }, CASES, { repeated: 3 / 20 });
});
