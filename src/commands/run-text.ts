import type { RunSummary, TimelineEntry } from '../status/snapshot.ts';
import { printable } from './terminal.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** For example, `340ms`, `4.2s`, `3m05s` or `2h10m`. */
export function durationText(duration_ms: number): string {
  const whole_ms = Math.max(0, Math.round(duration_ms));
  if (whole_ms < SECOND_MS) return `${whole_ms}ms`;
  if (whole_ms < MINUTE_MS) return `${(Math.floor(whole_ms / 100) / 10).toFixed(1)}s`;
  if (whole_ms < HOUR_MS) {
    const seconds = Math.floor((whole_ms % MINUTE_MS) / SECOND_MS);
    return `${Math.floor(whole_ms / MINUTE_MS)}m${String(seconds).padStart(2, '0')}s`;
  }
  const minutes = Math.floor((whole_ms % HOUR_MS) / MINUTE_MS);
  return `${Math.floor(whole_ms / HOUR_MS)}h${String(minutes).padStart(2, '0')}m`;
}

/** How a run ended, or its current state. */
export const stateOf = ({ state, outcome }: RunSummary): string => printable(outcome ?? state);

/** For example, `+3.2s  attempt 2 at openai (prefill)`; times are relative to `created_at_ms`. */
export const timelineLine = (entry: TimelineEntry, created_at_ms: number): string =>
  `${`+${durationText(entry.at_ms - created_at_ms)}`.padStart(9)}  ${printable(wordsOf(entry))}`;

function wordsOf(entry: TimelineEntry): string {
  switch (entry.kind) {
    case 'taken_over':
      return `taken over, epoch ${entry.epoch}, after event ${entry.after_event}`;
    case 'attempt': {
      const how = [
        entry.mode,
        `model ${entry.model}`,
        ...(entry.compressed ? ['conversation compressed'] : []),
      ];
      return `attempt ${entry.attempt} at ${entry.upstream} (${how.join(', ')})`;
    }
    case 'answering':
      return `attempt ${entry.attempt} answers`;
    case 'interrupted': {
      const evidence = [entry.evidence, entry.detail, entry.status].filter((part) => part !== undefined);
      return `attempt ${entry.attempt} interrupted: ${entry.cause} in ${entry.phase} (${[...new Set(evidence.map(String))].join(' ')}) after ${entry.added} characters${seamText(entry.seam)}`;
    }
    case 'whole':
      return `attempt ${entry.attempt} whole after ${entry.added} characters${seamText(entry.seam)}`;
    case 'planned': {
      const why = entry.why === undefined ? '' : ` (${entry.why})`;
      const wait = entry.wait_ms > 0 ? `, in ${durationText(entry.wait_ms)}` : '';
      return `plan ${entry.plan}${why}${wait}`;
    }
    case 'recovered':
      return `recovered by ${entry.plan} ${entry.mode}, the client waited ${durationText(entry.gap_ms)}`;
    case 'ended':
      return `ended: ${entry.outcome}${entry.finish === undefined ? '' : ` (${entry.finish})`}`;
    default:
      // A later release may send other kinds.
      return String((entry as { readonly kind: unknown }).kind);
  }
}

const seamText = (seam: string | undefined): string => (seam === undefined ? '' : `, seam ${seam}`);
