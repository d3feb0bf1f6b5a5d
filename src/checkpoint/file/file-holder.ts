import type { Holder, RunId } from '../store.ts';
import type { Opening } from './file-format.ts';
import { partialName, replicaName } from './file-names.ts';

/**
 * The file whose last modification is the last sign of life of whoever holds the latest epoch of a running run, by
 * the opening line of that epoch; undefined when nobody holds it.
 */
export function signOfLife(run: RunId, epoch: number, opening: Opening | undefined): string | undefined {
  // Without an opening line the epoch was claimed a moment ago, or by a process that died in that moment.
  if (!opening) return partialName(run, epoch);
  return opening.holder === undefined ? undefined : replicaName(opening.holder);
}

/** `modified_ms`: of that file; undefined when there is none. */
export function holderOf(modified_ms: number | undefined, lease_ms: number): Holder {
  if (modified_ms === undefined) return { state: 'lost' };
  // A sign from the future was given before the clock was set back: a live process gives another one soon.
  const silent_ms = Math.abs(Date.now() - modified_ms);
  return silent_ms <= lease_ms ? { state: 'alive', silent_ms } : { state: 'lost' };
}
