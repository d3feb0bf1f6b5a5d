import { type ApiError, apiError } from '../../../lib/errors.ts';
import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Mode, Prefix } from '../../../plans/seam/mode.ts';
import type { PromptSize } from '../../../plans/tokens.ts';
import type { ToolSchemas } from '../../../plans/tool-call.ts';
import type { AnswerGivenBack } from '../../../plans/transcript.ts';
import type { Dialect } from './dialect.ts';
import type { WireRequest } from './wire.ts';

/** The parts of a chat completion request that determine how a run may be continued. */
export interface ChatRequest extends WireRequest {
  readonly messages: readonly ChatMessage[];
  readonly stream_options?: { readonly include_usage?: boolean; readonly [option: string]: unknown } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly n?: number | null;
  readonly logprobs?: boolean | null;
  readonly tools?: readonly ToolDefinition[] | null;
  readonly tool_choice?: string | object | null;
  readonly response_format?: { readonly type: string; readonly [detail: string]: unknown } | null;
}

export interface ChatMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

export interface ToolDefinition {
  readonly type?: string;
  readonly function?: {
    readonly name?: string;
    readonly parameters?: unknown;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** Facts about a request that determine recovery, on any wire. */
export interface RequestFacts {
  readonly schemas: ToolSchemas;
  readonly hasTools: boolean;
  readonly choices: number;
  /** False for output that cannot be joined across attempts: `n > 1`, `logprobs`, audio. */
  readonly spliceable: boolean;
  /** Structured output and forced tools: asked to continue, a model restarts such an answer. */
  readonly onlyReplay: boolean;
  readonly expectsJson: boolean;
  readonly stops: readonly string[];
  readonly max_tokens: number;
  readonly usageAsked: boolean;
  /** The legacy `functions` interface: one call, without an id. */
  readonly legacyFunctions: boolean;
  /** Measured on demand, because few runs need it. */
  promptSize(): PromptSize;
}

/** Fields for a schema or a grammar besides `response_format`: vLLM, SGLang, llama.cpp. */
const SCHEMAS = ['guided_json', 'json_schema'] as const;
const GRAMMARS = [
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'structured_outputs',
  'grammar',
  'regex',
  'ebnf',
] as const;

interface Constraints {
  readonly expectsJson: boolean;
  /** The answer must have a certain form: given a partial one, a model restarts. */
  readonly isGuided: boolean;
}

/** The constraints of a request on its answer. */
export function constraintsOf(request: Readonly<Record<string, unknown>>): Constraints {
  const { response_format } = request;
  const type = isObject(response_format) ? response_format.type : undefined;
  const has = (name: string) => (request[name] ?? undefined) !== undefined;
  const expectsJson = type === 'json_object' || type === 'json_schema' || SCHEMAS.some(has);
  const hasFormat = type !== undefined && type !== 'text';
  return { expectsJson, isGuided: expectsJson || hasFormat || GRAMMARS.some(has) };
}

/** Longer than the name of any model. Bounds the cost of matching route patterns. */
export const MODEL_CHARACTERS_MAX = 256;

/** Throws `missing_field` or `invalid_field`. */
export function checkModel({ model }: Fields): void {
  if (model === undefined) throw missing('model', 'the name of a model');
  if (typeof model !== 'string' || model === '' || model.length > MODEL_CHARACTERS_MAX) {
    throw invalid('model', `a string of 1 to ${MODEL_CHARACTERS_MAX} characters`);
  }
}

export function checkMessages({ messages }: Fields): void {
  if (messages === undefined) throw missing('messages', 'a list of at least one message');
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalid('messages', 'a list of at least one message');
  for (const [index, message] of messages.entries()) {
    if (!isObject(message) || typeof message.role !== 'string')
      throw invalid(`messages[${index}]`, 'an object with a role');
  }
}

export function checkTools({ tools }: Fields): void {
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject)))
    throw invalid('tools', 'a list of objects');
}

export function checkStreamOptions({ stream_options }: Fields): void {
  if (given(stream_options) && !isObject(stream_options)) throw invalid('stream_options', 'an object');
}

export function checkStop({ stop }: Fields): void {
  if (given(stop) && typeof stop !== 'string' && !isStrings(stop))
    throw invalid('stop', 'a string or a list of strings');
}

const missing = (param: string, expected: string): ApiError => apiError('missing_field', { param, expected });
export const invalid = (param: string, expected: string): ApiError =>
  apiError('invalid_field', { param, expected });
export const given = (value: unknown): boolean => value !== undefined && value !== null;

export const isStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

export interface ContinuationFacts<Request extends WireRequest = WireRequest> {
  readonly request: Request;
  readonly dialect: Dialect;
  /** The first event of the answer, parsed; empty without one. */
  readonly first: Readonly<Record<string, unknown>>;
  readonly mode: Mode;
  readonly prefix: Prefix;
  /** Set if the provider ran tools for the answer: their names, and the part of the answer before the prefix. */
  readonly ran?: { readonly names: readonly string[]; readonly before: AnswerGivenBack['before'] };
  readonly reasoning: string;
  /** Parts of the answer from this target, which accepts them back only verbatim. */
  readonly sealed: readonly object[];
  /** Names of the calls that were cut and must be made again. */
  readonly cutTools: readonly string[];
  /** The first wording of the nudge was ignored. */
  readonly insists: boolean;
  /** The nudge leaves the settings unchanged that the provider's prompt cache depends on. */
  readonly keepsCache: boolean;
  /** What remains of `max_tokens`; infinite without a limit. */
  readonly tokens_left: number;
}

/** Facts for deciding whether keeping the provider's prompt cache is worth its cost. */
export type CacheFacts<Request extends WireRequest = WireRequest> = Pick<
  ContinuationFacts<Request>,
  'request' | 'first' | 'sealed' | 'tokens_left'
>;

export const NOTHING_RAN: NonNullable<ContinuationFacts['ran']> = { names: [], before: [] };

/** Characters sent back of the answer: one number for all of its text, and one per provider tool. */
export function givenBackCharacters({
  ran = NOTHING_RAN,
  prefix,
}: Pick<ContinuationFacts, 'ran' | 'prefix'>): readonly number[] {
  const texts = ran.before.map((part) => (typeof part === 'string' ? part.length : 0));
  const items = ran.before.flatMap((part) => (typeof part === 'string' ? [] : [JSON.stringify(part).length]));
  return [texts.reduce((sum, length) => sum + length, prefix.sent.length), ...items];
}

export interface Continuation<Request extends WireRequest = WireRequest> {
  readonly body: Request;
  /** Characters of each added message, for the usage ledger. */
  readonly added_messages: readonly number[];
  /** Characters of reasoning that is also sent back. */
  readonly added_reasoning?: number;
}
