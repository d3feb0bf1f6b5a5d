import type { WireName } from '../../src/checkpoint/journal.ts';
import { deltasOf } from '../provider/deltas.ts';
import type { Part } from '../provider/script.ts';
import { PROVIDER_WIRES } from '../provider/wires/registry.ts';

/** A hundred characters, in pieces of ten. */
export const TEXT = 'The tide comes in twice a day. '.repeat(4).slice(0, 100);
export const ARGUMENTS = '{"place":"the rock","depth_m":12}';

const USAGE = { prompt_tokens: 12, completion_tokens: 20, total_tokens: 32 };
const CALL = { id: 'call_1', name: 'dive', arguments: ARGUMENTS };

/** The text and then a call, where the wire has calls; as a provider sends them. */
export function scriptedEvents(wire: WireName): readonly string[] {
  const parts: Part[] = [{ text: TEXT }, ...(wire === 'completions' ? [] : [{ tool: CALL }])];
  const said = {
    deltas: deltasOf(parts, { chunk: 10 }),
    finish: wire === 'completions' ? 'stop' : 'tool_calls',
  };
  const envelope = { id: 'answer-1', model: 'm', created: 1, wire };
  return PROVIDER_WIRES[wire].events(said, envelope, USAGE, 'final').events;
}
