import type { Owner, RunId } from '../store.ts';

/*
 * In a cluster, keys with the same text in braces live on the same server; a script may access only one such group.
 *
 *   holdfast:{<run>}:log          stream  the journal of a run, see log.ts
 *   holdfast:{<replica>}:alive    string  exists while the replica gives signs of life
 *   holdfast:{<replica>}:runs     set     `<run>:<epoch>` of the runs the replica delivers, and of some it delivered
 *   holdfast:{released.<n>}:runs  set     the same for runs that were handed over and not taken yet, and some others
 *   holdfast:{replicas.<n>}       set     replicas that may have runs
 *   holdfast:{<owner>}:index      sorted  entries of run-index.ts, scored by the runs' start times
 *   holdfast:note:<digest>        string  a note
 *
 * Keys that all replicas write to are split into sixteen parts on different servers. Older versions had one of each.
 */

const PARTS = Array.from({ length: 16 }, (_, part) => part);

/** The part of an id, taken from one of its random digits. */
const partOf = (id: string, digit: number): number => id.charCodeAt(digit) % PARTS.length;

/** Stands for the replica id of runs without one. */
const RELEASED = 'released';
const RUN_PREFIX = 'run_';

/** The list of released runs that contains this run. */
export const releasedList = (run: RunId): string => `${RELEASED}.${partOf(run, RUN_PREFIX.length)}`;
export const RELEASED_LISTS: readonly string[] = [RELEASED, ...PARTS.map((part) => `${RELEASED}.${part}`)];

const partOfReplicas = (part: number): string => `holdfast:{replicas.${part}}`;
export const replicasKey = (replica: string): string => partOfReplicas(partOf(replica, 0));
export const REPLICAS_KEYS: readonly string[] = ['holdfast:replicas', ...PARTS.map(partOfReplicas)];

export const logKey = (run: RunId): string => `holdfast:{${run}}:log`;
export const aliveKey = (replica: string): string => `holdfast:{${replica}}:alive`;
export const runsKey = (replica: string): string => `holdfast:{${replica}}:runs`;
export const indexKey = (owner: Owner): string => `holdfast:{${owner}}:index`;
export const noteKey = (digest: string): string => `holdfast:note:${digest}`;
