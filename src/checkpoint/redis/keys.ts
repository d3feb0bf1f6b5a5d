import type { Owner, RunId } from '../store.ts';

/*
 * In a cluster, keys whose braces hold the same text live on the same server; a script may touch no others.
 *
 *   holdfast:{<run>}:log         stream    the journal of a run, see log.ts
 *   holdfast:{<replica>}:alive   string    there while the replica gives signs of life
 *   holdfast:{<replica>}:runs    set       `<run>:<epoch>` of what the replica delivers, and of some it did
 *   holdfast:{released.<n>}:runs  set      the same of runs that were handed over and not taken yet, and of some
 *   holdfast:{replicas.<n>}      set       replicas that may have runs
 *   holdfast:{<owner>}:index      sorted    entries of run-index.ts by when the runs began
 *   holdfast:note:<digest>       string    a note
 *
 * What all replicas write to is in sixteen parts, which lie on different servers. Versions before that had one of each.
 */

const PARTS = Array.from({ length: 16 }, (_, part) => part);

/** Of an id: its digits are random. */
const partOf = (id: string, digit: number): number => id.charCodeAt(digit) % PARTS.length;

/** Takes the place of a replica id: of a run that has none. */
const RELEASED = 'released';
const RUN_PREFIX = 'run_';

/** The list of released runs that this one belongs to. */
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
