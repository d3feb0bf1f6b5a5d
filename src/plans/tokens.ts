import { isObject } from '../lib/json.ts';
import type { Usage } from './delta.ts';
import type { Mode } from './seam/mode.ts';

/**
 * Estimates, used only where the provider reported nothing. The two figures are the rule of thumb that OpenAI
 * publishes for its tokenizers: about four characters a token, and about three tokens around each message.
 */
const CHARACTERS_PER_TOKEN = 4;
export const TOKENS_PER_MESSAGE = 3;

/** A delta longer than this on average cannot be a single token: the provider packs several into one event. */
const CHARACTERS_PER_DELTA_MAX = 8;

export const estimatedTokens = (characters: number): number => Math.ceil(characters / CHARACTERS_PER_TOKEN);

/** What so many tokens may say. */
export const charactersIn = (tokens: number): number => tokens * CHARACTERS_PER_TOKEN;

export const estimatedMessageTokens = (characters: number): number =>
  TOKENS_PER_MESSAGE + estimatedTokens(characters);

/** What a model reads of a request. */
export interface PromptSize {
  /** Of each message. */
  readonly message_characters: readonly number[];
  /** Of all definitions of tools. */
  readonly tool_characters: number;
  /** Of images and other media, which have no characters. */
  readonly media_tokens: number;
}

export const estimatedPromptTokens = (size: PromptSize): number =>
  size.message_characters.reduce((sum, characters) => sum + estimatedMessageTokens(characters), 0) +
  estimatedTokens(size.tool_characters) +
  size.media_tokens;

/** What can be counted of what a provider reports: it may say anything, and a metric refuses what is no increase. */
export const tokenCount = (reported: number | undefined): number =>
  reported !== undefined && Number.isFinite(reported) && reported > 0 ? reported : 0;

/**
 * Tokens of the prompt that were read from the provider's prompt cache or put there, as chat completions, responses, messages
 * and DeepSeek report them; not all report what was put there.
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

/** What one attempt contributed, for the sum over attempts. */
export interface AttemptUsage {
  /** Unknown for attempts that another replica made. */
  readonly upstream?: string;
  readonly mode: 'first' | Mode;
  /** What the provider said, if it came to that. */
  readonly reported?: Usage;
  /** Deltas that reached the client. */
  readonly text: Count;
  readonly reasoning: Count;
  readonly tools: Count;
  /** Deltas that the client had seen already: echoes, repetitions, regenerated reasoning. */
  readonly swallowed: Count;
  /** Characters of each message that the continuation added to the request. */
  readonly added_messages: readonly number[];
  /** Characters of the reasoning that it was sent back besides. */
  readonly added_reasoning?: number;
}

export interface Count {
  readonly deltas: number;
  readonly characters: number;
}

/** What was counted, in tokens. Providers stream token by token, so counting deltas is exact for most of them. */
export const tokensIn = ({ deltas, characters }: Count): number =>
  characters > deltas * CHARACTERS_PER_DELTA_MAX ? estimatedTokens(characters) : deltas;

/**
 * Tokens of the answer so far that count against what is left of `max_tokens`. Reasoning does not: a model that
 * is nudged thinks anew, and would have nothing left to answer with.
 */
export function deliveredTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.text), 0);
}

/** Tokens that were generated but not new to the client: what recovery cost. */
export function repaidTokens(attempts: readonly AttemptUsage[]): number {
  return attempts.reduce((sum, attempt) => sum + tokensIn(attempt.swallowed), 0);
}

/** Less text does not show the density of an answer. */
const EVIDENCE_CHARACTERS = 24;
/** Reports count tokens that are not shown: the end of the answer, the form of a call. */
const TOLERANCE = 0.1;
const TOLERANCE_TOKENS = 3;

/** A shorter text says little of how many characters its tokens have. */
const DENSITY_CHARACTERS = 300;

/**
 * How to count what was said by attempts that reported nothing. Deltas are tokens with most providers. Where the report of
 * another attempt shows that they are not, its tokens per character are taken. `usual_tokens_per_character`: those of a longer
 * text, where there is one.
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
    // A prefix that comes again was not generated, and need not be counted.
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

/** The part of the reported tokens that was streamed: a provider may keep thoughts to itself. */
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

/** A text, filled up to {@link DENSITY_CHARACTERS} with text that is `usual` for its provider. */
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
