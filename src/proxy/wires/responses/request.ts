import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import { nudgeAfterTools } from '../../../plans/continuation.ts';
import type { ToolSchemas } from '../../../plans/tool-call.ts';
import type { AnswerGivenBack } from '../../../plans/transcript.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  type Continuation,
  type ContinuationFacts,
  checkModel,
  checkTools,
  given,
  givenBackCharacters,
  invalid,
  NOTHING_RAN,
  type RequestFacts,
} from '../common/request.ts';
import type { WireRequest } from '../common/wire.ts';
import { type Json, textIn } from './event.ts';
import { secretOf } from './items.ts';

/** The parts of a request on `/v1/responses` that determine how a run may be continued. */
export interface ResponsesRequest extends WireRequest {
  /** Text or a list of items; optional with a stored prompt. */
  readonly input?: string | readonly unknown[] | null;
  readonly instructions?: unknown;
  readonly max_output_tokens?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly tool_choice?: unknown;
  readonly text?: { readonly format?: unknown; readonly [option: string]: unknown } | null;
  readonly top_logprobs?: number | null;
  readonly include?: readonly unknown[] | null;
  readonly background?: boolean | null;
  readonly store?: boolean | null;
}

const LOGPROBS = 'message.output_text.logprobs';

/** Validates only what a run relies on; the provider validates the rest. Throws `ApiError`. */
export function checkResponsesRequest(fields: Fields): ResponsesRequest {
  const { input } = fields;
  checkModel(fields);
  if (given(input) && typeof input !== 'string' && !Array.isArray(input))
    throw invalid('input', 'a string or a list of items');
  checkTools(fields);
  return fields as unknown as ResponsesRequest;
}

/** Reads unvalidated fields defensively. */
export function responsesFactsOf(request: ResponsesRequest): RequestFacts {
  const { tools, text, max_output_tokens } = request;
  const format = isObject(text) && isObject(text.format) ? text.format.type : undefined;
  const expectsJson = format === 'json_object' || format === 'json_schema';
  return {
    schemas: schemasOf(tools),
    hasTools: Array.isArray(tools) && tools.length > 0,
    choices: 1,
    spliceable: !asksForLogprobs(request),
    onlyReplay: expectsJson || forcesTool(request.tool_choice),
    expectsJson,
    stops: [],
    max_tokens: typeof max_output_tokens === 'number' ? max_output_tokens : Infinity,
    usageAsked: true,
    legacyFunctions: false,
    promptSize: () => promptSize([...instructionsOf(request), ...itemsOf(request)], tools, format && text),
  };
}

/** The input as a list; text is short for a user message. */
export function itemsOf({ input }: Pick<ResponsesRequest, 'input'>): readonly unknown[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return Array.isArray(input) ? input : [];
}

/** Whether the provider generates without a connection, and lets clients with the id resume. */
export const isBackground = ({ background, store }: ResponsesRequest): boolean =>
  background === true && store !== false;

/** Fields that enable this if the client left it open; undefined if it didn't. */
export const backgroundFields = ({ background, store }: ResponsesRequest): Fields | undefined =>
  background === undefined && (store === undefined || store === true)
    ? { background: true, ...(store === undefined && { store: true }) }
    : undefined;

const asksForLogprobs = ({ top_logprobs, include }: ResponsesRequest): boolean =>
  (typeof top_logprobs === 'number' && top_logprobs > 0) ||
  (Array.isArray(include) && include.includes(LOGPROBS));

/** Whether the answer must contain a call. */
export function forcesTool(choice: unknown): boolean {
  if (!isObject(choice)) return choice === 'required';
  return choice.type !== 'allowed_tools' || choice.mode === 'required';
}

/** By name, including tools in namespaces. */
function schemasOf(tools: unknown): ToolSchemas {
  const schemas = new Map<string, unknown>();
  for (const tool of Array.isArray(tools) ? tools.filter(isObject) : []) {
    if (tool.type === 'namespace')
      for (const [name, schema] of schemasOf(tool.tools)) schemas.set(name, schema);
    else if (typeof tool.name === 'string') schemas.set(tool.name, tool.parameters ?? {});
  }
  return schemas;
}

const instructionsOf = ({ instructions }: ResponsesRequest): readonly unknown[] =>
  typeof instructions === 'string' && instructions !== '' ? [instructions] : [];

/** Providers refuse lower limits. */
const MAX_OUTPUT_TOKENS_MIN = 16;

/**
 * The request for the rest of the answer: appends the partial answer and a user turn to the input. Fields about stored
 * conversations (`previous_response_id`, `conversation`, `store`) stay unchanged.
 */
