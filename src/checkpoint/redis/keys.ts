import type { Owner, RunId } from '../store.ts';

/*
 * In a cluster, keys whose braces hold the same text live on the same server; a script may touch no others.
 *
 *   holdfast:{<run>}:log         stream    the journal of a run, see log.ts
 *   holdfast:{<replica>}:alive   string    there while the replica gives signs of life
 *   holdfast:{<replica>}:runs    set       `<run>:<epoch>` of what the replica delivers, and of some it did
 *   holdfast:{released}:runs     set       the same of runs that were handed over and not taken yet, and of some
 *   holdfast:replicas            set       replicas that may have runs
 *   holdfast:{<owner>}:index      sorted    entries of run-index.ts by when the runs began
 *   holdfast:note:<digest>       string    a note
 */

/** Takes the place of a replica id: its set lists the released runs. */
export const RELEASED = 'released';

export const REPLICAS_KEY = 'holdfast:replicas';
export const logKey = (run: RunId): string => `holdfast:{${run}}:log`;
export const aliveKey = (replica: string): string => `holdfast:{${replica}}:alive`;
export const runsKey = (replica: string): string => `holdfast:{${replica}}:runs`;
export const indexKey = (owner: Owner): string => `holdfast:{${owner}}:index`;
export const noteKey = (digest: string): string => `holdfast:note:${digest}`;
