import type { RunId } from '../store.ts';
import { isRunId } from '../store.ts';

/*
 * One run is one file per epoch while it runs, and one file once it is finished:
 *
 *   <run>.partial           epoch 1
 *   <run>.<epoch>.partial
 *   <run>.run               finished
 *   <run>.<replica>.tmp     being put together by a replica that finishes a run of several epochs
 *
 * and besides them
 *
 *   replica-<replica>.alive   a replica's signs of life: the time it was last modified
 *   replica-<replica>.check   exists while a replica tries whether it can write
 *   takeovers                 see below
 *   notes/                    one file per note, under its digest
 *   index/<owner>/            one empty file per run of the owner, see file-run-index.ts
 */

export const finishedName = (run: RunId): string => `${run}.run`;
export const partialName = (run: RunId, epoch: number): string =>
  epoch === 1 ? `${run}.partial` : `${run}.${epoch}.partial`;
export const temporaryName = (run: RunId, replica: string): string => `${run}.${replica}.tmp`;
export const replicaName = (replica: string): string => `replica-${replica}.alive`;
export const checkName = (replica: string): string => `replica-${replica}.check`;

/** Grows by one byte with every takeover in the directory, before the successor reads what it takes over. */
export const TAKEOVERS_NAME = 'takeovers';
export const NOTES_NAME = 'notes';
export const INDEX_NAME = 'index';

export type RunFileName =
  | { readonly run: RunId; readonly kind: 'partial'; readonly epoch: number }
  | { readonly run: RunId; readonly kind: 'finished' | 'temporary' };

/** Which run a directory entry belongs to; undefined for files that are not runs. */
export function parseFileName(name: string): RunFileName | undefined {
  const [, run = '', middle, kind] = /^(run_[A-Za-z0-9_-]+)(?:\.(\w+))?\.(partial|run|tmp)$/.exec(name) ?? [];
  if (!isRunId(run)) return undefined;
  if (kind === 'partial') return { run, kind, epoch: Number(middle ?? 1) };
  return { run, kind: kind === 'run' ? 'finished' : 'temporary' };
}

export const isReplicaName = (name: string): boolean => /^replica-\w+\.(alive|check)$/.test(name);
