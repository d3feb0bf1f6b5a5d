import { createHmac } from 'node:crypto';
import type { WireName } from '../../checkpoint/journal.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import type { Owner, RunId, StoredRun } from '../../checkpoint/store.ts';
import { apiError } from '../../errors.ts';
import { sleep } from '../../time.ts';
import type { EventsMode, RunContext } from '../run.ts';
import type { RunRegistry } from '../run-registry.ts';
import { StorePatience } from '../store-patience.ts';
import { wireOf } from '../wires/registry.ts';
import { withEnding } from './stored-ending.ts';

/** How long the run of a known key may take to be in the store: it begins right after the key was claimed. */
const BEGIN_MAX_MS = 250;
const BEGIN_POLL_MS = 20;
/** How many runs of one key may have come to nothing before it is not looked up any further. */
const RUNS_PER_KEY_MAX = 16;
/** How many times a lease's length a holder is asked for a sign of life. */
const LIFE_POLLS_PER_LEASE = 12;
/** Beyond every event: of a run that is looked at for its state, no records are wanted. */
const NO_RECORDS = Number.MAX_SAFE_INTEGER;

/** A request, as far as it can stand for a run that was begun before. */
export interface Ask {
  readonly owner: Owner;
  /** See {@link requestDigest}. */
  readonly digest: string;
  /** `Idempotency-Key`. */
  readonly key?: string;
  /** What the run is called if it is a new one. */
  readonly fresh: RunId;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
}

/** What a note says: a run, and for a key the request it was used for. */
export interface KnownRun {
  readonly run: RunId;
  readonly digest?: string;
}

export interface DigestedRequest {
  readonly wire: WireName;
  readonly events: EventsMode;
  readonly body: string;
}

/** What makes two requests the same. Keyed, so that what a store holds cannot be tested against guessed prompts. */
export const requestDigest = (secret: string, { wire, events, body }: DigestedRequest): string =>
  createHmac('sha256', secret).update(`${wire} ${events}\n`).update(body).digest('base64url');

/** Finds the run that a request was sent for before. A store that fails, or is slow, costs no stream its beginning. */
export class RunLookup {
  readonly #context: RunContext;
  readonly #registry: RunRegistry;
  /** Of no account to those who bring a key: they are looked up all the same. */
  readonly #patience: StorePatience;

  constructor(context: RunContext, registry: RunRegistry) {
    this.#context = context;
    this.#registry = registry;
    this.#patience = new StorePatience(context, 'repeated requests are not recognised');
  }

  /**
   * The run to follow; `undefined` when `ask.fresh` is to be begun. A key stands for its run unless that ended without
   * an answer, and a request without one for its run if that lost its replica after content was delivered.
   * Throws `idempotency_mismatch`.
   */
  async find(ask: Ask): Promise<RunId | undefined> {
    if (ask.key !== undefined) return this.#ofKey(ask, ask.key);
    if (!this.#context.configuration.resume.match_requests) return undefined;
    if (this.#patience.isResting) return undefined;
    return this.#ofRequest(ask);
  }

  /** The answer to this request has begun to be delivered: whoever repeats it may be in want of the rest. */
  remember({ owner, digest, key }: Ask, run: RunId): void {
    const { configuration, store } = this.#context;
    if (key !== undefined) return;
    if (!configuration.resume.match_requests || this.#patience.isResting) return;
    const { clocks, resume } = configuration;
    const known: KnownRun = { run };
    store.notes
      .put(owner, requestNote(digest), JSON.stringify(known), clocks.attempt_ms + resume.salvage_after_ms)
      .catch((error) => this.#patience.rest(error));
  }

  async #ofKey(ask: Ask, key: string): Promise<RunId | undefined> {
    const { owner, digest, fresh } = ask;
    const { configuration, store } = this.#context;
    const ttl_ms = configuration.checkpoint.ttl_s * 1000;
    const claim = JSON.stringify({ run: fresh, digest } satisfies KnownRun);
    let note = keyNote(key);
    for (let runs = 0; runs < RUNS_PER_KEY_MAX; runs++) {
      const kept = await this.#patience.answerOf(store.notes.claim(owner, note, claim, ttl_ms));
      if (kept === undefined) return undefined;
      if (kept === claim) {
        if (runs > 0) await this.#patience.answerOf(store.notes.put(owner, keyNote(key), claim, ttl_ms));
        return undefined;
      }
      const known = JSON.parse(kept) as KnownRun;
      if (known.digest !== digest) throw apiError('idempotency_mismatch');
      const stored = await this.#begun(known.run, owner, ask.signal);
      if (stored && (await this.#isOfUse(known.run, owner, stored))) return known.run;
      // Of all who find this run to be of no use, one begins the run that takes its place.
      note = keyNote(`after ${known.run}`);
    }
    return undefined;
  }

  /** Whether the run is, or will be, an answer: of a salvaged one, calls that were settled are. */
  async #isOfUse(run: RunId, owner: Owner, { status }: StoredRun): Promise<boolean> {
    if (status === 'running' || status === 'complete') return true;
    if (status === 'failed' || status === 'cancelled') return false;
    const whole = await this.#patience.answerOf(this.#context.store.read(run, owner, 0));
    if (!whole) return false;
    const last = withEnding(run, whole).records.at(-1)?.events.at(-1)?.payload;
    return last !== undefined && wireOf(whole).delivered.endOf(last) === 'done';
  }

  /** Another request with the same key may be a moment ahead of this one. */
  async #begun(run: RunId, owner: Owner, signal: AbortSignal): Promise<StoredRun | undefined> {
    const { time } = this.#context;
    const until_ms = time.now() + BEGIN_MAX_MS;
    for (;;) {
      const stored = await this.#state(run, owner);
      if (stored || signal.aborted || time.now() >= until_ms) return stored;
      await sleep(time, BEGIN_POLL_MS, signal);
    }
  }

  /** The note is taken, so that of several who repeat a request one gets the run, and the others get one of their own. */
  async #ofRequest(ask: Ask): Promise<RunId | undefined> {
    const { owner, digest, signal } = ask;
    const taken = await this.#patience.answerOf(this.#context.store.notes.take(owner, requestNote(digest)));
    if (taken === undefined) return undefined;
    const { run } = JSON.parse(taken) as KnownRun;
    const stored = await this.#state(run, owner);
    if (stored?.status !== 'running') return undefined;
    if (!(await this.#isOrphaned(run, owner, stored, signal))) {
      this.remember(ask, run);
      return undefined;
    }
    return run;
  }

  /**
   * A holder elsewhere that looks alive may just have died: either it gives another sign of life, or its lease lapses.
   * Nobody waits for a run without content, of which nothing could be kept: many samples of one prompt are asked for
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
    return (await this.#patience.answerOf(this.#context.store.read(run, owner, NO_RECORDS))) ?? undefined;
  }
}

export const keyNote = (name: string): NoteKey => ({ kind: 'idempotency', name });
const requestNote = (digest: string): NoteKey => ({ kind: 'request', name: digest });
