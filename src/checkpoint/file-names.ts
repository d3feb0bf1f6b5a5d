import type { RunId } from './store.ts';
import { isRunId } from './store.ts';

/*
 * One run is one file per epoch while it runs, and one file once it is finished:
 *
 *   <run>.partial       epoch 1
 *   <run>.<epoch>.partial
 *   <run>.run           finished
 *   <run>.<epoch>.tmp   being put together by the finisher of a run that was taken over
 */

export const finishedName = (run: RunId): string => `${run}.run`;
export const partialName = (run: RunId, epoch: number): string =>
  epoch === 1 ? `${run}.partial` : `${run}.${epoch}.partial`;
export const temporaryName = (run: RunId, epoch: number): string => `${run}.${epoch}.tmp`;

/** Grows by one byte with every takeover in the directory, before the successor reads what it takes over. */
export const TAKEOVERS_NAME = 'takeovers';

export interface RunFileName {
  readonly run: RunId;
  readonly finished: boolean;
}

/** Which run a directory entry belongs to; undefined for files that are not runs. */
export function parseFileName(name: string): RunFileName | undefined {
  const [, run = '', kind] = /^(run_[A-Za-z0-9_-]+)(?:\.\d+)?\.(partial|run|tmp)$/.exec(name) ?? [];
  return isRunId(run) ? { run, finished: kind === 'run' } : undefined;
}
