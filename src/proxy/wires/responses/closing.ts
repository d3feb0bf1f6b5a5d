import { parsedJson } from '../../../lib/json.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import { UNKNOWN_RESULT } from '../common/answer-parts.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { CALLS, type Json, type PartList, textIn, textPart, typeOf } from './event.ts';
import { isCustom, isFunction } from './items.ts';

/** An event that is still to be numbered. */
export type Unnumbered = Json & { readonly type: string };

const indexField = (list: PartList) => (list === 'content' ? 'content_index' : 'summary_index');

/** Where an event about a part belongs. */
export const placeOf = ({ item, index }: ShownItem, list: PartList, part: number): Json => ({
  item_id: item.id,
  output_index: index,
  [indexField(list)]: part,
});

/** The event that begins a part. */
export const partAdded = (shown: ShownItem, list: PartList, index: number, part: Json): Unnumbered => ({
  type: list === 'content' ? 'response.content_part.added' : 'response.reasoning_summary_part.added',
  ...placeOf(shown, list, index),
  part,
});

/** The events that end the open part of an item, with all of its content. */
export function partClosing(shown: ShownItem): readonly Unnumbered[] {
  const { open } = shown;
  if (!open) return [];
  const { list, index } = open;
  const part = partsOf(shown, list)[index] ?? {};
  const place = placeOf(shown, list, index);
  const type = list === 'content' ? 'response.content_part.done' : 'response.reasoning_summary_part.done';
  const done: Unnumbered = { type, ...place, part };
  const text = textPart(typeOf(part));
  if (!text) return [done];
  const { event, field, kind } = text;
  const more = kind === 'text' ? { logprobs: [] } : {};
  return [{ type: `${event}.done`, ...place, [field]: part[field], ...more }, done];
}

/** Items that may be called incomplete; of the others there are only those that have failed. */
const MAY_BE_INCOMPLETE: ReadonlySet<unknown> = new Set([
  'mcp_call',
  'code_interpreter_call',
  'file_search_call',
]);

/** The event that ends an item which is not a call. What a provider was doing itself has no result when it was cut. */
export function itemClosing({ item, index }: ShownItem): Unnumbered {
  const { type } = item;
  const cut = MAY_BE_INCOMPLETE.has(type) ? 'incomplete' : 'failed';
  const status = type === 'message' || type === 'reasoning' ? 'completed' : cut;
  const error = type === 'mcp_call' ? { error: UNKNOWN_RESULT } : {};
  const ended = item.status === undefined ? { ...item, ...error } : { ...item, ...error, status };
  return { type: 'response.output_item.done', output_index: index, item: ended };
}

/** The events that end a call of which `whole` are the arguments, as a run has them. */
export function callClosing(shown: ShownItem, whole: string): readonly Unnumbered[] {
  const { item, index, isWhole } = shown;
  if (!isFunction(item))
    return [{ type: 'response.output_item.done', output_index: index, item: parsedJson(whole) }];
  const { field, event } = isCustom(item) ? CALLS.custom_tool_call : CALLS.function_call;
  const text = argumentsOf(item, whole);
  const rest = text.slice(textIn(item[field]).length);
  const place = { item_id: item.id, output_index: index };
  return [
    ...(rest === '' ? [] : [{ type: `${event}.delta`, ...place, delta: rest }]),
    ...(isWhole ? [] : [{ type: `${event}.done`, ...place, [field]: text }]),
    {
      type: 'response.output_item.done',
      output_index: index,
      item: { ...item, [field]: text, status: 'completed' },
    },
  ];
}

/** The event that ends a call, or thoughts, which were cut. */
export const cutOff = ({ item, index }: ShownItem): Unnumbered => ({
  type: 'response.output_item.done',
  output_index: index,
  item: { ...item, status: 'incomplete' },
});

/** What a run has as the arguments of a call, as the call itself has it. */
export const argumentsOf = (item: Json, whole: string): string => {
  const input: unknown = isCustom(item) ? parsedJson(whole) : undefined;
  return typeof input === 'string' ? input : whole;
};

/** The call that an item is, of which the latest may have the id of an earlier one. */
export const callOf = ({ item }: ShownItem, calls: readonly ToolCall[]): ToolCall | undefined =>
  calls.findLast(({ id }) => id !== '' && (id === item.call_id || id === item.id));
