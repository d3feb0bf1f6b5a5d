/*
 *   log-<number>              a segment of the log: runs, notes and the index of all processes that use the directory
 *   replica-<replica>.alive   a replica's sign of life: the file's modification time
 *   replica-<replica>.check   exists while a replica checks whether it can write
 */

export const segmentName = (number: number): string => `log-${String(number).padStart(10, '0')}`;
export const replicaName = (replica: string): string => `replica-${replica}.alive`;
export const checkName = (replica: string): string => `replica-${replica}.check`;

/** Undefined if the file isn't a segment. */
export function segmentNumber(name: string): number | undefined {
  const [, digits] = /^log-(\d{10})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

export const isReplicaName = (name: string): boolean => /^replica-\w+\.(alive|check)$/.test(name);

/** Files left by versions before the log: one file per run, and directories of notes and of the index. */
export const isOfOldFormat = (name: string): boolean =>
  /^run_[\w-]+(\.\w+)?\.(partial|run|tmp)$/.test(name) || ['takeovers', 'notes', 'index'].includes(name);
