import { randomUUID } from 'node:crypto';
import type { NoteKey, Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../../checkpoint/store.ts';

/** A note that was taken from the store. */
export interface Taken {
  readonly run: RunId;
  readonly owner: Owner;
  readonly key: NoteKey;
  readonly value: string;
}

/**
 * Whether what the note says is to be told by who has taken it. A note is left before its run is ended, and left again
 * when that fails: by then the first one may have been told.
 */
export async function claimNotice(notes: Notes, taken: Taken, ttl_ms: number): Promise<boolean> {
  const claim = randomUUID();
  return (await notes.claim(taken.owner, toldKey(taken), claim, ttl_ms)) === claim;
}

/** Leaves the note to another one to tell, unless there is a newer one by now. */
export async function putBack(notes: Notes, taken: Taken, ttl_ms: number): Promise<void> {
  const { owner, key, value } = taken;
  // Found while it is claimed, it would be taken for told.
  await notes.consume(owner, toldKey(taken));
  await notes.claim(owner, key, value, ttl_ms);
}

const toldKey = ({ run, key }: Taken): NoteKey => ({ kind: 'told', name: `${key.kind} ${run}` });
