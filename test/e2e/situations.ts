import { deltasOf } from '../provider/deltas.ts';
import type { Position } from '../provider/fault.ts';
import type { Part, Plan, ToolCall } from '../provider/script.ts';
import type { Tool } from './clients/chat-client.ts';

/** An answer, and a place in it from which it can be recovered completely. */
export interface Situation {
  readonly name: string;
  readonly parts: readonly Part[];
  readonly at: Position;
  readonly tools: readonly Tool[];
}

export const TIDES: Tool = {
  name: 'tides',
  parameters: {
    type: 'object',
    properties: { port: { type: 'string' }, days: { type: 'integer' } },
    required: ['port', 'days'],
    additionalProperties: false,
  },
};

export const callTo = (id: string, port: string): ToolCall => ({
  id,
  name: TIDES.name,
  arguments: JSON.stringify({ port, days: 3 }),
});

const REASONING = { reasoning: 'They ask about the sea. Two tides a day should do, and a little kelp.' };
const TEXT = {
  text: 'The tide comes in twice a day — “à marée haute”, 満潮 🌊 — and goes out again as often.',
};
const TOOL = { tool: callTo('call_brest', 'Brest') };
const TOOLS = { tools: [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')] };

/** After the role, all deltas of `parts`, and `more` deltas. */
const after = (parts: readonly Part[], more: number): Position => ({
  event: 1 + deltasOf(parts, {}).length + more,
});

export const SITUATIONS: readonly Situation[] = [
  { name: 'text', parts: [TEXT], at: after([], 5), tools: [] },
  { name: 'text and a tool call, cut in the text', parts: [TEXT, TOOL], at: after([], 5), tools: [TIDES] },
  {
    name: 'text and a tool call, cut in the call',
    parts: [TEXT, TOOL],
    at: after([TEXT], 3),
    tools: [TIDES],
  },
  { name: 'a tool call', parts: [TOOL], at: after([], 3), tools: [TIDES] },
  { name: 'two tool calls at once', parts: [TOOLS], at: after([], 6), tools: [TIDES] },
  {
    name: 'reasoning and text, cut in the text',
    parts: [REASONING, TEXT],
    at: after([REASONING], 5),
    tools: [],
  },
  { name: 'reasoning and text, cut in the reasoning', parts: [REASONING, TEXT], at: after([], 5), tools: [] },
];

const said = (parts: readonly Part[], pick: (part: Part) => string | undefined) =>
  parts.map((part) => pick(part) ?? '').join('');

export const textOf = ({ parts }: Pick<Plan, 'parts'>): string =>
  said(parts, (part) => ('text' in part ? part.text : undefined));

export const callsOf = ({ parts }: Pick<Plan, 'parts'>): ToolCall[] =>
  parts.flatMap((part) => ('tool' in part ? [part.tool] : 'tools' in part ? part.tools : []));
