import type { CheckpointScheduler, Sweepable } from './checkpoint-scheduler.ts';
import { type JournalEvent, type JournalRecord, type RunHeader, settles, unitsOf } from './journal.ts';
import {
  type JournalEnd,
  JournalGapError,
  JournalLostError,
  type Lease,
  type RunEnd,
  StaleLeaseError,
  type Store,
} from './store.ts';

/** Events after which a journal is stored without waiting for the interval; more of them while the store is slow. */
const EVENTS_PER_RECORD = 32;
/** What a run may hold in memory while the store fails, besides what was on its way when that began. */
const HELD_UNITS_MAX = 1024 * 1024;
/** A store that has not answered for this long no longer holds back what is delivered. */
const ANSWER_MAX_MS = 1000;
const RETRY_MAX_MS = 2000;
/** How long a finished run keeps trying to be stored. */
const CLOSE_WAIT_MAX_MS = 10_000;

interface JournalWriterOptions {
  readonly store: Store;
  /** Undefined where the store has not given it yet: nothing is stored before {@link JournalWriter.begin}. */
  readonly lease: Lease | undefined;
  readonly scheduler: CheckpointScheduler;
  /** The header of a new run, or the sequence number up to which a run that is taken over is stored already. */
  readonly start: RunHeader | number;
  /** Every append or finish that succeeded, with the time it took. */
  onAppend(elapsed_ms: number): void;
  /** Every append or finish that failed, except for a stale lease. */
  onError(error: unknown): void;
  /** When another lease took the run over: this process must stop delivering it, and {@link JournalWriter.begin} again. */
  onStale(error: StaleLeaseError): void;
}

/** Resolves with whether the run was sealed, or handed over. */
interface Closing extends PromiseWithResolvers<boolean> {
  /** Undefined: the run is handed over. */
  readonly end: JournalEnd | undefined;
  readonly until_ms: number;
}

/** Waits until everything up to `seq` is stored. */
interface Waiter {
  readonly seq: number;
  /** Waits also while the store fails or does not answer: only what can never be stored ends the wait. */
  readonly isPatient: boolean;
  readonly resolve: (stored: boolean) => void;
}

/**
 * The journal of one run on its way into the store. A failing store is never felt by the caller: nothing here throws,
 * what could not be stored is kept and sent again in order, and when more is held than allowed the newest records are
 * dropped for good (`lost`): the stored journal is then a true prefix of what was delivered.
 */
export class JournalWriter implements Sweepable {
  readonly #options: JournalWriterOptions;
  readonly #scheduler: CheckpointScheduler;
  #lease: Lease | undefined;
  #seq = 0;
  #stored_seq = 0;
  #header: RunHeader | undefined;
  /** What is recorded and not part of a batch yet, and what it weighs: see {@link unitsOf}. */
  #waiting: JournalEvent[] = [];
  #waiting_units = 0;
  /** Handed to the store and not yet acknowledged; sent again exactly as it is, so that nothing is stored twice. */
  #batch: readonly JournalRecord[] = [];
  /** In the order in which their events were recorded. */
  #waiters: Waiter[] = [];
  #state: 'open' | 'stale' | 'closed' = 'open';
  /** Some of what was recorded can never be stored. */
  #isLost: boolean = false;
  #spoke: boolean = false;
  #urgent: boolean = false;
  /** The one call of the store that may be under way, and whether its answer is late. */
  #call: 'none' | 'under_way' | 'late' = 'none';
  /** When it was last the journal's turn to make one, and when that was looked at. */
  #turn_ms = 0;
  #confirmed_ms = Number.POSITIVE_INFINITY;
  #swept_ms = 0;
  /** Calls in a row that have failed, and when the next one may be made. */
  #failures = 0;
  #retry_at_ms = 0;
  #closing: Closing | undefined;

