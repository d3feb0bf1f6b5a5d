import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import { nudgeAfterTools } from '../../../plans/continuation.ts';
import { estimatedTokens, tokenCount } from '../../../plans/tokens.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  type CacheFacts,
  type Continuation,
  type ContinuationFacts,
  checkMessages,
  checkModel,
  checkTools,
  given,
  givenBackCharacters,
  invalid,
  isStrings,
  NOTHING_RAN,
  type RequestFacts,
} from '../common/request.ts';
import type { WireRequest } from '../common/wire.ts';
import { inputOf } from './ending.ts';

/** The parts of a message request that determine how a run may be continued. */
export interface MessagesRequest extends WireRequest {
  readonly messages: readonly MessageParam[];
  readonly max_tokens?: number | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly system?: unknown;
  readonly tools?: readonly Readonly<Record<string, unknown>>[] | null;
  readonly tool_choice?: unknown;
  readonly thinking?: unknown;
  readonly output_config?: unknown;
  readonly output_format?: unknown;
}

export interface MessageParam {
  readonly role: string;
  /** A string, or content blocks. */
  readonly content?: unknown;
}

/** Validates only what a run relies on; the provider validates the rest. Throws `ApiError`. */
export function checkMessagesRequest(fields: Fields): MessagesRequest {
  const { stop_sequences } = fields;
  checkModel(fields);
  checkMessages(fields);
  checkTools(fields);
  if (given(stop_sequences) && !isStrings(stop_sequences))
    throw invalid('stop_sequences', 'a list of strings');
  return fields as unknown as MessagesRequest;
}

/** Reads unvalidated fields defensively. */
export function messagesFactsOf(request: MessagesRequest): RequestFacts {
  const { messages, system, max_tokens, stop_sequences, tools, tool_choice } = request;
  const choice = isObject(tool_choice) ? tool_choice.type : undefined;
  const expectsJson = hasFormat(request);
  return {
    schemas: new Map(
      (tools ?? []).flatMap(({ name, input_schema }) =>
        typeof name === 'string' ? [[name, input_schema ?? {}]] : [],
      ),
    ),
    hasTools: (tools ?? []).length > 0,
    choices: 1,
    spliceable: true,
    onlyReplay: expectsJson || choice === 'any' || choice === 'tool',
    expectsJson,
    stops: stop_sequences ?? [],
    max_tokens: typeof max_tokens === 'number' ? max_tokens : Infinity,
    usageAsked: true,
    legacyFunctions: false,
    promptSize: () => promptSize([...(given(system) ? [system] : []), ...messages], tools),
  };
}

/** Whether there is an output schema, under its current or its beta name. */
const hasFormat = ({ output_config, output_format }: MessagesRequest): boolean =>
  isObject(output_format) || (isObject(output_config) && isObject(output_config.format));

/**
 * A reasoning token costs as much as five input tokens (Anthropic's prices), and reading a token uncached and writing
 * it to the cache costs 1.15 more than reading it from there.
 */
const CACHED_TOKENS_PER_THOUGHT = 5 / 1.15;

/**
 * Changed reasoning settings make the provider read the whole conversation uncached. With unchanged ones the model also
 * reasons about the rest, at most as long as about the answer: that must cost less, and fit the limit.
 */
export function messagesKeepsCache({
  request,
  first,
  sealed,
  tokens_left,
}: CacheFacts<MessagesRequest>): boolean {
  const { thinking } = request;
  if (!isObject(thinking) || thinking.type === 'disabled') return false;
  const thought_tokens = sealed.length === 0 ? 0 : estimatedTokens(JSON.stringify(sealed).length);
  const budget_tokens = typeof thinking.budget_tokens === 'number' ? thinking.budget_tokens : 0;
  const cached_tokens = cachedTokensIn(first);
  const isWorthIt = cached_tokens > 0 && cached_tokens >= CACHED_TOKENS_PER_THOUGHT * thought_tokens;
  return isWorthIt && tokens_left > Math.max(budget_tokens, thought_tokens);
}

/** Cached prompt tokens of the answer that began with this event: read from the cache, and written to it. */
function cachedTokensIn({ message }: CacheFacts['first']): number {
  const input = inputOf(isObject(message) ? message.usage : undefined);
  return tokenCount(input.cache_read_input_tokens) + tokenCount(input.cache_creation_input_tokens);
}

/** The request for the rest of the answer. It only appends messages. */
export function messagesContinuationOf(
  facts: ContinuationFacts<MessagesRequest>,
): Continuation<MessagesRequest> {
  const { mode, prefix, sealed, cutTools, insists, ran = NOTHING_RAN } = facts;
  const request = withoutCredit(facts.request);
  const left = Math.max(1, facts.tokens_left);
  const limit = typeof request.max_tokens === 'number' ? { max_tokens: left } : {};
  const said = [
    ...ran.before.flatMap((part) => (typeof part === 'string' ? [textOf(part)] : part)),
    ...(prefix.sent === '' ? [] : [textOf(prefix.sent)]),
  ];
  const own = { ...choiceAfter(ran.names, request), ...containerOf(facts) };
  const characters = givenBackCharacters(facts);
  switch (mode) {
    case 'prefill':
      // Prefill excludes reasoning; without it, no reasoning may come last.
      return {
        body: {
          ...request,
          ...limit,
          ...withoutThinking(request),
          ...own,
          messages: withAssistant(request.messages, said),
        },
        added_messages: characters,
      };
    case 'nudge': {
      const hasTools = (request.tools ?? []).length > 0;
      const nudge = nudgeAfterTools(ran.names, { delivered: prefix.sent, hasTools, cutTools, insists });
      // Otherwise the model would reason about the request to continue, and leave few tokens for the answer.
      const thinking = facts.keepsCache ? {} : withoutThinking(request);
      const thoughts = 'thinking' in thinking ? [] : sealed;
      return {
        body: {
          ...request,
          ...limit,
          ...thinking,
          ...own,
          messages: [
            ...withAssistant(request.messages, [...thoughts, ...said]),
            { role: 'user', content: nudge },
          ],
        },
        added_messages: [...characters, nudge.length],
        added_reasoning: charactersOf(thoughts),
      };
    }
    default:
      return { body: facts.request, added_messages: [] };
  }
}

