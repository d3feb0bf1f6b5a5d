import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../src/proxy/dialects/names.ts';
import type { EventsMode } from '../../src/proxy/run.ts';
import { expectedAnswer } from '../provider/expected.ts';
import type { Continuation, Plan } from '../provider/script.ts';
import { faults, plans, TOOLS } from '../simulation/arbitraries.ts';
import { chatRequest, type Simulation, type SimulationOptions, simulate } from '../simulation/simulate.ts';
import type { StreamReading } from '../simulation/stream-reading.ts';

/** `HOLDFAST_SEED` and `HOLDFAST_CASES` look further; a failure prints the seed that reproduces it. */
const SEED = Number(process.env.HOLDFAST_SEED ?? 20_261_120);
const CASES = Number(process.env.HOLDFAST_CASES ?? 10_000);

/** Manners in which the provider says the rest word for word, or something that can be cut down to it. */
const FAITHFUL: ReadonlySet<Continuation> = new Set([
  'obedient',
  'repeats_tail',
  'restarts',
  'preamble',
  'echoes_prefix',
  'repeats_word',
  'rejects_prefill',
  'ignores_prefill',
]);

interface Case {
  readonly plan: Plan;
  readonly options: SimulationOptions;
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    plan: plans(),
    faults: fc.array(fc.option(faults(), { nil: null, freq: 6 }), { minLength: 0, maxLength: 3 }),
    dialect: fc.constantFrom(...DIALECT_NAMES),
    events: fc.constantFrom<EventsMode>('none', 'none', 'chunks', 'comments'),
    tool_proof: fc.constantFrom(1 as const, 2 as const, 3 as const),
    piece_bytes: fc.constantFrom(1, 7, 64, 1000, Number.POSITIVE_INFINITY),
    randomness: fc.double({ min: 0, max: 0.999, noNaN: true }),
    usage: fc.boolean(),
    declared: fc.boolean(),
  })
  .map(({ declared, plan, faults, dialect, events, tool_proof, piece_bytes, randomness, usage }) => ({
    plan: { ...plan, faults, prefill: dialect === 'openai' || dialect === 'generic' ? 'any' : dialect },
    options: {
      dialect,
      events,
      recovery: { tool_proof },
      piece_bytes,
      random: () => randomness,
      request: { stream_options: { include_usage: usage }, ...(declared && { tools: TOOLS }) },
    },
  }));

function check({ plan, options }: Case, run: Simulation): void {
  const { stream, journal, outcome, client } = run;
  const whole = expectedAnswer(plan, chatRequest(options.request) as never);

  expect(stream.violations).toEqual([]);
  // 1: what the client read is what was recorded, event for event.
  expect(journal.seq).toBe(stream.events);
  expect(journal.text).toBe(stream.text);
  expect(journal.reasoning).toBe(stream.reasoning);
  expect(journal.finish).toBe(stream.finish);
  if (!stream.error) {
    const recorded = journal.tool_calls.map(({ id, name, arguments: text }) => ({
      id,
      name,
      arguments: text,
    }));
    expect(recorded).toEqual(stream.toolCalls);
  }

  // 2 and 6: an end of its own for every outcome, and none that claims more than was delivered.
  const isWhole = outcome === 'complete' || outcome === 'recovered' || outcome === 'salvaged';
  expect(stream.done).toBe(isWhole);
  expect(stream.error !== undefined).toBe(outcome === 'failed');
  expect(client.rejection !== undefined).toBe(outcome === 'rejected');
  // A provider that ends as it should without a report has its reasons, and they are not ours to guess.
  const endsEarly = plan.faults?.[0]?.kind === 'done_without_finish';
  const asked = options.request?.stream_options?.include_usage === true;
  if (isWhole && asked && !(endsEarly && outcome === 'complete')) expect(stream.usage).toBeDefined();
  if (!asked) expect(stream.usage).toBeUndefined();

  // 3: only calls that the model made, whole, and each at most once.
  const made = whole.toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    name,
    arguments: text === '' ? '{}' : text,
  }));
  if (isWhole) for (const call of stream.toolCalls) expect(made).toContainEqual(call);

  const manner = plan.continuation ?? 'obedient';
  if (undecidable(plan, run)) return;
  if (outcome === 'complete' || outcome === 'recovered') {
    const bare = (text: string) => text.replace(/\s+/g, '');
    if (FAITHFUL.has(manner)) {
      expect(stream.text).toBe(whole.text);
      expect(stream.toolCalls).toEqual(
        made.filter((call) => !mayBeLost(call.id, plan, run) || has(stream, call.id)),
      );
      if (stream.toolCalls.length === made.length) expect(stream.finish).toBe(whole.finish);
    } else if (manner === 'loses_whitespace') {
      expect(bare(stream.text)).toBe(bare(whole.text));
      expect(stream.toolCalls).toEqual(
        made.filter((call) => !mayBeLost(call.id, plan, run) || has(stream, call.id)),
      );
    } else {
      expect(stream.text.startsWith(whole.text)).toBe(true);
    }
  }
  if (outcome === 'salvaged') {
    expect(stream.toolCalls.length).toBeGreaterThan(0);
    expect(stream.finish).toBe('tool_calls');
    if (FAITHFUL.has(manner)) expect(whole.text.startsWith(stream.text)).toBe(true);
  }
  if (stream.error && FAITHFUL.has(manner)) expect(whole.text.startsWith(stream.text)).toBe(true);
}

