import { callTo, TIDES } from '../e2e/situations.ts';
import { deltasOf } from '../provider/deltas.ts';
import type { Position } from '../provider/fault.ts';
import type { Part, Plan } from '../provider/script.ts';

/** A client's request, and the provider's plan for it. */
export interface Trouble {
  readonly model: string;
  readonly plan: Plan;
  readonly request?: object;
}

const TEXT = {
  text: 'The tide comes in twice a day — “à marée haute”, 満潮 🌊 — and goes out again as often.',
};
const REASONING = { reasoning: 'They ask about the sea. Two tides a day should do, and a little kelp.' };
const BREST = { tool: callTo('call_brest', 'Brest') };
const LORIENT = { tool: callTo('call_lorient', 'Lorient') };
const TOOLS = { tools: [{ type: 'function', function: TIDES }] };
const IN_TEXT = { event: 8 };
const LOOKED_UP = { text: 'I look it up.' };

/** A position after the role, all of `parts`, and a few more events. */
const within = (...parts: readonly Part[]): Position => ({ event: 1 + deltasOf(parts, {}).length + 3 });

/** One for each distinction that the metrics make. A model's name selects an upstream, see the deployment. */
export const TROUBLES: Readonly<Record<string, Trouble>> = {
  none: { model: 'main-model', plan: { parts: [REASONING, TEXT] } },
  'reset, continued by a prefill': {
    model: 'main-model',
    plan: { parts: [TEXT], faults: [{ kind: 'reset', at: IN_TEXT }], prefill: 'vllm' },
  },
  'end without an end, continued by a nudge': {
    model: 'plain-model',
    plan: { parts: [TEXT], faults: [{ kind: 'clean_eof', at: IN_TEXT }], continuation: 'repeats_tail' },
  },
  'cut in a call': {
    model: 'plain-model',
    plan: { parts: [LOOKED_UP, BREST], faults: [{ kind: 'reset', at: within(LOOKED_UP) }] },
    request: TOOLS,
  },
  'cut after a call': {
    model: 'plain-model',
    plan: { parts: [BREST, LORIENT], faults: [{ kind: 'reset', at: within(BREST) }] },
    request: TOOLS,
  },
  'cut in the reasoning': {
    model: 'plain-model',
    plan: { parts: [REASONING, TEXT], faults: [{ kind: 'reset', at: { event: 5 } }] },
  },
  'cut in a document': {
    model: 'plain-model',
    plan: {
      parts: [{ text: '{"tides": [1, 2, 3, 4, 5, 6, 7, 8]}' }],
      faults: [{ kind: 'reset', at: IN_TEXT }],
    },
    request: { response_format: { type: 'json_object' } },
  },
  silence: {
    model: 'impatient-model',
    plan: { parts: [TEXT], faults: [{ kind: 'silence', at: IN_TEXT }] },
  },
  'an error in the stream': {
    model: 'main-model',
    plan: { parts: [TEXT], faults: [{ kind: 'error_openai', at: IN_TEXT }], prefill: 'vllm' },
  },
  'a rate limit': {
    model: 'main-model',
    plan: { parts: [TEXT], faults: [{ kind: 'error_rate_limited', at: IN_TEXT }], prefill: 'vllm' },
  },
  'an event that does not parse': {
    model: 'main-model',
    plan: { parts: [TEXT], faults: [{ kind: 'malformed_event', at: IN_TEXT }] },
  },
  'cut again and again': {
    model: 'main-model',
    plan: {
      parts: [TEXT],
      faults: [1, 2, 3, 4].map(() => ({ kind: 'reset', at: IN_TEXT })),
      prefill: 'any',
    },
  },
  'an invalid request': {
    model: 'main-model',
    plan: { parts: [TEXT], faults: [{ kind: 'status', status: 400, body: { error: { message: 'No.' } } }] },
  },
  'a target that is down': { model: 'pair-model', plan: { parts: [TEXT], prefill: 'vllm' } },
};
