import { isObject, parsedJson } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import { UNKNOWN_RESULT } from '../common/base-answer-writer.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { CALLS, type Json, type PartList, textIn, textPart, typeOf } from './event.ts';
import { isCustom, isFunction } from './items.ts';

/** What the end of an answer says anew; everything else stays as its beginning has it. */
const CHANGING: ReadonlySet<string> = new Set([
  'status',
  'output',
  'usage',
  'error',
  'incomplete_details',
  'completed_at',
  'service_tier',
]);

/** Causes that clients know a code of. */
const CODES: Readonly<Record<string, string>> = {
  context_overflow: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  quota: 'insufficient_quota',
};

/** Codex asks six times after the one, and once after the other, whatever else an event says. */
const codeOf = ({ cause, retryable }: Json): string =>
  CODES[textIn(cause)] ?? (retryable === false ? 'invalid_prompt' : 'server_error');

interface Whole {
  /** As the answer was begun. */
  readonly first: Json;
  /** As its last attempt has ended it. */
  readonly last: Json;
  readonly output: readonly Json[];
  readonly reason: string;
  /** In place of what the last attempt reported. */
  readonly usage: Usage | undefined;
}

/** The response that ends an answer as if one attempt had produced all of it. */
export function wholeResponse({ first, last, output, reason, usage }: Whole): Json {
  const kept = Object.fromEntries(Object.entries(first).filter(([field]) => !CHANGING.has(field)));
  const incomplete = incompleteReasonOf(reason);
  return {
    ...first,
    error: null,
    status: incomplete === undefined ? 'completed' : 'incomplete',
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    ...last,
    ...kept,
    output,
    ...(usage && { usage: responsesUsage(usage) }),
  };
}

/** The event that ends an answer for this reason. */
export const endTypeOf = (reason: string): string =>
  incompleteReasonOf(reason) === undefined ? 'response.completed' : 'response.incomplete';

/** A finish reason in the words of the wire; `undefined` where the answer is complete. */
function incompleteReasonOf(reason: string): string | undefined {
  if (reason === 'length') return 'max_output_tokens';
  return reason === 'content_filter' ? reason : undefined;
}

/** What the last event says about the end. `type`: of the event; `hasCalls`: the client has calls to carry out. */
export function endOf(
  type: string,
  response: Json,
  hasCalls: boolean,
): readonly [Extract<Delta, { kind: 'finish' }>, ...Delta[]] {
  const usage = usageIn(response.usage);
  const finish = { kind: 'finish', reason: finishReasonOf(type, response, hasCalls) } as const;
  return usage ? [finish, { kind: 'usage', usage }] : [finish];
}

function finishReasonOf(type: string, { status, incomplete_details }: Json, hasCalls: boolean): string {
  if (type === 'response.cancelled' || status === 'cancelled') return 'cancelled';
  if (type !== 'response.incomplete') return hasCalls ? 'tool_calls' : 'stop';
  const why = isObject(incomplete_details) ? textIn(incomplete_details.reason) : '';
  return why === 'max_output_tokens' || why === '' ? 'length' : why;
}

/** Says that the answer continues. */
export const responseInProgress = ({ id, object, created_at, model }: Json): Json => ({
  id,
  object,
  created_at,
  status: 'in_progress',
  model,
  output: [],
});

/**
 * The fields of the event that says that the answer could not be finished. A response that has failed is an error to
 * some clients, and just a response to others, which raise whatever has an `error` at its top.
 */
export function failedResponse(first: Json, error: object): Json {
  const { message, holdfast } = error as { readonly message?: unknown; readonly holdfast?: unknown };
  const details: Json = isObject(holdfast) ? holdfast : {};
  const response = {
    ...first,
    id: first.id ?? details.stream_id ?? details.run_id ?? 'resp_unknown',
    object: 'response',
    created_at: first.created_at ?? details.created_at ?? 0,
    status: 'failed',
    error: { code: codeOf(details), message },
    incomplete_details: null,
    output: [],
    usage: null,
  };
  return { response, error };
}

/** The report of a response in the words of a delta; its details stay under their own names. */
function usageIn(usage: unknown): Usage | undefined {
  if (!isObject(usage) || typeof usage.output_tokens !== 'number') return undefined;
  const { input_tokens, output_tokens, total_tokens, ...details } = usage;
  const prompt_tokens = typeof input_tokens === 'number' ? input_tokens : 0;
  return {
    ...details,
    prompt_tokens,
    completion_tokens: output_tokens,
    total_tokens: typeof total_tokens === 'number' ? total_tokens : prompt_tokens + output_tokens,
  };
}

/** The same for clients, which rely on the details. */
function responsesUsage(usage: Usage): object {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = usage;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    ...details,
    total_tokens,
  };
}

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

/** More of the arguments of a call. `said`: as a run has them, where free text is a JSON string. */
export function argumentsDelta(item: Json, output_index: number, said: string): Unnumbered {
  const { event } = isCustom(item) ? CALLS.custom_tool_call : CALLS.function_call;
  // The quote that ends it may be among it.
  const text = parsedJson(`"${said}"`) ?? parsedJson(`"${said}`);
  return {
    type: `${event}.delta`,
    item_id: item.id,
    output_index,
    delta: isCustom(item) ? textIn(text) : said,
  };
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