const has = ({ toolCalls }: StreamReading, id: string) => toolCalls.some((call) => call.id === id);

/**
 * A call that was cut before it was proven closed is asked for again (R3), but the scripted provider, told to go on
 * from the text, does not make a call again that came before that text.
 */
function mayBeLost(id: string, { parts }: Plan, { requests }: Simulation): boolean {
  const wasCut = requests.some(({ body }) => String(body.messages.at(-1)?.content).includes('did not run'));
  const place = parts.findIndex((part) => JSON.stringify(part).includes(`"${id}"`));
  return wasCut && parts.slice(place).some((part) => 'text' in part);
}

/**
 * From a few characters nobody can tell whether a provider that is known to continue a prefix began again instead
 * (`lon` + `lone`), nor after a single letter whether the word goes on with it or begins again (`l` + `lama`).
 */
function undecidable({ continuation }: Plan, { requests }: Simulation): boolean {
  if (continuation === 'obedient' || continuation === 'rejects_prefill') return false;
  // With a space lost, the scripted provider does not know its own text again and begins anew.
  if (continuation === 'loses_whitespace' && requests.length > 2) return true;
  return requests.some(({ body }) => {
    const [partial, last] = body.messages.slice(-2);
    // Within a token-exact prefill no model begins a word again; cut off, it would be a syllable too few.
    if (last?.role === 'assistant') return continuation === 'repeats_word' || String(last.content).length < 16;
    const isNudge = partial?.role === 'assistant';
    return isNudge && (String(partial.content).length < 2 || /(^|[^\p{L}\p{M}]).$/u.test(String(partial.content)));
  });
}

describe('whatever is cut, wherever, by whatever, however it goes on', () => {
  test(`the invariants hold (${CASES} cases, seed ${SEED})`, { timeout: 300_000 }, async () => {
    const outcomes: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(cases, async (each) => {
        const run = await simulate(each.plan, each.options);
        outcomes[run.outcome] = (outcomes[run.outcome] ?? 0) + 1;
        check(each, run);
      }),
      { seed: SEED, numRuns: CASES, endOnFailure: process.env.HOLDFAST_SHRINK === undefined },
    );
    // A property over cases that never interrupt or never recover would prove nothing.
    expect(outcomes.recovered).toBeGreaterThan(CASES / 10);
    expect(outcomes.salvaged).toBeGreaterThan(CASES / 100);
    expect(outcomes.failed).toBeGreaterThan(CASES / 400);
  });
});