  constructor(options: JournalWriterOptions) {
    const { scheduler, lease, start } = options;
    this.#options = options;
    this.#scheduler = scheduler;
    this.#lease = lease;
    if (lease) this.#confirmed_ms = scheduler.time.now();
    if (typeof start === 'number') {
      this.#seq = start;
      this.#stored_seq = start;
      return;
    }
    this.#header = start;
    // Without its request no replica could continue the run, however soon this one is lost.
    if (start.body !== undefined) this.#hurry();
  }

  /** Ordinal of the last event recorded, kept or not: the client's cursor. */
  get seq(): number {
    return this.#seq;
  }

  /** Ordinal of the last event known to be stored. */
  get stored_seq(): number {
    return this.#stored_seq;
  }

  /** True while the store fails or does not answer, and for good once records were dropped or the lease is stale. */
  get degraded(): boolean {
    return this.#isLost || this.#isFailing || this.#state === 'stale';
  }

  get isLeased(): boolean {
    return this.#lease !== undefined;
  }

  /** The latest one, stale or not. */
  protected get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Nothing more is stored: all of it is, or it cannot be, at least not under this lease. */
  get isOver(): boolean {
    return this.#state !== 'open';
  }

  /**
   * The beginning of the last call with which the store confirmed that the run was ours then. Infinite as long as there is
   * no lease: what was never ours cannot have been taken from us.
   */
  get confirmed_ms(): number {
    return this.#confirmed_ms;
  }

