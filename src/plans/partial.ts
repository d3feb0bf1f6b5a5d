/** What an answer that was cut off is made of, besides tool calls, which are whole or nothing. */
export interface Said {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly providerTools: readonly unknown[];
}

/** Whether there is anything of the answer for its client to see: otherwise what was cut off is no partial. */
export const isPartial = ({ text, refusal, reasoning, providerTools }: Said): boolean =>
  text !== '' || refusal !== '' || reasoning !== '' || providerTools.length > 0;
