import { estimatedPromptTokens, estimatedTokens, type PromptSize } from './tokens.ts';

/**
 * Whether a request is estimated to take more than `tokens_max` of a context. `characters`: its length as sent.
 * Measuring is skipped if that length rules it out, so media behind a short URL count only in requests that are
 * measured.
 */
export const takesMoreThan = (
  tokens_max: number,
  characters: number,
  promptSize: () => PromptSize,
): boolean => estimatedTokens(characters) > tokens_max && estimatedPromptTokens(promptSize()) > tokens_max;
