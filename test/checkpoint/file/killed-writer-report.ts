import type { RunId } from '../../../src/checkpoint/store.ts';

export const RUNS = 20;
export const INTERVAL_MS = 50;

/** What the process says about its journals, ten times per checkpoint interval or so. */
export interface KilledWriterReport {
  readonly at_ms: number;
  readonly runs: readonly { readonly run: RunId; readonly recorded: number; readonly stored: number }[];
}

/** The text of the event after event `seq`, so that a journal's text follows from its length. */
export const wordAt = (seq: number): string => `${seq}🙂 `;