  /**
   * The store has given the lease that it was asked for at `asked_ms`, the first one or one after a stale one: what it does
   * not have of what was recorded is stored. `undefined`: it never will, and nothing is.
   */
  begin(lease: Lease | undefined, asked_ms: number): void {
    if (this.#state === 'closed') return;
    this.#lease = lease;
    this.#state = 'open';
    this.#confirmed_ms = asked_ms;
    this.#failures = 0;
    this.#retry_at_ms = 0;
    if (!lease) this.#end('closed', false);
    else if (this.#urgent || this.#batch.length > 0 || this.#closing) this.#scheduler.soon(this);
    else if (this.#waiting.length > 0) this.#scheduler.later(this);
  }

  /** Another replica has the run: under a lease after this one, or before this one had any. */
  supersede(lease: Lease): void {
    this.#end('stale', false);
    this.#options.onStale(new StaleLeaseError(lease));
  }

  /** Takes one delivered event; never waits and does no I/O in the caller's turn. */
  record(event: JournalEvent): void {
    this.#seq++;
    if (this.#isLost || this.#state === 'closed') return;
    this.#waiting.push(event);
    this.#waiting_units += unitsOf(event);
    if (this.#waiting_units > HELD_UNITS_MAX && !this.#isStoring) this.#lose(this.#lease);
    else if (this.#isUrgent(event)) this.#hurry();
    else if (this.#waiting.length === 1) this.#scheduler.later(this);
  }

  /**
   * Stores now. Resolves with true once everything recorded so far is stored, with false when the store fails or
   * does not answer within a second: the run continues all the same, degraded.
   */
  flush(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.degraded || this.#state !== 'open' || !this.#lease) return Promise.resolve(false);
    return this.#wait(false);
  }

  /**
   * Stores now, however often the store fails and however long it takes. Resolves with true once everything recorded so
   * far is stored, with false once that can never be: the lease is stale or was never given, or records are lost.
   */
  confirm(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.#isLost || this.#state !== 'open') return Promise.resolve(false);
    return this.#wait(true);
  }

  /**
   * Stores what is left and seals the run. Resolves with true once that is done, with false when it could not be
   * done within ten seconds or the lease is stale for good. A journal that lost records is never sealed as `complete`, but as
   * `recovered_from_partial`.
   */
  close(end: JournalEnd): Promise<boolean> {
    return this.#close(end);
  }

  /** Stores what is left and hands the run over, as {@link close} does otherwise. */
  release(): Promise<boolean> {
    return this.#close(undefined);
  }

  #close(end: JournalEnd | undefined): Promise<boolean> {
    if (this.#closing) return this.#closing.promise;
    const until_ms = this.#scheduler.time.now() + CLOSE_WAIT_MAX_MS;
    this.#closing = { ...Promise.withResolvers<boolean>(), end, until_ms };
    if (this.#state === 'closed') this.#closing.resolve(false);
    else this.#hurry();
    return this.#closing.promise;
  }

  #wait(isPatient: boolean): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ seq: this.#seq, isPatient, resolve });
    this.#hurry();
    return promise;
  }

  sweep(now_ms: number): void {
    if (this.#state !== 'open' || !this.#lease) return;
    this.#watch(now_ms);
    if (this.#call === 'none' && this.#isDue(now_ms)) this.#send(this.#lease, now_ms);
    if (this.#closing && now_ms >= this.#closing.until_ms) this.#abandon(this.#lease);
    if (this.#hasWork()) this.#scheduler.later(this);
  }

  /** What waits is on its way into the store. */
  get #isStoring(): boolean {
    return this.#state === 'open' && this.#lease !== undefined && !this.#isFailing;
  }

  /** The store fails, or does not answer. */
  get #isFailing(): boolean {
    return this.#call === 'late' || this.#failures > 0;
  }

  /** Nothing waits for a store that does not answer. */
  #watch(now_ms: number): void {
    // This process was stopped: answers of the store may be waiting, and one of them may be that the lease is lost.
    const slept_ms = now_ms - this.#swept_ms - this.#scheduler.interval_ms;
    this.#swept_ms = now_ms;
    if (this.#call === 'none') return;
    if (slept_ms >= ANSWER_MAX_MS) this.#turn_ms = now_ms;
    if (now_ms - this.#turn_ms < ANSWER_MAX_MS) return;
    this.#call = 'late';
    this.#refuseImpatient();
  }

  #isUrgent(event: JournalEvent): boolean {
    if (!this.#spoke && event.deltas.length > 0) {
      this.#spoke = true;
      return true;
    }
    if (settles(event)) return true;
    const { length } = this.#waiting;
    if (this.#urgent || length < EVENTS_PER_RECORD) return false;
    return length >= EVENTS_PER_RECORD * this.#scheduler.cadence.stretch;
  }

  #isDue(now_ms: number): boolean {
    if (now_ms < this.#retry_at_ms) return false;
    const { cadence, interval_ms } = this.#scheduler;
    if (this.#urgent || this.#closing || this.#batch.length > 0 || cadence.stretch === 1) return true;
    return now_ms - this.#turn_ms >= interval_ms * cadence.stretch;
  }

  #hurry(): void {
    this.#urgent = true;
    this.#scheduler.soon(this);
  }

  #hasWork(): boolean {
    if (this.#state !== 'open') return false;
    const isEmpty = this.#waiting.length === 0 && this.#batch.length === 0;
    return this.#call !== 'none' || !isEmpty || this.#closing !== undefined;
  }

  /** Sends the last batch again while that is not acknowledged, otherwise all that waits. */
  #send(lease: Lease, now_ms: number): void {
    if (this.#batch.length === 0) {
      // What is sent again leaves behind what has become urgent meanwhile.
      this.#urgent = false;
      this.#batch = this.#takeWaiting(this.#scheduler.time.wall());
    }
    this.#turn_ms = now_ms;
    if (this.#batch.length > 0) void this.#append(lease, this.#batch);
    else if (this.#closing) void this.#finish(lease, this.#closing);
  }

  #takeWaiting(at_ms: number): readonly JournalRecord[] {
    const batch: JournalRecord[] = [];
    if (this.#header) batch.push({ seq: 0, at_ms, header: this.#header, events: [] });
    if (this.#waiting.length > 0) batch.push({ seq: this.#seq, at_ms, events: this.#waiting });
    this.#header = undefined;
    this.#dropWaiting();
    return batch;
  }

  #append(lease: Lease, batch: readonly JournalRecord[]): Promise<void> {
    const { store } = this.#options;
    return this.#attempt(
      lease,
      () => store.append(lease, batch),
      () => {
        this.#stored_seq = batch.at(-1)?.seq ?? this.#stored_seq;
        this.#batch = [];
        while (this.#waiters[0] && this.#waiters[0].seq <= this.#stored_seq)
          this.#waiters.shift()?.resolve(true);
        if (this.#urgent || this.#closing) this.#scheduler.soon(this);
      },
    );
  }

  #finish(lease: Lease, closing: Closing): Promise<void> {
    const { store } = this.#options;
    const end = closing.end && this.#endOf(closing.end);
    return this.#attempt(
      lease,
      () => (end ? store.finish(lease, end) : store.release(lease)),
      () => this.#end('closed', true),
    );
  }

  #endOf({ status, ...end }: JournalEnd): RunEnd {
    const isWhole = status !== 'complete' || !this.#isLost;
    const at_ms = this.#scheduler.time.wall();
    return { ...end, status: isWhole ? status : 'recovered_from_partial', at_ms };
  }

  /** One call of the store. `done`: it has succeeded and still matters; no other call can begin before that is noted. */
  async #attempt(lease: Lease, call: () => Promise<unknown>, done: () => void): Promise<void> {
    const { time, cadence } = this.#scheduler;
    const started_ms = time.now();
    this.#call = 'under_way';
    try {
      await call();
    } catch (error) {
      this.#call = 'none';
      this.#fail(lease, error);
      return;
    }
    this.#call = 'none';
    this.#failures = 0;
    this.#confirmed_ms = started_ms;
    const elapsed_ms = time.now() - started_ms;
    cadence.observe(elapsed_ms);
    this.#options.onAppend(elapsed_ms);
    if (this.#state === 'open') done();
  }

  #fail(lease: Lease, error: unknown): void {
    if (this.#state !== 'open') return;
    if (error instanceof StaleLeaseError) {
      this.supersede(lease);
      return;
    }
    this.#options.onError(error);
    if (error instanceof JournalGapError) {
      // Nothing is left that could follow what the store has: not even an end.
      if (this.#isLost) this.#abandon(lease);
      else this.#lose(lease);
      this.#batch = [];
    } else {
      const { time, interval_ms } = this.#scheduler;
      this.#retry_at_ms = time.now() + Math.min(interval_ms * 2 ** this.#failures++, RETRY_MAX_MS);
      this.#refuseImpatient();
    }
    this.#scheduler.later(this);
  }

  /** Once an event is gone, the later ones can never be stored: they would not follow the last one that is. */
  #lose(lease: Lease | undefined): void {
    if (!lease) {
      // Without its beginning a journal is none.
      this.#end('closed', false);
      return;
    }
    this.#isLost = true;
    this.#dropWaiting();
    this.#refuseWaiters();
    this.#options.onError(new JournalLostError(lease.run, this.#stored_seq));
  }

  #abandon(lease: Lease): void {
    const { store, onError } = this.#options;
    onError(new JournalLostError(lease.run, this.#stored_seq));
    this.#end('closed', false);
    // An unused lease would block the run for as long as this process lives.
    void store.release(lease).catch(() => {});
  }

  #end(state: 'stale' | 'closed', sealed: boolean): void {
    this.#state = state;
    this.#confirmed_ms = Number.POSITIVE_INFINITY;
    this.#refuseWaiters();
    // What is not stored yet is, if the run is taken back.
    if (state === 'stale') return;
    this.#dropWaiting();
    this.#batch = [];
    this.#closing?.resolve(sealed);
  }

  #dropWaiting(): void {
    this.#waiting = [];
    this.#waiting_units = 0;
  }

  #refuseImpatient(): void {
    for (const { isPatient, resolve } of this.#waiters) if (!isPatient) resolve(false);
    this.#waiters = this.#waiters.filter(({ isPatient }) => isPatient);
  }

  /** Nothing waits any longer. */
  #refuseWaiters(): void {
    for (const { resolve } of this.#waiters) resolve(false);
    this.#waiters = [];
  }
}
