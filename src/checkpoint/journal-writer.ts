import type { Delta } from '../plans/delta.ts';
import type { CheckpointScheduler, Sweepable } from './checkpoint-scheduler.ts';
import { unitsOf } from './event-units.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';
import type { Lease, RunEnd, Store } from './store.ts';
import { JournalGapError, StaleLeaseError } from './store.ts';

/** Events after which a journal is stored without waiting for the interval; more of them while the store is slow. */
const EVENTS_PER_RECORD = 32;
/** What a run may hold in memory while the store fails, besides what was on its way when that began. */
export const HELD_UNITS_MAX = 1024 * 1024;
const RETRY_MAX_MS = 2000;
/** A store that has not answered an append for this long no longer holds back what is delivered. */
const ANSWER_MAX_MS = 1000;
/** How long a finished run keeps trying to be stored. */
const CLOSE_WAIT_MAX_MS = 10_000;

/**
 * The journal of one run on its way into the store. A failing store is never felt by the caller: nothing here throws,
 * what could not be stored is kept and sent again in order, and when more is held than allowed the newest records are
 * dropped for good (`lost`): the stored journal is then a true prefix of what was delivered.
 */
export interface JournalWriter {
  /** Ordinal of the last event recorded: the client's cursor. */
  readonly seq: number;
  /** Ordinal of the last event known to be stored. */
  readonly stored_seq: number;
  /** True while the store fails or does not answer, and for good once records were dropped or the lease is stale. */
  readonly degraded: boolean;
  /** Takes one delivered event; never waits and does no I/O in the caller's turn. */
  record(event: JournalEvent): void;
  /**
   * Stores now. Resolves with true once everything recorded so far is stored, with false when the store fails or
   * does not answer within a second: the run goes on all the same, degraded.
   */
  flush(): Promise<boolean>;
  /**
   * Stores what is left and seals the run. Resolves with true once that is done, with false when it could not be
   * done within ten seconds or the lease is stale. A journal that lost records is never sealed as `complete`, but as
   * `recovered_from_partial`.
   */
  close(end: JournalEnd): Promise<boolean>;
  /** Stores what is left and hands the run over, as {@link close} does otherwise. */
  release(): Promise<boolean>;
}

/** How a run ended; the writer says when. */
export type JournalEnd = Omit<RunEnd, 'at_ms'>;

export interface JournalWriterOptions {
  readonly store: Store;
  readonly lease: Lease;
  readonly scheduler: CheckpointScheduler;
  /** The header of a new run, or the sequence number up to which a run that is taken over is stored already. */
  readonly start: RunHeader | number;
  /** Every append or finish that succeeded, with the time it took. */
  onAppend(elapsed_ms: number): void;
  /** Every append or finish that failed, except for a stale lease. */
  onError(error: unknown): void;
  /** Once, when another lease took the run over: this process must stop delivering it. */
  onStale(error: StaleLeaseError): void;
}

export const createJournalWriter = (options: JournalWriterOptions): JournalWriter => new Writer(options);

interface Waiter {
  readonly seq: number;
  readonly resolve: (stored: boolean) => void;
}

interface Closing {
  /** Undefined: the run is handed over. */
  readonly end: JournalEnd | undefined;
  readonly until_ms: number;
  readonly promise: Promise<boolean>;
  readonly resolve: (sealed: boolean) => void;
}

class Writer implements JournalWriter, Sweepable {
  readonly #options: JournalWriterOptions;
  readonly #scheduler: CheckpointScheduler;
  #state: 'open' | 'stale' | 'closed' = 'open';

  #seq: number;
  #stored_seq: number;
  #header: RunHeader | undefined;
  #pending: JournalEvent[] = [];
  #pending_units = 0;
  /** Handed to the store and not yet acknowledged; sent again exactly as it is, so that nothing is stored twice. */
  #batch: JournalRecord[] = [];

