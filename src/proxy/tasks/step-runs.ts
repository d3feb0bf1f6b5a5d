import type { NoteKey } from '../../checkpoint/notes.ts';
import type { Owner, RunId, Store, StoredRun } from '../../checkpoint/store.ts';
import { type KnownRun, knownRunIn } from '../resume/run-lookup.ts';

/** Where the run of a step is noted. `name`: that of the step. */
export const stepNote = (name: string): NoteKey => ({ kind: 'step', name });

/** What is noted of a step; undefined where nothing is, or that is forgotten. Rejects where the store does not answer, as the following do. */
export async function knownStep(
  store: Pick<Store, 'notes'>,
  owner: Owner,
  name: string,
): Promise<KnownRun | undefined> {
  const noted = await store.notes.get(owner, stepNote(name));
  return noted === undefined ? undefined : knownRunIn(noted);
}

/** The run that has answered a step last; undefined where none is known. */
export async function runOfStep(
  store: Pick<Store, 'notes'>,
  owner: Owner,
  name: string,
): Promise<RunId | undefined> {
  return (await knownStep(store, owner, name))?.run;
}

/** The same as it is stored. */
export async function storedStep(
  store: Store,
  owner: Owner,
  name: string,
): Promise<{ readonly run: RunId; readonly stored: StoredRun } | undefined> {
  const run = await runOfStep(store, owner, name);
  const stored = run && (await store.read(run, owner, 0));
  return run && stored ? { run, stored } : undefined;
}
