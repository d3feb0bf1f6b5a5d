import { NOTE_CHARACTERS_MAX, type NoteKey, type Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import type { Time } from '../../lib/time.ts';

/** A tool call of a task: `key` is the client's own name for it, the same after a crash. */
export interface LedgerCall {
  readonly owner: Owner;
  readonly task: string;
  readonly key: string;
}

/** The answer to a client that is about to run a tool. */
export type ClaimAnswer =
  /** It runs the tool, and no other client does. */
  | { readonly outcome: 'run' }
  /** The tool has run, with this result; without one, the client that ran it has kept it to itself. */
  | ({ readonly outcome: 'done' } & CallResult)
  /** Another client runs it, and may for this much longer. */
  | { readonly outcome: 'busy'; readonly retry_after_ms: number }
  /** A client was to run it, by this claim, and has said nothing for longer than the tool may take. */
  | { readonly outcome: 'unknown'; readonly claim: string; readonly claimed_at_ms: number };

/** Any JSON value. */
export interface CallResult {
  readonly result?: unknown;
}

/** `unknown`: a client was to run its tool, and has said nothing for longer than that may take. */
export const CALL_STATES = ['claimed', 'done', 'released', 'unknown'] as const;

/** The state of a call, for observers. */
export interface KnownCall extends CallResult {
  readonly state: (typeof CALL_STATES)[number];
  /** How many claims it has had, unless it is done. */
  readonly claims?: number;
}

export interface ClaimTerms {
  /** The client's own name for this claim. A claim that is repeated with it is the same claim, until it is released. */
  readonly claim: string;
  /** How long the tool may take before what it did counts as unknown. */
  readonly hold_ms: number;
  /** Where it is unknown whether the tool has run, it is run again. */
  readonly repeats: boolean;
}

interface Claim {
  readonly claim: string;
  readonly at_ms: number;
  readonly until_ms: number;
}

/** How many times a call may be released. */
const RELEASES_MAX = 16;

/** Of a result, as JSON, with the name of its field. */
export const RESULT_CHARACTERS_MAX = NOTE_CHARACTERS_MAX;

/**
 * Which tool calls of a task were run, and with which results. The tools are the clients': a client asks before it runs one, and
 * says what came of it. Of one call there is one claim, until that is released, and one result, which stays.
 *
 * Each claim is a note of its own, with a number. A note that exists is never changed, so all replicas see the same order of
 * claims and releases, and no store needs more than to keep the first value of a note.
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

  /** Throws `claim_released` and `call_released_too_often`. Rejects where the store does not answer: then the tool must not run. */
  async claim(call: LedgerCall, { claim, hold_ms, repeats }: ClaimTerms): Promise<ClaimAnswer> {
    const done = await this.#done(call);
    if (done) return done;
    const at_ms = this.#time.wall();
    const own: Claim = { claim, at_ms, until_ms: at_ms + hold_ms };
    for (let number = 0; number <= RELEASES_MAX; number++) {
      const held = await this.#keep(call, claimNote(call, number), own);
      const isOwn = held.claim === claim;
      if (await this.#isReleased(call, number)) {
        // It must not stand again: whatever released it may be sent once more.
        if (isOwn) throw apiError('claim_released');
        continue;
      }
      if (isOwn) return { outcome: 'run' };
      // It may have come meanwhile.
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
   * The tool has run. Throws `call_not_claimed` where this claim does not stand, `call_done` where there is another result
   * already, which stays, and `result_too_large`.
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
   * The tool has not run by this claim, as its client says, or another one that got `unknown` and has found out.
   * Throws `call_not_claimed` and `call_done`.
   */
  async release(call: LedgerCall, claim: string): Promise<void> {
    if (await this.#done(call)) throw apiError('call_done');
    const { released, standing } = await this.#claims(call);
    if (standing?.claim === claim) return this.#release(call, released.length);
    // It may be asked for again, because the answer was lost.
    if (!released.some((each) => each.claim === claim)) throw apiError('call_not_claimed');
  }

  /** Changes nothing. Undefined for a call that was not claimed, or is known no longer. */
  async known(call: LedgerCall): Promise<KnownCall | undefined> {
    const done = await this.#result(call);
    if (done) return { state: 'done', ...done };
    const { released, standing } = await this.#claims(call);
    if (!standing) return released.length === 0 ? undefined : { state: 'released', claims: released.length };
    const claims = released.length + 1;
    if (standing.until_ms > this.#time.wall()) return { state: 'claimed', claims };
    // It may have come meanwhile.
    const late = await this.#result(call);
    return late ? { state: 'done', ...late } : { state: 'unknown', claims };
  }

  /** Forgets that the call was claimed, and its result. */
  async forget(call: LedgerCall): Promise<void> {
    const { owner } = call;
    await this.#notes.consume(owner, resultNote(call));
    for (let number = 0; number <= RELEASES_MAX; number++) {
      const held = await this.#notes.consume(owner, claimNote(call, number));
      if (held === undefined) return;
      await this.#notes.consume(owner, releaseNote(call, number));
    }
  }

  /** In the order in which they were made: the last one stands until it is released. */
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

  /** Resolves with the claim that came first. */
  async #keep({ owner }: LedgerCall, note: NoteKey, claim: Claim): Promise<Claim> {
    // Until its tool must have ended, a claim that is forgotten would let another client run it.
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
