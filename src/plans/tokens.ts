import { isObject } from '../lib/json.ts';
import type { Usage } from './delta.ts';
import type { Mode } from './seam/mode.ts';

/**
 * Estimates for when the provider reported nothing. Both figures are OpenAI's published rule of thumb: about four
 * characters per token, and about three extra tokens per message.
 */
const CHARACTERS_PER_TOKEN = 4;
export const TOKENS_PER_MESSAGE = 3;

/** If the average delta is longer than this, it can't be a single token: the provider packs several into one event. */
const CHARACTERS_PER_DELTA_MAX = 8;

export const estimatedTokens = (characters: number): number => Math.ceil(characters / CHARACTERS_PER_TOKEN);

/** The estimated length of this many tokens. */
export const charactersIn = (tokens: number): number => tokens * CHARACTERS_PER_TOKEN;

export const estimatedMessageTokens = (characters: number): number =>
  TOKENS_PER_MESSAGE + estimatedTokens(characters);

/** The size of a request as the model reads it. */
export interface PromptSize {
  /** Per message. */
  readonly message_characters: readonly number[];
  /** All tool definitions together. */
  readonly tool_characters: number;
  /** Images and other media, which have no characters. */
  readonly media_tokens: number;
}

export const estimatedPromptTokens = (size: PromptSize): number =>
  size.message_characters.reduce((sum, characters) => sum + estimatedMessageTokens(characters), 0) +
  estimatedTokens(size.tool_characters) +
  size.media_tokens;

/**
 * The reported count if it can be counted, else 0: providers may report anything, and counters reject values that
 * aren't positive.
 */
export const tokenCount = (reported: number | undefined): number =>
  reported !== undefined && Number.isFinite(reported) && reported > 0 ? reported : 0;

/**
 * Prompt tokens read from or written to the provider's prompt cache, as reported by chat completions, responses,
 * messages and DeepSeek. Not all of them report writes.
 */
export function cachedTokens(usage: Usage): number {
  const { prompt_tokens_details: chat, input_tokens_details: responses } = usage;
  const counts = [
    ...[chat, responses].flatMap((details) => (isObject(details) ? [details.cached_tokens] : [])),
    usage.cache_read_input_tokens,
    usage.cache_creation_input_tokens,
    usage.prompt_cache_hit_tokens,
  ];
  return Math.max(...counts.map((count) => (typeof count === 'number' ? tokenCount(count) : 0)));
}

/** The contribution of one attempt to the usage of a run. */
export interface AttemptUsage {
  /** Unknown for attempts made by another replica. */
  readonly upstream?: string;
  readonly mode: 'first' | Mode;
  /** The provider's report, if one arrived. */
  readonly reported?: Usage;
  /** Deltas that reached the client. */
  readonly text: Count;
  readonly reasoning: Count;
  readonly tools: Count;
  /** Deltas that the client had already seen: echoes, repetitions, regenerated reasoning. */
  readonly swallowed: Count;
  /** Characters in each message that the continuation added to the request. */
  readonly added_messages: readonly number[];
  /** Characters of reasoning that was also sent back. */
  readonly added_reasoning?: number;
}

export interface Count {
  readonly deltas: number;
  readonly characters: number;
}

/** Converts a count to tokens. Most providers stream token by token, so counting deltas is exact for them. */
export const tokensIn = ({ deltas, characters }: Count): number =>
  characters > deltas * CHARACTERS_PER_DELTA_MAX ? estimatedTokens(characters) : deltas;

/**
 * Tokens of the answer so far that count against `max_tokens`. Reasoning doesn't count: a nudged model reasons again,
 * and would have no tokens left for the answer.
 */
export function deliveredTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.text), 0);
}

/** Tokens generated without being new to the client: the cost of recovery. */
export function repaidTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.swallowed), 0);
}

/** Shorter texts don't show an answer's density. */
const EVIDENCE_CHARACTERS = 24;
/** Reports include tokens that aren't shown, such as the end of the answer or the syntax of a call. */
const TOLERANCE = 0.1;
const TOLERANCE_TOKENS = 3;

/** The characters per token of a shorter text are unreliable. */
const DENSITY_CHARACTERS = 300;

/**
 * How to count attempts without a report. With most providers a delta is a token. If another attempt's report shows
 * otherwise, its tokens per character are used. `usual_tokens_per_character`: the density of a longer text, if there is
 * one.
 */
export function tokenCounter(
  attempts: readonly AttemptUsage[],
  usual_tokens_per_character?: number,
): (count: Count) => number {
  for (const attempt of attempts) {
    const kept = sumOf([attempt.text, attempt.reasoning, attempt.tools]);
    const came = sumOf([kept, attempt.swallowed]);
    const told = shownTokens(attempt);
    if (told === undefined || came.characters < EVIDENCE_CHARACTERS) continue;
    // A repeated prefix was not generated, and may not be counted.
    const areTokens = [came, kept].some(
      (count) => Math.abs(told - count.deltas) <= Math.max(TOLERANCE_TOKENS, TOLERANCE * told),
    );
    if (areTokens) break;
    const text = { tokens: told, characters: came.characters };
    const evidence =
      usual_tokens_per_character === undefined ? text : filledUp(text, usual_tokens_per_character);
    return ({ characters }) => Math.round((characters * evidence.tokens) / evidence.characters);
  }
  return tokensIn;
}

/** The streamed part of the reported tokens: a provider may hide reasoning. */
function shownTokens({ reported, reasoning }: AttemptUsage): number | undefined {
  if (!reported || reported.completion_tokens <= 0) return undefined;
  const { completion_tokens, completion_tokens_details: details } = reported;
  const hidden = (details as { readonly reasoning_tokens?: unknown } | null | undefined)?.reasoning_tokens;
  if (reasoning.characters > 0 || typeof hidden !== 'number') return completion_tokens;
  return hidden < completion_tokens ? completion_tokens - hidden : undefined;
}

export const sumOf = (counts: readonly Count[]): Count => ({
  deltas: counts.reduce((sum, { deltas }) => sum + deltas, 0),
  characters: counts.reduce((sum, { characters }) => sum + characters, 0),
});

/** Pads a text to {@link DENSITY_CHARACTERS} with text at the provider's usual density. */
export function filledUp(text: Counted, usual_tokens_per_character: number): Counted {
  const missing = Math.max(0, DENSITY_CHARACTERS - text.characters);
  return {
    tokens: text.tokens + missing * usual_tokens_per_character,
    characters: text.characters + missing,
  };
}

export interface Counted {
  readonly tokens: number;
  readonly characters: number;
}
