import type { JournalFold } from '../../../checkpoint/journal-fold.ts';
import type { Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../../checkpoint/store.ts';
import type { HeldCalls, NamedCall } from '../../../plans/held-calls.ts';

/** Calls beyond these are not remembered: a note is small. */
const HELD_MAX = 16;
const CHARACTERS_MAX = 64;

const heldKey = (run: RunId) => ({ kind: 'held_calls', name: run }) as const;

/** Replaces what was noted of the run before. */
export async function noteHeldCalls(
  notes: Notes,
  owner: Owner,
  run: RunId,
  { calls, settled }: HeldCalls,
  ttl_ms: number,
): Promise<void> {
  const value = JSON.stringify({ calls: calls.slice(0, HELD_MAX).map(shortened), settled });
  await notes.put(owner, heldKey(run), value, ttl_ms);
}

export async function readHeldCalls(notes: Notes, owner: Owner, run: RunId): Promise<HeldCalls | undefined> {
  const value = await notes.get(owner, heldKey(run));
  return value === undefined ? undefined : (JSON.parse(value) as HeldCalls);
}

export async function forgetHeldCalls(notes: Notes, owner: Owner, run: RunId): Promise<void> {
  await notes.consume(owner, heldKey(run));
}

/**
 * The held calls that were never settled. `delivered`: all calls of the journal, in order. A call that was settled since
 * stands for itself; any other stands for one of the same name, which the model made again under another id.
 */
export function neverSettled(
  held: HeldCalls | undefined,
  delivered: readonly NamedCall[],
): readonly NamedCall[] {
  if (!held) return [];
  const left = [...held.calls];
  const strike = (isMeant: (call: NamedCall) => boolean): boolean => {
    const place = left.findIndex(isMeant);
    if (place >= 0) left.splice(place, 1);
    return place >= 0;
  };
  const since = delivered.slice(held.settled).map(shortened);
  const others = since.filter(({ id, name }) => !strike((call) => call.id === id && call.name === name));
  for (const { name } of others) strike((call) => call.name === name);
  return left;
}

/** The calls of a stored answer that had begun and were never settled, whether its client saw them begin or not. */
export function unfinishedCalls(
  { finish, tool_calls }: Pick<JournalFold, 'finish' | 'tool_calls'>,
  held: HeldCalls | undefined,
): readonly NamedCall[] {
  if (finish !== undefined) return [];
  const shown = tool_calls.filter(({ closed }) => closed === undefined);
  return [...shown.map(({ id, name }) => ({ id, name })), ...neverSettled(held, tool_calls)];
}

const shortened = ({ id, name }: NamedCall): NamedCall => ({
  id: id.slice(0, CHARACTERS_MAX),
  name: name.slice(0, CHARACTERS_MAX),
});
