import type { RunId } from '../../../src/checkpoint/store.ts';

export const RUNS = 20;
export const INTERVAL_MS = 50;

/** What the process reports about its journals, about ten times per checkpoint interval. */
export interface KilledWriterReport {
  readonly at_ms: number;
  readonly runs: readonly { readonly run: RunId; readonly recorded: number; readonly stored: number }[];
}

/** The text of the event after event `seq`, so that the length of a journal determines its text. */
export const wordAt = (seq: number): string => `${seq}🙂 `;
