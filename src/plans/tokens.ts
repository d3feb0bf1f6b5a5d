/**
 * Estimates, used only where the provider reported nothing. The two figures are the rule of thumb that OpenAI
 * publishes for its tokenizers: about four characters a token, and about three tokens around each message.
 */
const CHARACTERS_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 3;

/** A delta longer than this on average cannot be a single token: the provider packs several into one event. */
const CHARACTERS_PER_DELTA_MAX = 8;

export const estimatedTokens = (characters: number): number => Math.ceil(characters / CHARACTERS_PER_TOKEN);

/** What so many tokens may say. */
export const charactersIn = (tokens: number): number => tokens * CHARACTERS_PER_TOKEN;

export const estimatedMessageTokens = (characters: number): number =>
  TOKENS_PER_MESSAGE + estimatedTokens(characters);

/** Providers stream token by token, so counting deltas is exact for most of them. */
export function tokensOfDeltas(deltas: number, characters: number): number {
  return characters > deltas * CHARACTERS_PER_DELTA_MAX ? estimatedTokens(characters) : deltas;
}
