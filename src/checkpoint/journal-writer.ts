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

/** A journal is stored without waiting for the interval after this many events, or more while the store is slow. */
const EVENTS_PER_RECORD = 32;
/** The most a run may hold in memory while the store fails, besides the batch in progress. */
const HELD_UNITS_MAX = 1024 * 1024;
/** Delivery no longer waits for a store that hasn't answered for this long. */
const ANSWER_MAX_MS = 1000;
const RETRY_MAX_MS = 2000;
/** How long a finished run keeps trying to be stored. */
const CLOSE_WAIT_MAX_MS = 10_000;

interface JournalWriterOptions {
  readonly store: Store;
  /** Undefined if the store hasn't granted it yet: nothing is stored before {@link JournalWriter.begin}. */
  readonly lease: Lease | undefined;
  readonly scheduler: CheckpointScheduler;
  /** A new run's header, or the last stored sequence number of a run that is taken over. */
  readonly start: RunHeader | number;
  /** Called after every successful append or finish with the time it took. */
  onAppend(elapsed_ms: number): void;
  /** Called after every failed append or finish, except for a stale lease. */
  onError(error: unknown): void;
  /**
   * Called when another lease took the run over. The process must stop delivering it and call {@link
   * JournalWriter.begin} again.
   */
  onStale(error: StaleLeaseError): void;
}

/** Resolves with whether the run was sealed or handed over. */
interface Closing extends PromiseWithResolvers<boolean> {
  /** Undefined: hand the run over. */
  readonly end: JournalEnd | undefined;
  readonly until_ms: number;
}

/** Waits until everything up to `seq` is stored. */
interface Waiter {
  readonly seq: number;
  /** Keeps waiting while the store fails or doesn't answer. The wait ends only once the events can never be stored. */
  readonly isPatient: boolean;
  readonly resolve: (stored: boolean) => void;
}

/**
 * Stores the journal of one run. A failing store never affects the caller: no method throws, unstored records are kept
 * and sent again in order, and above the memory limit the newest records are dropped for good (`lost`). The stored
 * journal is then a true prefix of what was delivered.
 */
