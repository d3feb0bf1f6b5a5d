import type { NoteKey } from '../../checkpoint/notes.ts';
import type { Owner, RunId, Store, StoredRun } from '../../checkpoint/store.ts';
import { type KnownRun, knownRunIn } from '../resume/run-lookup.ts';

/** The note that names a step's run. `name`: the step's name. */
export const stepNote = (name: string): NoteKey => ({ kind: 'step', name });

/** The noted run of a step; undefined if there is none. Rejects if the store does not answer. */
export async function knownStep(
  store: Pick<Store, 'notes'>,
  owner: Owner,
  name: string,
): Promise<KnownRun | undefined> {
  const noted = await store.notes.get(owner, stepNote(name));
  return noted === undefined ? undefined : knownRunIn(noted);
}

/** The run that answered a step last; undefined if unknown. Rejects if the store does not answer. */
export async function runOfStep(
  store: Pick<Store, 'notes'>,
  owner: Owner,
  name: string,
): Promise<RunId | undefined> {
  return (await knownStep(store, owner, name))?.run;
}

/** That run as stored. Rejects if the store does not answer. */
export async function storedStep(
  store: Store,
  owner: Owner,
  name: string,
): Promise<{ readonly run: RunId; readonly stored: StoredRun } | undefined> {
  const run = await runOfStep(store, owner, name);
  const stored = run && (await store.read(run, owner, 0));
  return run && stored ? { run, stored } : undefined;
}