export function responsesContinuationOf({
  request,
  mode,
  prefix,
  ran = NOTHING_RAN,
  sealed,
  cutTools,
  insists,
  tokens_left,
}: ContinuationFacts<ResponsesRequest>): Continuation<ResponsesRequest> {
  if (mode !== 'nudge') return { body: request, added_messages: [] };
  const hasTools = Array.isArray(request.tools) && request.tools.length > 0;
  const nudge = nudgeAfterTools(ran.names, { delivered: prefix.sent, hasTools, cutTools, insists });
  const thoughts = keepsThoughts(request) ? withoutThose(sealed, ran.before) : [];
  const said = [
    ...thoughts,
    ...ran.before.flatMap((part) => (typeof part === 'string' ? [messageOf('assistant', part)] : part)),
    ...(prefix.sent === '' ? [] : [messageOf('assistant', prefix.sent)]),
  ];
  return {
    body: {
      ...request,
      ...limits(request, tokens_left),
      ...choiceAfter(ran.names, request),
      input: [...itemsOf(request), ...said, messageOf('user', nudge)],
    },
    added_messages: [...givenBackCharacters({ ran, prefix }), nudge.length],
    added_reasoning: charactersOf(thoughts),
  };
}

/**
 * Encrypted thoughts are sent back only where the client would do so itself: a provider that stores answers looks them
 * up by id, and has none for a cut answer.
 */
const keepsThoughts = ({ store }: ResponsesRequest): boolean => store === false;

/** Excludes thoughts that already accompany a provider tool. */
function withoutThose(sealed: readonly object[], before: AnswerGivenBack['before']): readonly object[] {
  const given = new Set(before.flatMap((part) => (typeof part === 'string' ? [] : part.map(idOf))));
  return sealed.filter((item) => !given.has(idOf(item)));
}

/** OpenAI's errors for thoughts that another provider or account encrypted or stores. */
const REFUSES_THOUGHTS =
  /encrypted.content\b.* could not be (?:verified|decrypted|decoded|parsed)|item with id .?rs_\w+.? not found/is;

/** Items that are complete without their id. */
const KNOWN_WITHOUT_ID: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call']);

export const responsesRefuseThoughts = (refusal: string): boolean => REFUSES_THOUGHTS.test(refusal);

export function responsesWithoutThoughts(
  request: ResponsesRequest,
  isLeftOut: (seal: string) => boolean,
): ResponsesRequest | undefined {
  const { input } = request;
  if (!Array.isArray(input)) return undefined;
  const items = input as readonly unknown[];
  const isGone = items.map((item) => isReasoning(item) && isLeftOut(sealOf(item)));
  const last = isGone.lastIndexOf(true);
  if (last === -1) return undefined;
  // Everything before the last of them, and the items that depend on it, may come from the other provider.
  const next = items.findIndex((item, index) => index > last && isReasoning(item));
  const rest = next === -1 ? items.length : next;
  const kept = items.map((item, index) => (index < rest ? withoutId(item) : item));
  return { ...request, input: kept.filter((_, index) => !isGone[index]) };
}

const isReasoning = (item: unknown): item is Json => isObject(item) && item.type === 'reasoning';

const sealOf = (item: Json): string => secretOf(item) || textIn(item.id);

/** With its id, an item would be looked up together with its reasoning. */
function withoutId(item: unknown): unknown {
  if (!isObject(item) || !KNOWN_WITHOUT_ID.has(item.type)) return item;
  const { id: _, ...rest } = item;
  return rest;
}

const idOf = (item: object): unknown => ('id' in item ? item.id : item);

/** The size of the encrypted content, without the overhead of base64. */
const charactersOf = (thoughts: readonly object[]): number =>
  thoughts.reduce((sum, item) => sum + Math.ceil(0.75 * secretOf(item).length), 0);

const messageOf = (role: 'assistant' | 'user', content: string) => ({ type: 'message', role, content });

/** A tool that ran satisfies a choice that forces it; if forced again, it would run again. */
const choiceAfter = (ran: readonly string[], { tool_choice }: ResponsesRequest): object =>
  ran.length > 0 && forcesTool(tool_choice) ? { tool_choice: 'auto' } : {};

/** The client's limit applies to the whole answer. */
function limits(request: ResponsesRequest, tokens_left: number): Partial<ResponsesRequest> {
  if (typeof request.max_output_tokens !== 'number') return {};
  return { max_output_tokens: Math.max(MAX_OUTPUT_TOKENS_MIN, tokens_left) };
}
