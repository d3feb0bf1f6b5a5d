import { deltasOf } from '../provider/deltas.ts';
import type { Position } from '../provider/fault.ts';
import { responsesEvents } from '../provider/wires/responses-events.ts';
import { SITUATIONS, type Situation } from './situations.ts';

const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/** After this many events of a type; in responses, other events surround every delta. */
function after(situation: Situation, type: string, count: number): Position {
  const envelope = { id: '', model: '', created: 0 };
  const said = { deltas: deltasOf(situation.parts, {}), finish: 'stop' };
  const { events } = responsesEvents(said, envelope, NO_USAGE);
  let left = count;
  const place = events.findIndex((event) => event.startsWith(`event: ${type}\n`) && --left === 0);
  if (place === -1) throw new Error(`${situation.name} has no ${count} ${type}`);
  return { event: place + 1 };
}

const TEXT = 'response.output_text.delta';
const THOUGHT = 'response.reasoning_summary_text.delta';
const ARGUMENTS = 'response.function_call_arguments.delta';

const PLACES: Readonly<Record<string, readonly [type: string, count: number]>> = {
  text: [TEXT, 5],
  'text and a tool call, cut in the text': [TEXT, 5],
  'text and a tool call, cut in the call': [ARGUMENTS, 2],
  'a tool call': [ARGUMENTS, 2],
  'two tool calls at once': [ARGUMENTS, 5],
  'reasoning and text, cut in the text': [TEXT, 5],
  'reasoning and text, cut in the reasoning': [THOUGHT, 5],
};

/** The same situations on the Responses API, cut in the same places. */
export const RESPONSE_SITUATIONS: readonly Situation[] = SITUATIONS.map((situation) => {
  const [type, count] = PLACES[situation.name] ?? [TEXT, 1];
  return { ...situation, at: after(situation, type, count) };
});
