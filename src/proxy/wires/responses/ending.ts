import { isObject, parsedJson } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ToolCall } from '../../../plans/tool-call.ts';
import { UNKNOWN_RESULT } from '../common/base-answer-writer.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { CALLS, type Json, type PartList, textIn, textPart, typeOf } from './event.ts';
import { isCustom, isFunction } from './items.ts';

/** Fields that the end of an answer updates; all others stay as they began. */
const CHANGING: ReadonlySet<string> = new Set([
  'status',
  'output',
  'usage',
  'error',
  'incomplete_details',
  'completed_at',
  'service_tier',
]);

/** Causes with an error code that clients know. */
const CODES: Readonly<Record<string, string>> = {
  context_overflow: 'context_length_exceeded',
  rate_limited: 'rate_limit_exceeded',
  quota: 'insufficient_quota',
};

/** Codex retries six times after `server_error` and once after `invalid_prompt`, regardless of other fields. */
const codeOf = ({ cause, retryable }: Json): string =>
  CODES[textIn(cause)] ?? (retryable === false ? 'invalid_prompt' : 'server_error');

interface Whole {
  /** The response at the beginning of the answer. */
  readonly first: Json;
  /** The response at the end of the last attempt. */
  readonly last: Json;
  readonly output: readonly Json[];
  readonly reason: string;
  /** Replaces the report of the last attempt. */
  readonly usage: Usage | undefined;
}

/** The response that ends an answer as if a single attempt had produced it. */
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

/** The wire's reason for a finish reason; `undefined` if the answer is complete. */
function incompleteReasonOf(reason: string): string | undefined {
  if (reason === 'length') return 'max_output_tokens';
  return reason === 'content_filter' ? reason : undefined;
}

/** The deltas of the last event. `type`: its type; `hasCalls`: the client has calls to execute. */
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

/** Signals that the answer continues. */
export const responseInProgress = ({ id, object, created_at, model }: Json): Json => ({
  id,
  object,
  created_at,
  status: 'in_progress',
  model,
  output: [],
});

/**
 * The fields of the event for an answer that could not be finished. Some clients treat a failed response as an error;
 * others treat it as an ordinary response, and raise any event with a top-level `error`.
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

/** Converts a response's report to that of a delta; details keep their names. */
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

/** Converts it back for clients, which rely on the details. */
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

/** An event without a sequence number. */
export type Unnumbered = Json & { readonly type: string };

const indexField = (list: PartList) => (list === 'content' ? 'content_index' : 'summary_index');

/** The fields that locate an event about a part. */
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

/** Items that support the status `incomplete`; others can only be `failed`. */
const MAY_BE_INCOMPLETE: ReadonlySet<unknown> = new Set([
  'mcp_call',
  'code_interpreter_call',
  'file_search_call',
]);

/** The event that ends an item other than a call. A provider tool that was cut has no result. */
export function itemClosing({ item, index }: ShownItem): Unnumbered {
  const { type } = item;
  const cut = MAY_BE_INCOMPLETE.has(type) ? 'incomplete' : 'failed';
  const status = type === 'message' || type === 'reasoning' ? 'completed' : cut;
  const error = type === 'mcp_call' ? { error: UNKNOWN_RESULT } : {};
  const ended = item.status === undefined ? { ...item, ...error } : { ...item, ...error, status };
  return { type: 'response.output_item.done', output_index: index, item: ended };
}

/** The events that end a call. `whole`: its arguments in the form of a run. */
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

/** The event for more arguments of a call. `said`: in the form of a run, where free text is a JSON string. */
export function argumentsDelta(item: Json, output_index: number, said: string): Unnumbered {
  const { event } = isCustom(item) ? CALLS.custom_tool_call : CALLS.function_call;
  // The piece may contain the closing quote.
  const text = parsedJson(`"${said}"`) ?? parsedJson(`"${said}`);
  return {
    type: `${event}.delta`,
    item_id: item.id,
    output_index,
    delta: isCustom(item) ? textIn(text) : said,
  };
}

/** The event that ends a cut call, or cut thoughts. */
export const cutOff = ({ item, index }: ShownItem): Unnumbered => ({
  type: 'response.output_item.done',
  output_index: index,
  item: { ...item, status: 'incomplete' },
});

/** Converts a call's arguments from the form of a run to that of the item. */
export const argumentsOf = (item: Json, whole: string): string => {
  const input: unknown = isCustom(item) ? parsedJson(whole) : undefined;
  return typeof input === 'string' ? input : whole;
};

/** The call of an item. The latest one counts, because ids may be reused. */
export const callOf = ({ item }: ShownItem, calls: readonly ToolCall[]): ToolCall | undefined =>
  calls.findLast(({ id }) => id !== '' && (id === item.call_id || id === item.id));
