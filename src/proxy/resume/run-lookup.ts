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

/** How long a run may take to appear in the store: it begins right after its note is claimed. */
const BEGIN_MAX_MS = 1000;
const BEGIN_POLL_MS = 20;
/** How long a run without its client may take to end; meanwhile Holdfast stores the partial answer. */
const ENDING_MAX_MS = 2000;
/** How many runs of one note may have failed before the lookup gives up. */
const RUNS_PER_NOTE_MAX = 16;
/** How often to poll a holder's heartbeat, per lease. */
const LIFE_POLLS_PER_LEASE = 12;
/** A position after every event, to read a run's state without records. */
const NO_RECORDS = Number.MAX_SAFE_INTEGER;

/** A request that may repeat one of an earlier run. */
export interface Ask {
  readonly owner: Owner;
  /** See `requestDigest`. */
  readonly digest: string;
  /** The note that names the run of this request: by `Idempotency-Key`, or by step of a task. */
  readonly note?: NoteKey;
  /** What that note contains, if it was already claimed. */
  readonly noted?: Noted;
  /** For a step of a task: the session that began it, if named. */
  readonly session?: string | undefined;
  /** Whether a partial answer to this request can be continued. */
  isJoinable(): boolean;
  /** The id for a new run. */
  readonly fresh: RunId;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** The content of a note: a run, and for keys and steps the digest of its request. */
export interface KnownRun {
  readonly run: RunId;
  readonly digest?: string;
  /** See `Ask`. */
  readonly session?: string | undefined;
  /** Set if the client left before it had the whole answer: the run continues for a while, or is about to end. */
  readonly left?: Left;
}

/** The result of claiming a note: `own` if no other request has claimed it. */
export type Noted = KnownRun | 'own';

export type Left = 'detached' | 'ending';

/** The run named in a note; undefined if the note is malformed or from another version. */
export function knownRunIn(note: string): KnownRun | undefined {
  const known = parsedJson(note);
  if (!isObject(known) || typeof known.run !== 'string' || !isRunId(known.run)) return undefined;
  return known as unknown as KnownRun;
}

/** Finds the earlier run of a repeated request. A failing or slow store never prevents a stream from beginning. */
export class RunLookup {
  readonly #context: RunContext;
  readonly #registry: RunRegistry;
  readonly #ttl_ms: number;
  /** For requests without a key or task. Others are always looked up. */
  readonly #patience: BestEffortStore;
  /** For requests with a key or task, and for known repetitions. */
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
   * The run to return to; `undefined` if `ask.fresh` must begin. A note stands for its run unless that ended with
   * nothing to continue. Without a note, the request must be one whose client can't have received everything: its
   * replica was lost, or the client left. Throws `idempotency_mismatch`.
   */
  async find(ask: Ask): Promise<RunId | undefined> {
    if (ask.note) return this.#ofNote(ask, ask.note);
    if (!this.#context.configuration.resume.match_requests) return undefined;
    if (this.#patience.isResting) return undefined;
    return this.#ofRequest(ask);
  }

  /**
   * Writes `ask.fresh` into the note, unless it already names a run. Undefined if the store does not answer. Throws
   * `idempotency_mismatch`.
   */
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
   * Whether the client of the noted run can't have received the whole answer: the run failed, its replica was lost, or
   * the client left.
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

  /** Whether the noted run is complete or in progress. */
  async isAnswered(owner: Owner, note: NoteKey): Promise<boolean> {
    const known = await this.#found({ owner }, note);
    const stored = known && (await this.#state(known.run, owner));
    return stored?.status === 'complete' || stored?.status === 'running';
  }

  /** Records that the answer to this request has begun, so that a repetition can find it. */
  remember(ask: Ask, run: RunId): void {
    const active = this.#registry.holder(run);
    if (active) active.leaving = undefined;
    // The note was already claimed before the run began, unless the run is a successor.
    if (!ask.note || run !== ask.fresh) void this.#note(ask, { run });
  }

  /** Records that the client left before it had the whole answer. `left`: what the run does now. */
  leave(ask: Ask, run: RunId, left: Left): void {
    const noted = this.#note(ask, { run, left });
    const active = this.#registry.holder(run);
    if (active) active.leaving = noted;
  }

  /** Resolves once the store has the note, or has failed. */
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
      // All requests that can't use this run compete for its successor, and one of them begins it.
      note = successorNote(noted.run);
    }
    return undefined;
  }

  /** Whether the run is or will be at least the beginning of an answer. */
  async #isOfUse(ask: Ask, known: KnownRun, first: StoredRun): Promise<boolean> {
    const stored = await this.#settled(ask, known, first);
    if (stored?.status === 'running' || stored?.status === 'complete') return true;
    const isNothing =
      stored?.status === 'failed' ||
      (stored?.end && !isUnfinished(stored.end) && stored.status === 'cancelled');
    return !isNothing && this.#isPartOfAnswer(known.run, ask);
  }

