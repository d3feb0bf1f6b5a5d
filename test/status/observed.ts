import type { RunId } from '../../src/checkpoint/store.ts';
import type { ObservedInterruption } from '../../src/interrupts/interruption.ts';
import { systemTime, type Time } from '../../src/lib/time.ts';
import type { ObservedRun } from '../../src/proxy/run/context/run-observer.ts';
import type { RunBoard } from '../../src/status/run-board.ts';

/** A clock whose time of day changes only on demand. */
export class StandingTime implements Time {
  wall_ms = 1_700_000_000_000;
  readonly now = systemTime.now;
  readonly after = systemTime.after;
  readonly wall = (): number => this.wall_ms;
}

/** How far an answer has got, as a test sets it. */
export interface Answer {
  characters: number;
  tool_calls: number;
  text: string;
}

export const runId = (name: string | number): RunId => `run_${String(name).padStart(22, '0')}`;

export function observedRun(changes: Partial<ObservedRun> = {}): ObservedRun & { readonly answer: Answer } {
  const answer: Answer = { characters: 0, tool_calls: 0, text: '' };
  return {
    run: runId(1),
    wire: 'chat_completions',
    model: 'gpt-4o',
    upstream: 'first',
    streamed: true,
    resumable: false,
    created_at_ms: 1_700_000_000_000,
    ...changes,
    answer,
  };
}

export const RESET: ObservedInterruption = {
  cause: 'connection_reset',
  phase: 'text',
  evidence: { kind: 'transport', code: 'ECONNRESET' },
};

/** Begins a run that the board must accept. */
export function begin(board: RunBoard, changes: Partial<ObservedRun> = {}) {
  const observed = observedRun(changes);
  const watch = board.begin(observed);
  if (!watch) throw new Error('the board does not watch this run');
  return { watch, answer: observed.answer };
}

export const attempt = (number: number, upstream = 'first') =>
  ({ attempt: number, upstream, mode: number === 1 ? 'first' : 'prefill', asked_model: 'gpt-4o' }) as const;
