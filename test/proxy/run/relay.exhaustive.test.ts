import { describe, expect, test } from 'vitest';
import { answer } from '../../provider/answer.ts';
import { expectedAnswer } from '../../provider/expected.ts';
import type { Position } from '../../provider/fault.ts';
import type { Continuation, Plan } from '../../provider/script.ts';
import { CONTINUATIONS, FAULT_KINDS, faultOf, TOOLS } from '../../simulation/arbitraries.ts';
import { assertInvariants } from '../../simulation/invariants.ts';
import { chatRequest, type SimulationOptions, simulate } from '../../simulation/simulate.ts';

/** Text with characters of one to four bytes, then a call: every phase of an answer in its shortest form. */
const PLAN: Plan = {
  parts: [
    { reasoning: 'First a thought.' },
    { text: 'Für 北京 I look 🙂 at the weather.' },
    { tool: { id: 'call_a', name: 'forecast', arguments: '{"city":"北京"}' } },
  ],
};

const OPTIONS: SimulationOptions = { request: { tools: TOOLS } };
const REQUEST = chatRequest(OPTIONS.request);
const WHOLE = expectedAnswer(PLAN, REQUEST as never);

const bodyOf = (plan: Plan): Buffer[] =>
  answer(plan, REQUEST as never, { attempt: 1, serial: 1, created: 1 }).flatMap((step) =>
    step.kind === 'send' ? [step.bytes] : [],
  );
const EVENTS = bodyOf(PLAN).length;
const BYTES = Buffer.concat(bodyOf(PLAN)).length;

/** The end of the anchor may be split into other tokens than at first, and the provider reports only the new ones. */
function expectAnchorUncounted(usage: unknown): void {
  const { prompt_tokens, completion_tokens } = WHOLE.usage;
  expect(usage).toMatchObject({ prompt_tokens });
  const { completion_tokens: counted } = usage as typeof WHOLE.usage;
  expect(Math.abs(counted - completion_tokens)).toBeLessThanOrEqual(1);
}

async function cut(kind: string, at: Position, continuation: Continuation): Promise<void> {
  const plan: Plan = { ...PLAN, continuation, faults: [faultOf(kind, at)] };
  const run = await simulate(plan, OPTIONS);
  const where = `${kind} at ${JSON.stringify(at)}, then ${continuation}`;
  try {
    assertInvariants(plan, OPTIONS, run);
    if (run.outcome !== 'recovered') return;
    if (continuation === 'straight_on') expect(run.stream.usage).toEqual(WHOLE.usage);
    if (continuation === 'obedient') expectAnchorUncounted(run.stream.usage);
  } catch (error) {
    throw new Error(where, { cause: error });
  }
}

describe(`an answer of ${EVENTS} events and ${BYTES} bytes`, () => {
  test.each(FAULT_KINDS)(
    'cut by %s at every event, however it continues',
    { timeout: 60_000 },
    async (kind) => {
      for (const continuation of CONTINUATIONS) {
        for (let event = 0; event <= EVENTS; event++) await cut(kind, { event }, continuation);
      }
    },
  );

  test.each(['reset', 'clean_eof'])('cut by %s at every byte', { timeout: 60_000 }, async (kind) => {
    for (let byte = 0; byte <= BYTES; byte++) await cut(kind, { byte }, 'obedient');
  });
});
