import { deltasOf } from '../provider/deltas.ts';
import type { Position } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import { messagesEvents } from '../provider/wires/messages-events.ts';
import { SITUATIONS, type Situation } from './situations.ts';

const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** After this many deltas of a type; blocks also have start and stop events. */
export function afterDeltas(parts: readonly Part[], type: string, count: number): Position {
  const said = { deltas: deltasOf(parts, {}), finish: 'stop' };
  const { events } = messagesEvents(said, { id: '', model: '', created: 0 }, NO_USAGE, 'final');
  let left = count;
  const place = events.findIndex((event) => event.includes(`"type":"${type}"`) && --left === 0);
  if (place === -1) throw new Error(`there are no ${count} ${type}`);
  return { event: place + 1 };
}

const PLACES: Readonly<Record<string, readonly [type: string, count: number]>> = {
  text: ['text_delta', 5],
  'text and a tool call, cut in the text': ['text_delta', 5],
  'text and a tool call, cut in the call': ['input_json_delta', 2],
  'a tool call': ['input_json_delta', 2],
  'two tool calls at once': ['input_json_delta', 2],
  'reasoning and text, cut in the text': ['text_delta', 5],
  'reasoning and text, cut in the reasoning': ['thinking_delta', 5],
};

/** The same situations on the Messages API, cut in the same places. */
export const MESSAGE_SITUATIONS: readonly Situation[] = SITUATIONS.map((situation) => {
  const [type, count] = PLACES[situation.name] ?? ['text_delta', 1];
  return { ...situation, at: afterDeltas(situation.parts, type, count) };
});
