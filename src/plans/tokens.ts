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

/** Providers stream token by token, so counting deltas is exact for most of them. */
export function tokensOfDeltas(deltas: number, characters: number): number {
  return characters > deltas * CHARACTERS_PER_DELTA_MAX ? estimatedTokens(characters) : deltas;
}

/** What can be counted of what a provider reports: it may say anything, and a metric refuses what is no increase. */
export const tokenCount = (reported: number | undefined): number =>
  reported !== undefined && Number.isFinite(reported) && reported > 0 ? reported : 0;