  #spoke: boolean = false;
  #urgent: boolean = false;
  #lost: boolean = false;
  #sending: boolean = false;
  #sent_at_ms = 0;
  #swept_at_ms = 0;
  /** The append under way has not been answered in time. */
  #stalled: boolean = false;
  #failures = 0;
  #retry_at_ms = 0;
  #waiters: Waiter[] = [];
  #closing: Closing | undefined;

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    this.#scheduler = options.scheduler;
    const { start } = options;
    this.#header = typeof start === 'number' ? undefined : start;
    this.#seq = typeof start === 'number' ? start : 0;
    this.#stored_seq = this.#seq;
    // Without its request nobody could go on with the run, however soon its replica is lost.
    if (this.#header?.body !== undefined) this.#hurry();
  }

  get seq(): number {
    return this.#seq;
  }

  get stored_seq(): number {
    return this.#stored_seq;
  }

  get degraded(): boolean {
    return this.#lost || this.#stalled || this.#failures > 0 || this.#state === 'stale';
  }

  record(event: JournalEvent): void {
    this.#seq++;
    if (this.#lost || this.#state !== 'open') return;
    this.#pending.push(event);
    this.#pending_units += unitsOf(event);
    const isFailing = this.#failures > 0 || this.#stalled;
    if (isFailing && this.#pending_units > HELD_UNITS_MAX) this.#lose();
    else if (this.#isUrgent(event)) this.#hurry();
    else if (this.#pending.length === 1) this.#scheduler.later(this);
  }

  flush(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.degraded || this.#state !== 'open') return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ seq: this.#seq, resolve });
    this.#hurry();
    return promise;
  }

  close(end: JournalEnd): Promise<boolean> {
    return this.#close(end);
  }

  release(): Promise<boolean> {
    return this.#close(undefined);
  }

  #close(end: JournalEnd | undefined): Promise<boolean> {
    if (this.#closing) return this.#closing.promise;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#closing = { end, until_ms: this.#scheduler.time.now() + CLOSE_WAIT_MAX_MS, promise, resolve };
    if (this.#state === 'open') this.#hurry();
    else resolve(false);
    return promise;
  }

  sweep(now_ms: number): void {
    if (this.#state !== 'open') return;
    // This process was stopped: the store had no chance to be heard, and may have to say that the lease is lost.
    const slept_ms = now_ms - this.#swept_at_ms - this.#scheduler.interval_ms;
    if (this.#sending && slept_ms >= ANSWER_MAX_MS) this.#sent_at_ms = now_ms;
    this.#swept_at_ms = now_ms;
    if (this.#sending) this.#watch(now_ms);
    else if (this.#isDue(now_ms)) this.#send(now_ms);
    if (this.#closing && now_ms >= this.#closing.until_ms) this.#abandon();
    if (this.#hasWork()) this.#scheduler.later(this);
  }

  #isUrgent(event: JournalEvent): boolean {
    if (!this.#spoke && event.deltas.length > 0) {
      this.#spoke = true;
      return true;
    }
    if (event.deltas.some(settles)) return true;
    return !this.#urgent && this.#pending.length >= EVENTS_PER_RECORD * this.#scheduler.cadence.stretch;
  }

  #isDue(now_ms: number): boolean {
    if (now_ms < this.#retry_at_ms) return false;
    const { cadence, interval_ms } = this.#scheduler;
    if (this.#urgent || this.#closing || this.#batch.length > 0 || cadence.stretch === 1) return true;
    return now_ms - this.#sent_at_ms >= interval_ms * cadence.stretch;
  }

  #hurry(): void {
    this.#urgent = true;
    this.#scheduler.soon(this);
  }

  #hasWork(): boolean {
    if (this.#state !== 'open') return false;
    return this.#sending || this.#pending.length > 0 || this.#batch.length > 0 || this.#closing !== undefined;
  }

  #send(now_ms: number): void {
    if (this.#batch.length === 0) this.#take();
    this.#sent_at_ms = now_ms;
    if (this.#batch.length > 0) void this.#append(this.#batch);
    else if (this.#closing) void this.#finish(this.#closing);
  }

  /** Makes the next batch of everything pending. */
  #take(): void {
    this.#urgent = false;
    if (this.#header) this.#batch.push({ seq: 0, header: this.#header, events: [] });
    this.#header = undefined;
    if (this.#pending.length > 0) this.#batch.push({ seq: this.#seq, events: this.#pending });
    this.#pending = [];
    this.#pending_units = 0;
  }

  async #append(batch: readonly JournalRecord[]): Promise<void> {
    const { store, lease } = this.#options;
    if (!(await this.#attempt(() => store.append(lease, batch)))) return;
    this.#stored_seq = batch.at(-1)?.seq ?? this.#stored_seq;
    this.#batch = [];
    while (this.#waiters[0] && this.#waiters[0].seq <= this.#stored_seq) this.#waiters.shift()?.resolve(true);
    if (this.#urgent || this.#closing) this.#scheduler.soon(this);
  }

  async #finish(closing: Closing): Promise<void> {
    const { store, lease } = this.#options;
    const end = closing.end && this.#endOf(closing.end);
    const sealed = await this.#attempt(() => (end ? store.finish(lease, end) : store.release(lease)));
    if (sealed) this.#end('closed', true);
  }

  #endOf({ status, ...end }: JournalEnd): RunEnd {
    const isWhole = status !== 'complete' || !this.#lost;
    return {
      ...end,
      status: isWhole ? status : 'recovered_from_partial',
      at_ms: this.#scheduler.time.wall(),
    };
  }

  /** One call of the store; true when it succeeded and still matters. */
  async #attempt(call: () => Promise<unknown>): Promise<boolean> {
    this.#sending = true;
    const started_ms = this.#scheduler.time.now();
    try {
      await call();
    } catch (error) {
      this.#fail(error);
      return false;
    } finally {
      this.#sending = false;
    }
    this.#stalled = false;
    this.#failures = 0;
    const elapsed_ms = this.#scheduler.time.now() - started_ms;
    this.#scheduler.cadence.observe(elapsed_ms);
    this.#options.onAppend(elapsed_ms);
    return this.#state === 'open';
  }

  #fail(error: unknown): void {
    this.#stalled = false;
    if (this.#state !== 'open') return;
    if (error instanceof StaleLeaseError) {
      this.#end('stale', false);
      this.#options.onStale(error);
      return;
    }
    if (error instanceof JournalGapError) {
      this.#options.onError(error);
      // Nothing is left that could follow what the store has: not even an end.
      if (this.#lost) this.#abandon();
      else this.#lose();
      this.#batch = [];
      this.#scheduler.later(this);
      return;
    }
    const { interval_ms, time } = this.#scheduler;
    this.#retry_at_ms = time.now() + Math.min(interval_ms * 2 ** this.#failures++, RETRY_MAX_MS);
    this.#refuseWaiters();
    this.#options.onError(error);
    this.#scheduler.later(this);
  }

  #watch(now_ms: number): void {
    if (now_ms - this.#sent_at_ms < ANSWER_MAX_MS) return;
    this.#stalled = true;
    this.#refuseWaiters();
  }

  /** Once an event is gone, the later ones can never be stored: they would not follow the last one that is. */
  #lose(): void {
    this.#lost = true;
    this.#pending = [];
    this.#pending_units = 0;
    this.#refuseWaiters();
    this.#options.onError(new JournalLostError(this.#options.lease.run, this.#stored_seq));
  }

  #abandon(): void {
    const { store, lease, onError } = this.#options;
    onError(new JournalLostError(lease.run, this.#stored_seq));
    this.#end('closed', false);
    // A lease that nobody uses would keep the run from everybody for as long as this process lives.
    void store.release(lease).catch(() => {});
  }

  #end(state: 'stale' | 'closed', sealed: boolean): void {
    this.#state = state;
    this.#pending = [];
    this.#batch = [];
    this.#refuseWaiters();
    this.#closing?.resolve(sealed);
  }

  #refuseWaiters(): void {
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters = [];
  }
}

/** Part of a journal was given up because the store failed for too long. */
export class JournalLostError extends Error {
  override readonly name = 'JournalLostError';

  constructor(run: string, stored_seq: number) {
    super(`the store failed for too long: the journal of ${run} ends at event ${stored_seq}`);
  }
}

/** Losing what these say would mean doing work twice, so they do not wait for the interval. */
const settles = ({ kind }: Delta): boolean => kind === 'tool_close' || kind === 'finish';
