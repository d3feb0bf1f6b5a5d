import { NOTE_CHARACTERS_MAX, type NoteKey, type Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import type { Time } from '../../lib/time.ts';

/** A tool call of a task. `key`: the client's name for it, stable across crashes. */
export interface LedgerCall {
  readonly owner: Owner;
  readonly task: string;
  readonly key: string;
}

/** The answer to a client that wants to run a tool. */
export type ClaimAnswer =
  /** The client may run the tool; no other client does. */
  | { readonly outcome: 'run' }
  /** The tool has run, with this result. Without one, the client that ran it did not store the result. */
  | ({ readonly outcome: 'done' } & CallResult)
  /** Another client is running it, for up to this much longer. */
  | { readonly outcome: 'busy'; readonly retry_after_ms: number }
  /** A client claimed it and has not reported within the tool's time. */
  | { readonly outcome: 'unknown'; readonly claim: string; readonly claimed_at_ms: number };

/** Any JSON value. */
export interface CallResult {
  readonly result?: unknown;
}

/** `unknown`: a client claimed it and has not reported within the tool's time. */
export const CALL_STATES = ['claimed', 'done', 'released', 'unknown'] as const;

/** The state of a call, for observers. */
export interface KnownCall extends CallResult {
  readonly state: (typeof CALL_STATES)[number];
  /** The number of claims, unless the call is done. */
  readonly claims?: number;
}

export interface ClaimTerms {
  /** The client's name for this claim. A repetition with the same name is the same claim, until that is released. */
  readonly claim: string;
  /** How long the tool may take before its outcome counts as unknown. */
  readonly hold_ms: number;
  /** Run the tool again if its outcome is unknown. */
  readonly repeats: boolean;
}

interface Claim {
  readonly claim: string;
  readonly at_ms: number;
  readonly until_ms: number;
}

/** How often a call may be released. */
const RELEASES_MAX = 16;

/** Limit for a result as JSON, including its field name. */
export const RESULT_CHARACTERS_MAX = NOTE_CHARACTERS_MAX;

/**
 * Records which tool calls of a task were run, and their results. Clients run the tools: each asks before running one,
 * and reports the outcome. A call has one claim until that is released, and one result, which never changes.
 *
 * Each claim is a numbered note. Notes never change, so all replicas see the same order of claims and releases, and a
 * store only needs to keep the first value of a note.
 */
export class CallLedger {
  readonly #notes: Notes;
  readonly #time: Pick<Time, 'wall'>;
  readonly #ttl_ms: number;

  constructor(notes: Notes, time: Pick<Time, 'wall'>, ttl_ms: number) {
    this.#notes = notes;
    this.#time = time;
    this.#ttl_ms = ttl_ms;
  }

  /**
   * Claims a call. Throws `claim_released` and `call_released_too_often`. Rejects if the store does not answer: the
   * tool must not run then.
   */
  async claim(call: LedgerCall, { claim, hold_ms, repeats }: ClaimTerms): Promise<ClaimAnswer> {
    const done = await this.#done(call);
    if (done) return done;
    const at_ms = this.#time.wall();
    const own: Claim = { claim, at_ms, until_ms: at_ms + hold_ms };
    for (let number = 0; number <= RELEASES_MAX; number++) {
      const held = await this.#keep(call, claimNote(call, number), own);
      const isOwn = held.claim === claim;
      if (await this.#isReleased(call, number)) {
        // It must not become valid again, because its release may be sent once more.
        if (isOwn) throw apiError('claim_released');
        continue;
      }
      if (isOwn) return { outcome: 'run' };
      // The result may have arrived meanwhile.
      const result = await this.#done(call);
      if (result) return result;
      const left_ms = held.until_ms - at_ms;
      if (left_ms > 0) return { outcome: 'busy', retry_after_ms: left_ms };
      if (!repeats) return { outcome: 'unknown', claim: held.claim, claimed_at_ms: held.at_ms };
      await this.#release(call, number);
    }
    throw apiError('call_released_too_often', { limit: RELEASES_MAX });
  }

  /**
   * Records that the tool has run. Throws `call_not_claimed` if the claim is not valid, `call_done` if a different
   * result exists, which stays, and `result_too_large`.
   */
  async keepResult(call: LedgerCall, claim: string, result: CallResult): Promise<void> {
    const value = JSON.stringify(result);
    if (value.length > RESULT_CHARACTERS_MAX)
      throw apiError('result_too_large', { length: value.length, limit: RESULT_CHARACTERS_MAX });
    const { standing } = await this.#claims(call);
    if (standing?.claim !== claim) throw apiError('call_not_claimed');
    const kept = await this.#notes.claim(call.owner, resultNote(call), value, this.#ttl_ms);
    if (kept !== value) throw apiError('call_done');
  }

  /**
   * Records that the tool has not run under this claim, as reported by its client, or by one that got `unknown` and
   * checked. Throws `call_not_claimed` and `call_done`.
   */
  async release(call: LedgerCall, claim: string): Promise<void> {
    if (await this.#done(call)) throw apiError('call_done');
    const { released, standing } = await this.#claims(call);
    if (standing?.claim === claim) return this.#release(call, released.length);
    // A repeated release succeeds, because the first answer may have been lost.
    if (!released.some((each) => each.claim === claim)) throw apiError('call_not_claimed');
  }

  /** Reads the state of a call. Undefined if it was never claimed, or is no longer known. */
  async known(call: LedgerCall): Promise<KnownCall | undefined> {
    const done = await this.#result(call);
    if (done) return { state: 'done', ...done };
    const { released, standing } = await this.#claims(call);
    if (!standing) return released.length === 0 ? undefined : { state: 'released', claims: released.length };
    const claims = released.length + 1;
    if (standing.until_ms > this.#time.wall()) return { state: 'claimed', claims };
    // The result may have arrived meanwhile.
    const late = await this.#result(call);
    return late ? { state: 'done', ...late } : { state: 'unknown', claims };
  }

  /** Deletes the call's claims and result. */
  async forget(call: LedgerCall): Promise<void> {
    const { owner } = call;
    await this.#notes.consume(owner, resultNote(call));
    for (let number = 0; number <= RELEASES_MAX; number++) {
      const held = await this.#notes.consume(owner, claimNote(call, number));
      if (held === undefined) return;
      await this.#notes.consume(owner, releaseNote(call, number));
    }
  }

  /** All claims in order; the last one is valid until it is released. */
  async #claims(
    call: LedgerCall,
  ): Promise<{ readonly released: readonly Claim[]; readonly standing?: Claim }> {
    const released: Claim[] = [];
    while (released.length <= RELEASES_MAX) {
      const held = await this.#read<Claim>(call, claimNote(call, released.length));
      if (!held) break;
      if (!(await this.#isReleased(call, released.length))) return { released, standing: held };
      released.push(held);
    }
    return { released };
  }

  async #result(call: LedgerCall): Promise<CallResult | undefined> {
    return this.#read<CallResult>(call, resultNote(call));
  }

  async #done(call: LedgerCall): Promise<Extract<ClaimAnswer, { outcome: 'done' }> | undefined> {
    const done = await this.#result(call);
    return done && { outcome: 'done', ...done };
  }

  async #isReleased(call: LedgerCall, number: number): Promise<boolean> {
    return (await this.#notes.get(call.owner, releaseNote(call, number))) !== undefined;
  }

  async #read<Value>({ owner }: LedgerCall, note: NoteKey): Promise<Value | undefined> {
    const value = await this.#notes.get(owner, note);
    return value === undefined ? undefined : (JSON.parse(value) as Value);
  }

  /** Resolves with the first claim. */
  async #keep({ owner }: LedgerCall, note: NoteKey, claim: Claim): Promise<Claim> {
    // The claim must outlive the tool's time, or another client could run the tool too.
    const ttl_ms = claim.until_ms - claim.at_ms + this.#ttl_ms;
    return JSON.parse(await this.#notes.claim(owner, note, JSON.stringify(claim), ttl_ms)) as Claim;
  }

  async #release(call: LedgerCall, number: number): Promise<void> {
    await this.#notes.claim(call.owner, releaseNote(call, number), '', this.#ttl_ms);
  }
}

const claimNote = ({ task, key }: LedgerCall, number: number): NoteKey => ({
  kind: 'call_claim',
  name: JSON.stringify([task, key, number]),
});
const releaseNote = ({ task, key }: LedgerCall, number: number): NoteKey => ({
  kind: 'call_release',
  name: JSON.stringify([task, key, number]),
});
const resultNote = ({ task, key }: LedgerCall): NoteKey => ({
  kind: 'call_result',
  name: JSON.stringify([task, key]),
});