export class JournalWriter implements Sweepable {
  readonly #options: JournalWriterOptions;
  readonly #scheduler: CheckpointScheduler;
  #lease: Lease | undefined;
  #seq = 0;
  #stored_seq = 0;
  #header: RunHeader | undefined;
  /** Recorded events that aren't part of a batch yet, and their weight; see {@link unitsOf}. */
  #waiting: JournalEvent[] = [];
  #waiting_units = 0;
  /** Handed to the store but not acknowledged yet. Sent again unchanged, so that nothing is stored twice. */
  #batch: readonly JournalRecord[] = [];
  /** In the order in which their events were recorded. */
  #waiters: Waiter[] = [];
  #state: 'open' | 'stale' | 'closed' = 'open';
  /** Some recorded events can never be stored. */
  #isLost: boolean = false;
  #spoke: boolean = false;
  #urgent: boolean = false;
  /** State of the store call in progress, of which there is at most one. `late`: its answer is overdue. */
  #call: 'none' | 'under_way' | 'late' = 'none';
  /** When the journal last had its turn to make a call. */
  #turn_ms = 0;
  #confirmed_ms = Number.POSITIVE_INFINITY;
  #swept_ms = 0;
  /** Number of consecutive failed calls, and the earliest time of the next one. */
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
    // Without the stored request no other replica could continue the run, so it is stored at once.
    if (start.body !== undefined) this.#hurry();
  }

  /** Ordinal of the last recorded event, kept or not: the client's cursor. */
  get seq(): number {
    return this.#seq;
  }

  /** Ordinal of the last event known to be stored. */
  get stored_seq(): number {
    return this.#stored_seq;
  }

  /** True while the store fails or doesn't answer, and permanently once records were dropped or the lease is stale. */
  get degraded(): boolean {
    return this.#isLost || this.#isFailing || this.#state === 'stale';
  }

  get isLeased(): boolean {
    return this.#lease !== undefined;
  }

  /** The latest lease, stale or not. */
  protected get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Nothing more will be stored under this lease, because all of it is stored or can't be. */
  get isOver(): boolean {
    return this.#state !== 'open';
  }

  /**
   * Start time of the last call with which the store confirmed this process's lease. Infinite without a lease, because
   * a run that was never held can't have been taken away.
   */
  get confirmed_ms(): number {
    return this.#confirmed_ms;
  }

  /**
   * Takes the lease requested at `asked_ms`, the first one or one after a stale lease, and stores what the store
   * doesn't have yet. `undefined`: no lease will be granted, so nothing is stored.
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

  /** Another replica holds the run, under a later lease or before this process had one. */
  supersede(lease: Lease): void {
    this.#end('stale', false);
    this.#options.onStale(new StaleLeaseError(lease));
  }

  /** Takes one delivered event. Never waits and does no I/O in the caller's turn. */
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
   * Stores now. Resolves with true once everything recorded so far is stored, or with false if the store fails or
   * doesn't answer within a second: the run then continues, degraded.
   */
  flush(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.degraded || this.#state !== 'open' || !this.#lease) return Promise.resolve(false);
    return this.#wait(false);
  }

  /**
   * Stores now, however often the store fails and however long it takes. Resolves with true once everything recorded so
   * far is stored, or with false once it never can be: the lease is stale or was never granted, or records are lost.
   */
  confirm(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.#isLost || this.#state !== 'open') return Promise.resolve(false);
    return this.#wait(true);
  }

  /**
   * Stores the rest and seals the run. Resolves with true once sealed, or with false if that fails for ten seconds or
   * the lease is stale for good. A journal that lost records is sealed as `recovered_from_partial`, never as
   * `complete`.
   */
  close(end: JournalEnd): Promise<boolean> {
    return this.#close(end);
  }

  /** Stores the rest and hands the run over. Otherwise like {@link close}. */
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

  /** Waiting events are on their way into the store. */
  get #isStoring(): boolean {
    return this.#state === 'open' && this.#lease !== undefined && !this.#isFailing;
  }

  /** The store fails or doesn't answer. */
  get #isFailing(): boolean {
    return this.#call === 'late' || this.#failures > 0;
  }

  /** Releases impatient waiters once the store's answer is late. */
  #watch(now_ms: number): void {
    // The process was suspended. Answers of the store may be queued, and one of them may say that the lease is lost.
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

  /** Sends an unacknowledged batch again, or else everything that waits. */
  #send(lease: Lease, now_ms: number): void {
    if (this.#batch.length === 0) {
      // Resending a batch doesn't clear this flag, because waiting events may have become urgent in the meantime.
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

  async #append(lease: Lease, batch: readonly JournalRecord[]): Promise<void> {
    const started_ms = this.#beginCall();
    try {
      await this.#options.store.append(lease, batch);
    } catch (error) {
      this.#fail(lease, error);
      return;
    }
    this.#succeed(started_ms);
    if (this.#state !== 'open') return;
    this.#stored_seq = batch.at(-1)?.seq ?? this.#stored_seq;
    this.#batch = [];
    while (this.#waiters[0] && this.#waiters[0].seq <= this.#stored_seq) this.#waiters.shift()?.resolve(true);
    if (this.#urgent || this.#closing) this.#scheduler.soon(this);
  }

  async #finish(lease: Lease, closing: Closing): Promise<void> {
    const { store } = this.#options;
    const end = closing.end && this.#endOf(closing.end);
    const started_ms = this.#beginCall();
    try {
      await (end ? store.finish(lease, end) : store.release(lease));
    } catch (error) {
      this.#fail(lease, error);
      return;
    }
    this.#succeed(started_ms);
    if (this.#state === 'open') this.#end('closed', true);
  }

  #endOf({ status, ...end }: JournalEnd): RunEnd {
    const isWhole = status !== 'complete' || !this.#isLost;
    const at_ms = this.#scheduler.time.wall();
    return { ...end, status: isWhole ? status : 'recovered_from_partial', at_ms };
  }

  /** Returns the time at which a store call begins. */
  #beginCall(): number {
    this.#call = 'under_way';
    return this.#scheduler.time.now();
  }

  #succeed(started_ms: number): void {
    const { time, cadence } = this.#scheduler;
    this.#call = 'none';
    this.#failures = 0;
    this.#confirmed_ms = started_ms;
    const elapsed_ms = time.now() - started_ms;
    cadence.observe(elapsed_ms);
    this.#options.onAppend(elapsed_ms);
  }

  #fail(lease: Lease, error: unknown): void {
    this.#call = 'none';
    if (this.#state !== 'open') return;
    if (error instanceof StaleLeaseError) {
      this.supersede(lease);
      return;
    }
    this.#options.onError(error);
    if (error instanceof JournalGapError) {
      // Nothing that follows the stored records is left, not even an end.
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

  /** Once an event is lost, later ones can never be stored, because they wouldn't follow the last stored one. */
  #lose(lease: Lease | undefined): void {
    if (!lease) {
      // A journal can't be stored without its beginning.
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
    // Unstored records are kept in case the run is taken back.
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

  /** Resolves all waiters with false. */
  #refuseWaiters(): void {
    for (const { resolve } of this.#waiters) resolve(false);
    this.#waiters = [];
  }
}
