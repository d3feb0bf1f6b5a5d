import type { WireName } from '../../src/checkpoint/journal.ts';
import { deltasOf } from '../provider/deltas.ts';
import type { Part } from '../provider/script.ts';
import { PROVIDER_WIRES } from '../provider/wires/registry.ts';

/** A hundred characters; the provider sends them in pieces of ten. */
export const TEXT = 'The tide comes in twice a day. '.repeat(4).slice(0, 100);
export const ARGUMENTS = '{"place":"the rock","depth_m":12}';

const USAGE = { prompt_tokens: 12, completion_tokens: 20, total_tokens: 32 };
const CALL = { id: 'call_1', name: 'dive', arguments: ARGUMENTS };

/** The text, then a tool call if the wire supports tool calls. */
function script(wire: WireName) {
  const calls = wire === 'completions' ? [] : [CALL];
  const parts: Part[] = [{ text: TEXT }, ...calls.map((tool) => ({ tool }))];
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const said = { deltas: deltasOf(parts, { chunk: 10 }), finish };
  const envelope = { id: 'answer-1', model: 'm', created: 1, wire };
  return { calls, said, envelope };
}

/** The events of a provider's answer to a streaming request. */
export function scriptedEvents(wire: WireName): readonly string[] {
  const { said, envelope } = script(wire);
  return PROVIDER_WIRES[wire].events(said, envelope, USAGE, 'final').events;
}

/** The body of a provider's answer to a request without streaming. */
export function scriptedDocument(wire: WireName): string {
  const { calls, said, envelope } = script(wire);
  const expected = { text: TEXT, refusal: '', reasoning: '', toolCalls: calls, usage: USAGE };
  const { finish } = said;
  return JSON.stringify(PROVIDER_WIRES[wire].whole({ ...expected, finish }, envelope, said));
}
