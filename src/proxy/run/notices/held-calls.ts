import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { Sweepable } from '../../../checkpoint/checkpoint-scheduler.ts';
import type { JournalFold } from '../../../checkpoint/journal-fold.ts';
import type { Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId } from '../../../checkpoint/store.ts';
import { inTime } from '../../../lib/time.ts';
import { shownCallId } from '../../../plans/shown-calls.ts';
import { type HeldCalls, isRepeated, type NamedCall, type ToolCall } from '../../../plans/tool-call.ts';
import type { Transcript } from '../../../plans/transcript.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { notMadeAgain } from './lost-calls.ts';

/** Keeps notes small: further calls are not noted. */
const HELD_MAX = 16;
const CHARACTERS_MAX = 64;

const heldKey = (run: RunId) => ({ kind: 'held_calls', name: run }) as const;

/** Replaces the run's previous note. */
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
 * The held calls that were never settled. `delivered`: all calls in the journal, in order. A call settled since then
 * removes its own entry; any other call removes one with the same name, because the model made it again under another
 * id.
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

/** The calls of a stored answer that began and were never settled, whether the client saw them or not. */
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

interface HeldCallNotesOptions {
  /** Returns the calls to note. */
  readonly heldNow: () => HeldCalls;
  /** An earlier replica has left a note. */
  readonly isNoted: boolean;
}

/**
 * Notes which calls of a run are held, for readers that find the run without its replica. A call that settles within
 * the checkpoint interval needs no note; any other needs one, however many fragments it has.
 */
export class HeldCallNotes implements Sweepable {
  readonly #run: Pick<Run, 'id' | 'owner'>;
  readonly #context: Pick<RunContext, 'store' | 'scheduler' | 'configuration' | 'time' | 'log'>;
  readonly #heldNow: () => HeldCalls;
  /** A call that is not noted has begun. */
  #isDue = false;
  #isNoted: boolean;
  #isStopped = false;
  #written: Promise<void> = Promise.resolve();

  constructor(
    run: Pick<Run, 'id' | 'owner'>,
    context: Pick<RunContext, 'store' | 'scheduler' | 'configuration' | 'time' | 'log'>,
    { heldNow, isNoted }: HeldCallNotesOptions,
  ) {
    this.#run = run;
    this.#context = context;
    this.#heldNow = heldNow;
    this.#isNoted = isNoted;
  }

  /** Schedules a note for a call that has begun. */
  began(): void {
    this.#isDue = true;
    this.#context.scheduler.later(this);
  }

  sweep(): void {
    if (!this.#isStopped) this.#note();
  }

  /** Stops noting, because another replica has the run. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * The run has ended on this replica. Unless `isWhole`, waits for the held calls to be noted, within a limit;
   * otherwise deletes the note in the background.
   */
  async end(isWhole: boolean): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    const { store, time } = this.#context;
    const { id, owner } = this.#run;
    if (!isWhole) {
      this.#note();
      await inTime(this.#written, time, STORE_WAIT_MAX_MS);
    } else if (this.#isNoted) this.#write(() => forgetHeldCalls(store.notes, owner, id));
  }

  #note(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    const held = this.#heldNow();
    if (held.calls.length === 0) return;
    this.#isNoted = true;
    const { store, configuration } = this.#context;
    const { id, owner } = this.#run;
    const ttl_ms = configuration.checkpoint.ttl_s * 1000;
    this.#write(() => noteHeldCalls(store.notes, owner, id, held, ttl_ms));
  }

  /** Sequential, so that no write follows the deletion of the note. */
  #write(write: () => Promise<void>): void {
    this.#written = this.#written.then(write).catch((error: unknown) => {
      this.#context.log.warn(
        { run: this.#run.id, err: error },
        'held calls not noted: the store does not take it',
      );
    });
  }
}

/**
 * Calls that began and are not settled: open ones, and cut ones that were not made again. `before`: calls cut on
 * earlier replicas.
 */
export function unfinishedIn(transcript: Transcript, before: readonly ToolCall[] = []): readonly ToolCall[] {
  const { toolCalls, openCalls, closedCalls } = transcript;
  const cut = toolCalls.filter((call) => call.state === 'cancelled' && !isRepeated(call, closedCalls));
  return [...notMadeAgain([...before, ...cut], closedCalls), ...openCalls];
}

/** The unfinished calls in the form of a note. `hasIds`: false for the legacy interface. */
export function heldIn(
  transcript: Transcript,
  before: readonly ToolCall[] | undefined,
  hasIds: boolean,
): HeldCalls {
  const calls = unfinishedIn(transcript, before).map(({ id, name, index }) => ({
    id: hasIds ? shownCallId(id, index) : id,
    name,
  }));
  return { calls, settled: transcript.closedCalls.length };
}
