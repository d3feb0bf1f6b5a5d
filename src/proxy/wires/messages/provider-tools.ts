import { isObject, parsedJson } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { UNKNOWN_RESULT } from '../common/base-answer-writer.ts';
import type { MessagesRequest } from './request.ts';

type Block = Readonly<Record<string, unknown>>;

const NO_DELTAS: readonly Delta[] = [];

/** The use of a tool that the provider runs; `tool_use` is the client's to carry out. */
export const isProviderUse = (type: string): boolean => type.endsWith('_tool_use');
const isProviderResult = (type: string): boolean => type.endsWith('_tool_result');
export const isProviderBlock = (type: string): boolean => isProviderUse(type) || isProviderResult(type);

const named = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Uses of tools that the provider runs, by id, in the order in which they began. */
export type ProviderUses = Map<unknown, Block>;

/**
 * What the end of a block says of the tools that the provider runs: a tool runs from the end of its use on, for half an
 * input cannot be run. `uses`: those of the attempt that have ended. `start`: the block as it began; `json`: what came of
 * its input.
 */
export function providerToolDeltas(uses: ProviderUses, start: Block, json: string): readonly Delta[] {
  const type = named(start.type);
  if (isProviderUse(type)) {
    const { id, name } = { id: named(start.id), name: named(start.name) || type };
    uses.set(id, { ...start, input: parsedJson(json) ?? start.input ?? {} });
    return [{ kind: 'provider_tool_start', id, name }];
  }
  if (!isProviderResult(type)) return NO_DELTAS;
  const id = named(start.tool_use_id);
  // A paused turn continues from a use that the request brings.
  const use = uses.get(id);
  const name = named(use?.name) || type.replace(/_tool_result$/, '');
  return [{ kind: 'provider_tool_end', id, name, items: use ? [use, start] : [start] }];
}

export interface PausedUse {
  readonly id: string;
  readonly name: string;
}

/** The uses at which the last turn of a request was paused (`pause_turn`): its provider continues with them. */
export function pausedUses({ messages }: Pick<MessagesRequest, 'messages'>): readonly PausedUse[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || !Array.isArray(last.content)) return [];
  const uses: ProviderUses = new Map();
  for (const block of last.content) if (isObject(block)) noteUse(uses, block);
  return Array.from(uses.values(), ({ type, id, name }) => ({
    id: named(id),
    name: named(name) || named(type),
  }));
}

/** Keeps those of the uses that have no result. `start`: a block begins. */
export function noteUse(unanswered: ProviderUses, start: Block): void {
  const type = named(start.type);
  if (isProviderUse(type)) unanswered.set(start.id, start);
  else if (isProviderResult(type)) unanswered.delete(start.tool_use_id);
  // A program that calls a tool of the client's continues once the client has carried it out.
  else if (type === 'tool_use' && isObject(start.caller)) unanswered.delete(start.caller.tool_id);
}

/** The result of a use that has none: without any, its provider refuses the message when it is sent back. */
export function unknownResultOf({ type, id, name }: Block): Block {
  if (type === 'mcp_tool_use') {
    const content = [{ type: 'text', text: UNKNOWN_RESULT }];
    return { type: 'mcp_tool_result', tool_use_id: id, is_error: true, content };
  }
  const tool = named(name).startsWith('tool_search') ? 'tool_search' : named(name);
  const result = `${tool}_tool_result`;
  return { type: result, tool_use_id: id, content: { type: `${result}_error`, error_code: 'unavailable' } };
}
