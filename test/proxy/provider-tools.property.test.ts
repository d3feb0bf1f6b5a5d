import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CASES, caseShare, END_ON_FAILURE, PROPERTY_MAX_MS, seedOr } from '../cases.ts';
import { expectShares } from '../shares.ts';
import { CountingProvider } from '../simulation/provider-tools/counting-provider.ts';
import { type ToolScript, toolScripts } from '../simulation/provider-tools/script.ts';
import { assertToolInvariants } from '../simulation/provider-tools/tool-invariants.ts';
import { type SimulationOptions, simulate } from '../simulation/simulate.ts';
import { type Fate, type Manner, simulateTakeovers } from '../simulation/takeovers.ts';

const SEED = seedOr(20_261_122);
const FEWER_CASES = caseShare(5);
const NO_PLAN = { parts: [] };

interface Case {
  readonly script: ToolScript;
  readonly wire: 'responses' | 'messages';
  readonly options: SimulationOptions;
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    script: toolScripts,
    wire: fc.constantFrom('responses' as const, 'messages' as const),
    model: fc.constantFrom('claude-sonnet-4-5', 'claude-opus-4-6'),
    others: fc.constantFrom(undefined, undefined, ['openai'] as const, ['openai', 'vllm'] as const),
    events: fc.constantFrom('none' as const, 'none' as const, 'chunks' as const),
    max_attempts: fc.constantFrom(2, 4, 8),
    same_target_retries: fc.constantFrom(0, 1),
  })
  .map(({ script, wire, model, others, events, ...recovery }) => ({
    script,
    wire,
    options: { wire, events, request: { model }, recovery, ...(others && { others }) },
  }));

/** Rare among the generated cases: the answer is lost after its call, but before it says that this is the end. */
const CUT_AFTER_ITS_CALL: Case = {
  script: {
    parts: [
      { kind: 'text', pieces: ['Let me ', 'file that. '] },
      { kind: 'tool', key: 'key0', shape: 'paired' },
      { kind: 'text', pieces: ['Filed. '] },
    ],
    calls: true,
    cuts: [17],
    batch: 1,
    seals: true,
  },
  wire: 'messages',
  options: { wire: 'messages', request: { model: 'claude-opus-4-6' } },
};

const counted = (outcomes: Record<string, number>, outcome: string): void => {
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
};

describe('a tool that the provider runs is never run twice, and its result is never lost', () => {
  test(`whatever cuts the answer (${CASES} cases, seed ${SEED})`, { timeout: PROPERTY_MAX_MS }, async () => {
    const outcomes: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(cases, async ({ script, wire, options }) => {
        const provider = new CountingProvider(script, wire);
        const run = await simulate(NO_PLAN, { ...options, provider });
        assertToolInvariants(script, provider, run);
        counted(outcomes, run.outcome);
        if (run.outcome === 'recovered' && provider.executions.size > 0) counted(outcomes, 'carried');
      }),
      { seed: SEED, numRuns: CASES, endOnFailure: END_ON_FAILURE, examples: [[CUT_AFTER_ITS_CALL]] },
    );
    expect(outcomes.salvaged).toBeGreaterThan(0);
    expectShares(outcomes, CASES, { carried: 2 / 5, failed: 1 / 10, salvaged: 1 / 200 });
  });

  test(`after every event of an answer, on both wires`, { timeout: 120_000 }, async () => {
    const script: Omit<ToolScript, 'cuts'> = {
      parts: [
        { kind: 'reasoning', pieces: ['Two tickets, ', 'then.'] },
        { kind: 'text', pieces: ['Let me ', 'file ', 'that: '] },
        { kind: 'tool', key: 'key0', shape: 'self_contained' },
        { kind: 'tool', key: 'key1', shape: 'paired' },
        { kind: 'text', pieces: ['Both ', 'are ', 'filed.'] },
      ],
      calls: false,
      batch: 1,
      seals: true,
    };
    const whole = { recovered: 0, failed: 0 };
    for (const wire of ['responses', 'messages'] as const)
      for (let first = 0; first < 40; first++)
        for (const second of [null, 0, 3, 8, 12]) {
          const told = { ...script, cuts: [first, second] };
          const provider = new CountingProvider(told, wire);
          const options = { wire, request: { model: 'claude-opus-4-6' }, provider } as const;
          const run = await simulate(NO_PLAN, options);
          assertToolInvariants(told, provider, run);
          if (run.outcome === 'recovered' || run.outcome === 'failed') whole[run.outcome]++;
        }
    expect(whole.recovered).toBeGreaterThan(100);
    expect(whole.failed).toBeGreaterThan(20);
  });

  /**
   * A replica that is killed before an append is done may know of a tool of which no other replica knows, but only for
   * as long as the append takes. Everything else that it knew is in the store or with its client.
   */
  const fates = (manner: Manner): fc.Arbitrary<Fate> => {
    const event = fc.record({ kind: fc.constant('event' as const), event: fc.nat(30) });
    const handOver = fc.record({ kind: fc.constant('hand_over' as const), event: fc.nat(25) });
    const append = fc
      .integer({ min: 2, max: 6 })
      .map((at) => ({ kind: 'append' as const, append: at, stored: true }));
    const leave = fc.record({ kind: fc.constant('leave' as const), event: fc.nat(20) });
    return manner === 'anew' ? fc.oneof(event, handOver, append) : fc.oneof(event, handOver, append, leave);
  };

  const takeovers = fc.constantFrom<Manner>('wrapper', 'event_id', 'anew').chain((manner) =>
    fc.record({
      each: cases,
      manner: fc.constant(manner),
      fates: fc.array(fates(manner), { minLength: 1, maxLength: 2 }),
      durability: fc.constantFrom('interval' as const, 'write_ahead' as const),
      pace_ms: fc.constantFrom(0, 15, 60),
    }),
  );

  test(`whatever happens to its replica (${FEWER_CASES} cases, seed ${SEED})`, {
    timeout: PROPERTY_MAX_MS,
  }, async () => {
    const outcomes: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(takeovers, async ({ each: { script, wire, options }, ...more }) => {
        const provider = new CountingProvider(script, wire);
        const run = await simulateTakeovers(NO_PLAN, {
          ...options,
          ...more,
          provider,
          around: (transport) => provider.heardBy(transport),
        });
        expect(run.violations).toEqual([]);
        assertToolInvariants(script, provider, run, run.body);
        counted(outcomes, run.outcome);
      }),
      { seed: SEED, numRuns: FEWER_CASES, endOnFailure: END_ON_FAILURE },
    );
    expectShares(outcomes, FEWER_CASES, { recovered: 1 / 3, failed: 1 / 4 });
  });
});
