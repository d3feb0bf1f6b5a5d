import type { Delta } from '../plans/delta.ts';
import type { CheckpointScheduler, Sweepable } from './checkpoint-scheduler.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';
import { JournalBacklog } from './journal-backlog.ts';
import { JournalGapError, type Lease, type RunEnd, StaleLeaseError, type Store } from './store.ts';
import { StoreCalls } from './store-calls.ts';

/** Events after which a journal is stored without waiting for the interval; more of them while the store is slow. */
const EVENTS_PER_RECORD = 32;
/** What a run may hold in memory while the store fails, besides what was on its way when that began. */
export const HELD_UNITS_MAX = 1024 * 1024;
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
   * does not answer within a second: the run continues all the same, degraded.
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
  readonly #backlog: JournalBacklog;
  readonly #calls: StoreCalls;
  #state: 'open' | 'stale' | 'closed' = 'open';
  #spoke: boolean = false;
  #urgent: boolean = false;
  #closing: Closing | undefined;

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    this.#scheduler = options.scheduler;
    const { start } = options;
    this.#backlog = new JournalBacklog(start);
    this.#calls = new StoreCalls(options.scheduler.interval_ms);
    // Without its request no replica could continue the run, however soon this one is lost.
    if (typeof start !== 'number' && start.body !== undefined) this.#hurry();
  }

  get seq(): number {
    return this.#backlog.seq;
  }

  get stored_seq(): number {
    return this.#backlog.stored_seq;
  }

  get degraded(): boolean {
    return this.#backlog.isLost || this.#calls.isFailing || this.#state === 'stale';
  }

  record(event: JournalEvent): void {
    if (!this.#backlog.add(event)) return;
    if (this.#calls.isFailing && this.#backlog.waiting_units > HELD_UNITS_MAX) this.#lose();
    else if (this.#isUrgent(event)) this.#hurry();
    else if (this.#backlog.waiting === 1) this.#scheduler.later(this);
  }

  flush(): Promise<boolean> {
    if (this.stored_seq === this.seq) return Promise.resolve(true);
    if (this.degraded || this.#state !== 'open') return Promise.resolve(false);
    const stored = this.#backlog.stored();
    this.#hurry();
    return stored;
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
    if (this.#calls.watch(now_ms)) this.#backlog.refuse();
    if (!this.#calls.isUnderWay && this.#isDue(now_ms)) this.#send(now_ms);
    if (this.#closing && now_ms >= this.#closing.until_ms) this.#abandon();
    if (this.#hasWork()) this.#scheduler.later(this);
  }

  #isUrgent(event: JournalEvent): boolean {
    if (!this.#spoke && event.deltas.length > 0) {
      this.#spoke = true;
      return true;
    }
    if (event.deltas.some(settles)) return true;
    return !this.#urgent && this.#backlog.waiting >= EVENTS_PER_RECORD * this.#scheduler.cadence.stretch;
  }

  #isDue(now_ms: number): boolean {
    if (!this.#calls.mayBegin(now_ms)) return false;
    const { cadence, interval_ms } = this.#scheduler;
    if (this.#urgent || this.#closing || this.#backlog.hasBatch || cadence.stretch === 1) return true;
    return now_ms - this.#calls.turn_ms >= interval_ms * cadence.stretch;
  }

  #hurry(): void {
    this.#urgent = true;
    this.#scheduler.soon(this);
  }

  #hasWork(): boolean {
    if (this.#state !== 'open') return false;
    return this.#calls.isUnderWay || !this.#backlog.isEmpty || this.#closing !== undefined;
  }

  #send(now_ms: number): void {
    // What is sent again leaves behind what has become urgent meanwhile.
    if (!this.#backlog.hasBatch) this.#urgent = false;
    const batch = this.#backlog.next(this.#scheduler.time.wall());
    this.#calls.takeTurn(now_ms);
    if (batch.length > 0) void this.#append(batch);
    else if (this.#closing) void this.#finish(this.#closing);
  }

  async #append(batch: readonly JournalRecord[]): Promise<void> {
    const { store, lease } = this.#options;
    if (!(await this.#attempt(() => store.append(lease, batch)))) return;
    this.#backlog.acknowledge();
    if (this.#urgent || this.#closing) this.#scheduler.soon(this);
  }

  async #finish(closing: Closing): Promise<void> {
    const { store, lease } = this.#options;
    const end = closing.end && this.#endOf(closing.end);
    const sealed = await this.#attempt(() => (end ? store.finish(lease, end) : store.release(lease)));
    if (sealed) this.#end('closed', true);
  }

  #endOf({ status, ...end }: JournalEnd): RunEnd {
    const isWhole = status !== 'complete' || !this.#backlog.isLost;
    return {
      ...end,
      status: isWhole ? status : 'recovered_from_partial',
      at_ms: this.#scheduler.time.wall(),
    };
  }

  /** One call of the store; true when it succeeded and still matters. */
  async #attempt(call: () => Promise<unknown>): Promise<boolean> {
    const started_ms = this.#scheduler.time.now();
    this.#calls.begin();
    try {
      await call();
    } catch (error) {
      this.#calls.fail();
      this.#fail(error);
      return false;
    }
    this.#calls.succeed();
    const elapsed_ms = this.#scheduler.time.now() - started_ms;
    this.#scheduler.cadence.observe(elapsed_ms);
    this.#options.onAppend(elapsed_ms);
    return this.#state === 'open';
  }

  #fail(error: unknown): void {
    if (this.#state !== 'open') return;
    if (error instanceof StaleLeaseError) {
      this.#end('stale', false);
      this.#options.onStale(error);
      return;
    }
    if (error instanceof JournalGapError) {
      this.#options.onError(error);
      // Nothing is left that could follow what the store has: not even an end.
      if (this.#backlog.isLost) this.#abandon();
      else this.#lose();
      this.#backlog.dropBatch();
      this.#scheduler.later(this);
      return;
    }
    this.#calls.backOff(this.#scheduler.time.now());
    this.#backlog.refuse();
    this.#options.onError(error);
    this.#scheduler.later(this);
  }

  #lose(): void {
    this.#backlog.lose();
    this.#options.onError(new JournalLostError(this.#options.lease.run, this.stored_seq));
  }

  #abandon(): void {
    const { store, lease, onError } = this.#options;
    onError(new JournalLostError(lease.run, this.stored_seq));
    this.#end('closed', false);
    // An unused lease would block the run for as long as this process lives.
    void store.release(lease).catch(() => {});
  }

  #end(state: 'stale' | 'closed', sealed: boolean): void {
    this.#state = state;
    this.#backlog.end();
    this.#closing?.resolve(sealed);
  }
}

/** Part of a journal was given up because the store failed for too long. */
export class JournalLostError extends Error {
  override readonly name = 'JournalLostError';

  constructor(run: string, stored_seq: number) {
    super(`the store failed for too long: the journal of ${run} ends at event ${stored_seq}`);
  }
}

/** Losing one of these would mean doing work twice, so they do not wait for the interval. */
const settles = ({ kind }: Delta): boolean =>
  kind === 'tool_close' || kind === 'choice_call' || kind === 'finish';
