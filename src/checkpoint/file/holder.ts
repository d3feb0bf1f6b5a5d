import type { Holder } from '../store.ts';
import { replicaName } from './names.ts';
import type { PrivateDirectory } from './private-directory.ts';

/** Who delivers a run, by the signs of life of the replica that holds it. */
export function holderOf(directory: PrivateDirectory, replica: string | undefined, lease_ms: number): Holder {
  if (replica === undefined) return { state: 'released' };
  const modified_ms = directory.modified_ms(replicaName(replica));
  if (modified_ms === undefined) return { state: 'lost' };
  // A sign from the future was given before the clock was set back: a live process gives another one soon.
  const silent_ms = Math.abs(Date.now() - modified_ms);
  return silent_ms <= lease_ms ? { state: 'alive', silent_ms } : { state: 'lost' };
}
