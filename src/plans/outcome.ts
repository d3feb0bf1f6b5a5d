/**
 * How a run ended here; the `outcome` label of `holdfast_runs_total`. `superseded`: another replica took it over.
 * `handed_over`: this one shut down and let it go. `replayed`: all of it was in the store.
 */
export const OUTCOMES = [
  'complete',
  'recovered',
  'salvaged',
  'failed',
  'rejected',
  'cancelled',
  'superseded',
  'handed_over',
  'replayed',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

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