  /** For a run that ended early, settled calls count as an answer. */
  async #isPartOfAnswer(run: RunId, { owner, isJoinable }: Ask): Promise<boolean> {
    const whole = await this.#longPatience.answerOf(this.#context.store.read(run, owner, 0));
    if (!whole) return false;
    if (isLeftOver(whole) && isJoinable()) return true;
    const last = withEnding(run, whole).records.at(-1)?.events.at(-1)?.payload;
    return last !== undefined && wireOf(whole).delivered.endOf(last) === 'done';
  }

  /** Waits for a run to end if it is about to, because its client left. */
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

  /** Waits for a run that another request with the same note may be about to begin. */
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
    // A client that retries at once may arrive before another replica has noted that it left.
    if (left === undefined && (await this.#hasLeft(ask, requestNote(ask.digest), run)))
      return this.#ofRequest(ask);
    this.remember(ask, run);
    return undefined;
  }

  /**
   * The run noted for this request. Consumes the note, so that only one of several repetitions gets the run and the
   * others begin their own.
   */
  async #taken(ask: Ask): Promise<KnownRun | undefined> {
    const { notes } = this.#context.store;
    const taken = await this.#patience.answerOf(notes.consume(ask.owner, requestNote(ask.digest)));
    if (taken === undefined) return undefined;
    const known = knownRunIn(taken);
    if (!known) return undefined;
    return known.left === undefined && (await this.#isLeaving(known, ask)) ? this.#taken(ask) : known;
  }

  /**
   * The content of the note, after waiting for a concurrent request to write it, and for a departure of its client to
   * be recorded.
   */
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

  /** Whether the note now says that the run's client left. */
  async #hasLeft(ask: Ask, note: NoteKey, run: RunId): Promise<boolean> {
    const known = await this.#found(ask, note);
    return known?.run === run && known.left !== undefined;
  }

  /** Whether the client of a run on this replica left it. Resolves once that is noted. */
  async #isLeaving({ run }: KnownRun, { signal }: Ask): Promise<boolean> {
    const active = this.#registry.holder(run);
    if (!active) return false;
    // A closed connection is detected only at the end of the turn in which its client retries on another connection.
    await sleep(this.#context.time, 0, signal);
    const noted = active.leaving;
    await noted;
    return noted !== undefined;
  }

  /**
   * Whether the run has lost its holder. A holder elsewhere that looks alive may have just died: wait for its next
   * heartbeat or for its lease to expire. A run without content isn't awaited, because there is nothing to keep:
   * clients may ask for many samples of one prompt at once.
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

/** The note's content once this request has claimed it. */
const ownNote = ({ fresh, digest, session }: Ask): string => JSON.stringify({ run: fresh, digest, session });

export const keyNote = (name: string): NoteKey => ({ kind: 'idempotency', name });
/** The successor of a run that ended without a whole answer. */
export const successorNote = (run: RunId): NoteKey => ({ kind: 'successor', name: run });
const requestNote = (digest: string): NoteKey => ({ kind: 'request', name: digest });