/**
 * The credit of a refusal applies to the refused conversation, verbatim: with another message, the request gets a 400
 * (Anthropic, "Fallback credit").
 */
function withoutCredit({ fallback_credit_token: _, ...request }: MessagesRequest): MessagesRequest {
  return request;
}

const textOf = (text: string) => ({ type: 'text', text });

/** A tool that ran satisfies a choice that forces it; if forced again, it would run again. */
function choiceAfter(ran: readonly string[], { tool_choice: choice }: MessagesRequest): object {
  if (ran.length === 0 || !isObject(choice) || (choice.type !== 'any' && choice.type !== 'tool')) return {};
  const { name: _, ...rest } = choice;
  return { tool_choice: { ...rest, type: 'auto' } };
}

/** Keeps the code execution container, because its state is part of the answer. */
function containerOf({ request, first }: ContinuationFacts<MessagesRequest>): object {
  const { message } = first;
  const container = isObject(message) ? message.container : undefined;
  if (!isObject(container) || typeof container.id !== 'string') return {};
  const { id } = container;
  return { container: isObject(request.container) ? { ...request.container, id } : id };
}

/** Merges a client's own prefill with our partial answer. */
function withAssistant(messages: readonly MessageParam[], partial: readonly object[]): MessageParam[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', content: contentOf(partial) }];
  const begun =
    typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : blocksOf(last.content);
  return [...messages.slice(0, -1), { ...last, content: contentOf(joined([...begun, ...partial])) }];
}

/** A single plain text block becomes a string. */
function contentOf(blocks: readonly object[]): unknown {
  const [first] = blocks;
  return blocks.length === 1 && isText(first) && Object.keys(first).length === 2 ? first.text : blocks;
}

/** Anthropic's errors for reasoning that another provider or model signed, or that was modified. */
const REFUSES_THOUGHTS =
  /invalid .{1,20} in .?(?:redacted_)?thinking|thinking.? blocks .{1,80} cannot be modified/i;

export const messagesRefuseThoughts = (refusal: string): boolean => REFUSES_THOUGHTS.test(refusal);

export function messagesWithoutThoughts(
  request: MessagesRequest,
  isLeftOut: (seal: string) => boolean,
): MessagesRequest | undefined {
  const { messages } = request;
  const kept = messages.map((message) => withoutThoughts(message, isLeftOut));
  const isChanged = (message: MessageParam | undefined, index: number) => message !== messages[index];
  if (!kept.some(isChanged)) return undefined;
  // An answer that continues after tool results must begin with the reasoning before them, unless reasoning is
  // disabled.
  const begun = messages.findLastIndex(({ role, content }) => role === 'user' && !hasToolResult(content));
  const goesOn = kept.some((message, index) => index > begun && isChanged(message, index));
  return {
    ...request,
    ...(goesOn && withoutThinking(request)),
    messages: kept.filter((message) => message !== undefined),
  };
}

/** `undefined` for a message that has only such thoughts. */
function withoutThoughts(
  message: MessageParam,
  isLeftOut: (seal: string) => boolean,
): MessageParam | undefined {
  const { role, content } = message;
  if (role !== 'assistant' || !Array.isArray(content)) return message;
  const kept = content.filter((block: unknown) => !(isThought(block) && isLeftOut(sealOf(block))));
  if (kept.length === content.length) return message;
  return kept.length === 0 ? undefined : { ...message, content: kept };
}

const hasToolResult = (content: unknown): boolean =>
  blocksOf(content).some((block) => 'tool_use_id' in block);

const isThought = (block: unknown): block is Readonly<Record<string, unknown>> =>
  isObject(block) && (block.type === 'thinking' || block.type === 'redacted_thinking');

const sealOf = ({ signature, data }: Readonly<Record<string, unknown>>): string =>
  [signature, data].find((seal) => typeof seal === 'string') ?? '';

/** Merges the last two blocks if both are text. */
function joined(blocks: readonly object[]): readonly object[] {
  const [before, last] = blocks.slice(-2);
  if (!isText(before) || !isText(last)) return blocks;
  return [...blocks.slice(0, -2), { ...before, text: before.text + last.text }];
}

const blocksOf = (content: unknown): readonly object[] =>
  Array.isArray(content) ? content.filter(isObject) : [];

const isText = (block: unknown): block is { readonly type: 'text'; readonly text: string } =>
  isObject(block) && block.type === 'text' && typeof block.text === 'string';

const charactersOf = (thoughts: readonly object[]): number =>
  thoughts.reduce((sum, block) => sum + ('thinking' in block ? String(block.thinking).length : 0), 0);

const withoutThinking = ({ thinking }: MessagesRequest): { readonly thinking?: object } =>
  isObject(thinking) ? { thinking: { type: 'disabled' } } : {};
