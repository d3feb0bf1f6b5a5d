import { isObject, parsedJson } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { UNKNOWN_RESULT } from '../common/base-answer-writer.ts';
import type { MessagesRequest } from './request.ts';

type Block = Readonly<Record<string, unknown>>;

const NO_DELTAS: readonly Delta[] = [];

/** Whether it is the use of a provider tool; `tool_use` is for the client. */
export const isProviderUse = (type: string): boolean => type.endsWith('_tool_use');
const isProviderResult = (type: string): boolean => type.endsWith('_tool_result');
export const isProviderBlock = (type: string): boolean => isProviderUse(type) || isProviderResult(type);

const named = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Uses of provider tools by id, in order of appearance. */
export type ProviderUses = Map<unknown, Block>;

/**
 * The deltas of provider tools at the end of a block. A tool runs once its use is complete, because it needs its whole
 * input. `uses`: the attempt's complete uses. `start`: the initial block; `json`: its input.
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
  // A paused turn continues from a use in the request.
  const use = uses.get(id);
  const name = named(use?.name) || type.replace(/_tool_result$/, '');
  return [{ kind: 'provider_tool_end', id, name, items: use ? [use, start] : [start] }];
}

export interface PausedUse {
  readonly id: string;
  readonly name: string;
}

/** The uses at which the request's last turn paused (`pause_turn`), and from which its provider continues. */
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

/** Tracks uses without a result. `start`: the initial block. */
export function noteUse(unanswered: ProviderUses, start: Block): void {
  const type = named(start.type);
  if (isProviderUse(type)) unanswered.set(start.id, start);
  else if (isProviderResult(type)) unanswered.delete(start.tool_use_id);
  // A program that calls a client tool continues once the client has executed it.
  else if (type === 'tool_use' && isObject(start.caller)) unanswered.delete(start.caller.tool_id);
}

/** A result for a use that has none: the provider would refuse the message without one. */
export function unknownResultOf({ type, id, name }: Block): Block {
  if (type === 'mcp_tool_use') {
    const content = [{ type: 'text', text: UNKNOWN_RESULT }];
    return { type: 'mcp_tool_result', tool_use_id: id, is_error: true, content };
  }
  const tool = named(name).startsWith('tool_search') ? 'tool_search' : named(name);
  const result = `${tool}_tool_result`;
  return { type: result, tool_use_id: id, content: { type: `${result}_error`, error_code: 'unavailable' } };
}
