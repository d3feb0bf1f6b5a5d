import { BestEffortStore, NAMED_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import { isRunId, type Owner, type RunId, type StoredRun } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import { sleep } from '../../lib/time.ts';
import type { RunContext } from '../run/context/run-context.ts';
import type { RunRegistry } from '../run/run-registry.ts';
import { wireOf } from '../wires/registry.ts';
import { isLeftOver, isUnfinished, withEnding } from './stored-ending.ts';

/** How long the run of a known note may take to be in the store: it begins right after the note was claimed. */
const BEGIN_MAX_MS = 1000;
const BEGIN_POLL_MS = 20;
/** How long a run whose client has left may take to end: Holdfast stores what there is of the answer meanwhile. */
const ENDING_MAX_MS = 2000;
/** How many runs of one note may have ended without an answer before the look-up gives up. */
const RUNS_PER_NOTE_MAX = 16;
/** How many times a lease's length a holder is asked for a sign of life. */
const LIFE_POLLS_PER_LEASE = 12;
/** Beyond every event: of a run that is looked at for its state, no records are wanted. */
const NO_RECORDS = Number.MAX_SAFE_INTEGER;

/** A request, as far as it can stand for a run that was begun before. */
export interface Ask {
  readonly owner: Owner;
  /** See `requestDigest`. */
  readonly digest: string;
  /** Where the run is noted that the request stands for: by its `Idempotency-Key`, or as a step of its task. */
  readonly note?: NoteKey;
  /** What that note says, if it has been claimed already. */
  readonly noted?: Noted;
  /** Of a step of a task: the session that it was begun for, if that had a name. */
  readonly session?: string | undefined;
  /** What was delivered of an answer to this request can be continued. */
  isJoinable(): boolean;
  /** What the run is called if it is a new one. */
  readonly fresh: RunId;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
}

/** What a note says: a run, and for a key or a step the request it was used for. */
export interface KnownRun {
  readonly run: RunId;
  readonly digest?: string;
  /** See `Ask`. */
  readonly session?: string | undefined;
  /** Its client has left it before it had all of the answer: the run continues for a while, or is about to end. */
  readonly left?: Left;
}

/** What a note says to a request that claims it: `own`, if no other request had it before. */
export type Noted = KnownRun | 'own';

export type Left = 'detached' | 'ending';

/** The run that a note names. A malformed note, or one of another version, counts as none. */
export function knownRunIn(note: string): KnownRun | undefined {
  const known = parsedJson(note);
  if (!isObject(known) || typeof known.run !== 'string' || !isRunId(known.run)) return undefined;
  return known as unknown as KnownRun;
}

/** Finds the run that a request was sent for before. A store that fails, or is slow, costs no stream its beginning. */
export class RunLookup {
  readonly #context: RunContext;
  readonly #registry: RunRegistry;
  readonly #ttl_ms: number;
  /** Does not apply to requests with a key, or of a task, which are looked up all the same. */
  readonly #patience: BestEffortStore;
  /** With those, and with a request of which it is known that it repeats another one. */
  readonly #longPatience: BestEffortStore;

  constructor(context: RunContext, registry: RunRegistry) {
    this.#context = context;
    this.#registry = registry;
    this.#ttl_ms = context.configuration.checkpoint.ttl_s * 1000;
    this.#patience = new BestEffortStore(context, 'repeated requests are not recognised');
    this.#longPatience = new BestEffortStore(
      context,
      'requests with a key, or of a task, may be answered anew',
      NAMED_WAIT_MAX_MS,
    );
  }

  /**
   * The run to return to; `undefined` when `ask.fresh` is to be begun. A note stands for its run unless that ended without
   * anything to continue, and a request without one for its run if the client of that cannot have had all of it: its
   * replica was lost, or the client has left. Throws `idempotency_mismatch`.
   */
  async find(ask: Ask): Promise<RunId | undefined> {
    if (ask.note) return this.#ofNote(ask, ask.note);
    if (!this.#context.configuration.resume.match_requests) return undefined;
    if (this.#patience.isResting) return undefined;
    return this.#ofRequest(ask);
  }

  /** Has the note name `ask.fresh`, unless it names a run. Undefined where the store does not say. Throws `idempotency_mismatch`. */
  async claim(ask: Ask, note: NoteKey): Promise<Noted | undefined> {
    const { notes } = this.#context.store;
    const own = ownNote(ask);
    const kept = await this.#longPatience.answerOf(notes.claim(ask.owner, note, own, this.#ttl_ms));
    if (kept === undefined) return undefined;
    if (kept === own) return 'own';
    const known = knownRunIn(kept);
    if (!known) {
      await this.#longPatience.answerOf(notes.put(ask.owner, note, own, this.#ttl_ms));
      return 'own';
    }
    if (known.digest !== ask.digest) throw apiError('idempotency_mismatch');
    return known;
  }

  /**
   * Whether the client of the run that is noted there cannot have had all of its answer: the run came to nothing, its
   * replica was lost, or the client has left.
   */
  async isOwed(ask: Ask, note: NoteKey): Promise<boolean> {
    const { owner, signal } = ask;
    const known = await this.#noted(ask, note);
    if (!known || known.left !== undefined) return true;
    const stored = await this.#begun(known.run, owner, signal);
    if (stored?.status !== 'running') return stored?.status !== 'complete';
    if (await this.#isOrphaned(known.run, owner, stored, signal)) return true;
    return this.#hasLeft(ask, note, known.run);
  }

  /** Whether the run that is noted there is a whole answer, or under way. */
  async isAnswered(owner: Owner, note: NoteKey): Promise<boolean> {
    const known = await this.#found({ owner }, note);
    const stored = known && (await this.#state(known.run, owner));
    return stored?.status === 'complete' || stored?.status === 'running';
  }

  /** The answer to this request has begun to be delivered: a repetition may need the rest. */
  remember(ask: Ask, run: RunId): void {
    const active = this.#registry.holder(run);
    if (active) active.leaving = undefined;
    // A note was claimed for the run before that was begun, unless it is the successor of another one.
    if (!ask.note || run !== ask.fresh) void this.#note(ask, { run });
  }

  /** The client of the run has left before it had all of the answer. `left`: what the run does now. */
  leave(ask: Ask, run: RunId, left: Left): void {
    const noted = this.#note(ask, { run, left });
    const active = this.#registry.holder(run);
    if (active) active.leaving = noted;
  }

  /** Resolves once the store has the note, or has failed at it. */
  async #note({ owner, digest, session, note }: Ask, known: KnownRun): Promise<void> {
    const { configuration, store } = this.#context;
    const { clocks, resume } = configuration;
    const patience = note ? this.#longPatience : this.#patience;
    if (patience.isResting || (!note && !resume.match_requests)) return;
    const noted = note
      ? store.notes.put(owner, note, JSON.stringify({ ...known, digest, session }), this.#ttl_ms)
      : store.notes.put(
          owner,
          requestNote(digest),
          JSON.stringify(known),
          clocks.attempt_ms + resume.salvage_after_ms,
        );
    await noted.catch((error) => patience.rest(error));
  }

  async #ofNote(ask: Ask, own: NoteKey): Promise<RunId | undefined> {
    const { owner, signal } = ask;
    const { notes } = this.#context.store;
    let note = own;
    for (let runs = 0; runs < RUNS_PER_NOTE_MAX; runs++) {
      const noted = note === own && ask.noted ? ask.noted : await this.claim(ask, note);
      if (noted === undefined) return undefined;
      if (noted === 'own') {
        if (runs > 0) await this.#longPatience.answerOf(notes.put(owner, own, ownNote(ask), this.#ttl_ms));
        return undefined;
      }
      const stored = await this.#begun(noted.run, owner, signal);
      if (stored && (await this.#isOfUse(ask, noted, stored))) return noted.run;
      // Of all requests that cannot use this run, one begins the run that takes its place.
      note = successorNote(noted.run);
    }
    return undefined;
  }

  /** Whether the run is, or will be, an answer, or the beginning of one. */
  async #isOfUse(ask: Ask, known: KnownRun, first: StoredRun): Promise<boolean> {
    const stored = await this.#settled(ask, known, first);
    if (stored?.status === 'running' || stored?.status === 'complete') return true;
    const isNothing =
      stored?.status === 'failed' ||
      (stored?.end && !isUnfinished(stored.end) && stored.status === 'cancelled');
    return !isNothing && this.#isPartOfAnswer(known.run, ask);
  }

  /** Of a run that has ended early, calls that were settled are an answer. */
  async #isPartOfAnswer(run: RunId, { owner, isJoinable }: Ask): Promise<boolean> {
    const whole = await this.#longPatience.answerOf(this.#context.store.read(run, owner, 0));
    if (!whole) return false;
    if (isLeftOver(whole) && isJoinable()) return true;
    const last = withEnding(run, whole).records.at(-1)?.events.at(-1)?.payload;
    return last !== undefined && wireOf(whole).delivered.endOf(last) === 'done';
  }

  /** The run once it has ended, if it is about to: its client has left it. */
  async #settled(
    { owner, signal }: Ask,
    { run, left }: KnownRun,
    first: StoredRun | undefined,
  ): Promise<StoredRun | undefined> {
    const { time } = this.#context;
    const until_ms = time.now() + ENDING_MAX_MS;
    let stored = first;
    while (left === 'ending' && stored?.status === 'running' && stored.holder.state === 'alive') {
      if (signal.aborted || time.now() >= until_ms) break;
      await sleep(time, BEGIN_POLL_MS, signal);
      stored = await this.#state(run, owner);
    }
    return stored;
  }

  /** Another request with the same note may be a moment ahead of this one. */
  async #begun(run: RunId, owner: Owner, signal: AbortSignal): Promise<StoredRun | undefined> {
    const { time } = this.#context;
    const until_ms = time.now() + BEGIN_MAX_MS;
    for (;;) {
      const stored = await this.#state(run, owner);
      if (stored || signal.aborted || time.now() >= until_ms) return stored;
      await sleep(time, BEGIN_POLL_MS, signal);
    }
  }

  async #ofRequest(ask: Ask): Promise<RunId | undefined> {
    const { owner, signal } = ask;
    const known = await this.#taken(ask);
    if (!known) return undefined;
    const { run, left } = known;
    const stored = await this.#settled(ask, known, await this.#state(run, owner));
    if (!stored) return undefined;
    if (stored.end) {
      const isWanted = stored.status === 'complete' ? left !== undefined : isUnfinished(stored.end);
      return isWanted && (await this.#isOfUse(ask, known, stored)) ? run : undefined;
    }
    if (left === 'detached' || (await this.#isOrphaned(run, owner, stored, signal))) return run;
    // A client that asks again at once may be here before the replica that it has left, another one, has said so.
    if (left === undefined && (await this.#hasLeft(ask, requestNote(ask.digest), run)))
      return this.#ofRequest(ask);
    this.remember(ask, run);
    return undefined;
  }

  /**
   * The run that this request was noted for. The note is taken, so that of several repetitions one gets the run, and the
   * others get one of their own.
   */
  async #taken(ask: Ask): Promise<KnownRun | undefined> {
    const { notes } = this.#context.store;
    const taken = await this.#patience.answerOf(notes.consume(ask.owner, requestNote(ask.digest)));
    if (taken === undefined) return undefined;
    const known = knownRunIn(taken);
    if (!known) return undefined;
    return known.left === undefined && (await this.#isLeaving(known, ask)) ? this.#taken(ask) : known;
  }

  /** What the note says, once another request that is a moment ahead has put it, and what its client has done was noted. */
  async #noted(ask: Ask, note: NoteKey): Promise<KnownRun | undefined> {
    const { time } = this.#context;
    const until_ms = time.now() + BEGIN_MAX_MS;
    for (;;) {
      const known = await this.#found(ask, note);
      if (known)
        return known.left === undefined && (await this.#isLeaving(known, ask))
          ? this.#found(ask, note)
          : known;
      if (ask.signal.aborted || time.now() >= until_ms) return undefined;
      await sleep(time, BEGIN_POLL_MS, ask.signal);
    }
  }

  async #found({ owner }: Pick<Ask, 'owner'>, note: NoteKey): Promise<KnownRun | undefined> {
    const found = await this.#longPatience.answerOf(this.#context.store.notes.get(owner, note));
    return found === undefined ? undefined : knownRunIn(found);
  }

  /** Whether there is a note by now that the client of the run has left it. */
  async #hasLeft(ask: Ask, note: NoteKey, run: RunId): Promise<boolean> {
    const known = await this.#found(ask, note);
    return known?.run === run && known.left !== undefined;
  }

  /** Whether the client of a run that is under way here has left it. Resolves once that is noted. */
  async #isLeaving({ run }: KnownRun, { signal }: Ask): Promise<boolean> {
    const active = this.#registry.holder(run);
    if (!active) return false;
    // A connection is known to be closed only at the end of the turn in which its client asks again on another one.
    await sleep(this.#context.time, 0, signal);
    const noted = active.leaving;
    await noted;
    return noted !== undefined;
  }

  /**
   * A holder elsewhere that looks alive may just have died: either it gives another sign of life, or its lease lapses.
   * A run without content is not waited for, since nothing of it could be kept: many samples of one prompt are asked for
   * at once.
   */
  async #isOrphaned(run: RunId, owner: Owner, first: StoredRun, signal: AbortSignal): Promise<boolean> {
    const { configuration, time } = this.#context;
    const { lease_ms } = configuration.checkpoint;
    const poll_ms = lease_ms / LIFE_POLLS_PER_LEASE;
    const until_ms = time.now() + lease_ms + poll_ms;
    let stored: StoredRun | undefined = first;
    for (;;) {
      if (stored?.status !== 'running' || stored.seq === 0) return false;
      const { holder } = stored;
      if (holder.state !== 'alive') return true;
      if (this.#registry.holder(run) || signal.aborted || time.now() >= until_ms) return false;
      await sleep(time, poll_ms, signal);
      stored = await this.#state(run, owner);
      if (stored?.holder.state === 'alive' && stored.holder.silent_ms < holder.silent_ms) return false;
    }
  }

  async #state(run: RunId, owner: Owner): Promise<StoredRun | undefined> {
    return (await this.#longPatience.answerOf(this.#context.store.read(run, owner, NO_RECORDS))) ?? undefined;
  }
}

/** What a note says once the request has it. */
const ownNote = ({ fresh, digest, session }: Ask): string => JSON.stringify({ run: fresh, digest, session });

export const keyNote = (name: string): NoteKey => ({ kind: 'idempotency', name });
/** What takes the place of a run that has ended without a whole answer. */
export const successorNote = (run: RunId): NoteKey => ({ kind: 'successor', name: run });
const requestNote = (digest: string): NoteKey => ({ kind: 'request', name: digest });
