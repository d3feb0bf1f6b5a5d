import { estimatedPromptTokens, estimatedTokens, type PromptSize } from './tokens.ts';

/**
 * Whether a request is estimated to take more than `tokens_max` of a context. It is measured only where its `characters`, as it
 * is sent, could say so much: media that a short address stands for count only in a request that is measured.
 */
export const takesMoreThan = (
  tokens_max: number,
  characters: number,
  promptSize: () => PromptSize,
): boolean => estimatedTokens(characters) > tokens_max && estimatedPromptTokens(promptSize()) > tokens_max;
