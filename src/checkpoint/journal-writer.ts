import type { Delta } from '../plans/delta.ts';
import type { CheckpointScheduler, Sweepable } from './checkpoint-scheduler.ts';
import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';
import {
  JournalGapError,
  JournalLostError,
  type Lease,
  type RunEnd,
  StaleLeaseError,
  type Store,
} from './store.ts';
import { StoreCalls } from './store-calls.ts';

/** Events after which a journal is stored without waiting for the interval; more of them while the store is slow. */
const EVENTS_PER_RECORD = 32;
/** What a run may hold in memory while the store fails, besides what was on its way when that began. */
export const HELD_UNITS_MAX = 1024 * 1024;
/** How long a finished run keeps trying to be stored. */
const CLOSE_WAIT_MAX_MS = 10_000;

/** How a run ended; the writer says when. */
export type JournalEnd = Omit<RunEnd, 'at_ms'>;

interface JournalWriterOptions {
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

/** Resolves with whether the run was sealed, or handed over. */
interface Closing extends PromiseWithResolvers<boolean> {
  /** Undefined: the run is handed over. */
  readonly end: JournalEnd | undefined;
  readonly until_ms: number;
}

/** Waits until everything up to `seq` is stored. */
interface Waiter {
  readonly seq: number;
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
  readonly #calls: StoreCalls;
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
  #closing: Closing | undefined;

  constructor(options: JournalWriterOptions) {
    const { scheduler, start } = options;
    this.#options = options;
    this.#scheduler = scheduler;
    this.#calls = new StoreCalls(scheduler);
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
    return this.#isLost || this.#calls.isFailing || this.#state === 'stale';
  }

  /** Takes one delivered event; never waits and does no I/O in the caller's turn. */
  record(event: JournalEvent): void {
    this.#seq++;
    if (this.#isLost || this.#state !== 'open') return;
    this.#waiting.push(event);
    this.#waiting_units += unitsOf(event);
    if (this.#waiting_units > HELD_UNITS_MAX && this.#calls.isFailing) this.#lose();
    else if (this.#isUrgent(event)) this.#hurry();
    else if (this.#waiting.length === 1) this.#scheduler.later(this);
  }

  /**
   * Stores now. Resolves with true once everything recorded so far is stored, with false when the store fails or
   * does not answer within a second: the run continues all the same, degraded.
   */
  flush(): Promise<boolean> {
    if (this.#stored_seq === this.#seq) return Promise.resolve(true);
    if (this.degraded || this.#state !== 'open') return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ seq: this.#seq, resolve });
    this.#hurry();
    return promise;
  }

  /**
   * Stores what is left and seals the run. Resolves with true once that is done, with false when it could not be
   * done within ten seconds or the lease is stale. A journal that lost records is never sealed as `complete`, but as
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
    if (this.#state === 'open') this.#hurry();
    else this.#closing.resolve(false);
    return this.#closing.promise;
  }

  sweep(now_ms: number): void {
    if (this.#state !== 'open') return;
    if (this.#calls.watch(now_ms)) this.#refuseWaiters();
    if (!this.#calls.isUnderWay && this.#isDue(now_ms)) this.#send(now_ms);
    if (this.#closing && now_ms >= this.#closing.until_ms) this.#abandon();
    if (this.#hasWork()) this.#scheduler.later(this);
  }

  #isUrgent({ deltas }: JournalEvent): boolean {
    if (!this.#spoke && deltas.length > 0) {
      this.#spoke = true;
      return true;
    }
    if (deltas.some(settles)) return true;
    const { length } = this.#waiting;
    if (this.#urgent || length < EVENTS_PER_RECORD) return false;
    return length >= EVENTS_PER_RECORD * this.#scheduler.cadence.stretch;
  }

  #isDue(now_ms: number): boolean {
    if (!this.#calls.mayBegin(now_ms)) return false;
    const { cadence, interval_ms } = this.#scheduler;
    if (this.#urgent || this.#closing || this.#batch.length > 0 || cadence.stretch === 1) return true;
    return now_ms - this.#calls.turn_ms >= interval_ms * cadence.stretch;
  }

  #hurry(): void {
    this.#urgent = true;
    this.#scheduler.soon(this);
  }

  #hasWork(): boolean {
    if (this.#state !== 'open') return false;
    const isEmpty = this.#waiting.length === 0 && this.#batch.length === 0;
    return this.#calls.isUnderWay || !isEmpty || this.#closing !== undefined;
  }

  /** Sends the last batch again while that is not acknowledged, otherwise all that waits. */
  #send(now_ms: number): void {
    if (this.#batch.length === 0) {
      // What is sent again leaves behind what has become urgent meanwhile.
      this.#urgent = false;
      this.#batch = this.#takeWaiting(this.#scheduler.time.wall());
    }
    this.#calls.takeTurn(now_ms);
    if (this.#batch.length > 0) void this.#append(this.#batch);
    else if (this.#closing) void this.#finish(this.#closing);
  }

  #takeWaiting(at_ms: number): readonly JournalRecord[] {
    const batch: JournalRecord[] = [];
    if (this.#header) batch.push({ seq: 0, at_ms, header: this.#header, events: [] });
    if (this.#waiting.length > 0) batch.push({ seq: this.#seq, at_ms, events: this.#waiting });
    this.#header = undefined;
    this.#dropWaiting();
    return batch;
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
    const isWhole = status !== 'complete' || !this.#isLost;
    const at_ms = this.#scheduler.time.wall();
    return { ...end, status: isWhole ? status : 'recovered_from_partial', at_ms };
  }

  /** One call of the store; true when it succeeded and still matters. */
  async #attempt(call: () => Promise<unknown>): Promise<boolean> {
    let elapsed_ms: number;
    try {
      elapsed_ms = await this.#calls.make(call);
    } catch (error) {
      this.#fail(error);
      return false;
    }
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
    this.#options.onError(error);
    if (error instanceof JournalGapError) {
      // Nothing is left that could follow what the store has: not even an end.
      if (this.#isLost) this.#abandon();
      else this.#lose();
      this.#batch = [];
    } else {
      this.#calls.backOff();
      this.#refuseWaiters();
    }
    this.#scheduler.later(this);
  }

  /** Once an event is gone, the later ones can never be stored: they would not follow the last one that is. */
  #lose(): void {
    this.#isLost = true;
    this.#dropWaiting();
    this.#refuseWaiters();
    this.#options.onError(new JournalLostError(this.#options.lease.run, this.#stored_seq));
  }

  #abandon(): void {
    const { store, lease, onError } = this.#options;
    onError(new JournalLostError(lease.run, this.#stored_seq));
    this.#end('closed', false);
    // An unused lease would block the run for as long as this process lives.
    void store.release(lease).catch(() => {});
  }

  #end(state: 'stale' | 'closed', sealed: boolean): void {
    this.#state = state;
    this.#dropWaiting();
    this.#batch = [];
    this.#refuseWaiters();
    this.#closing?.resolve(sealed);
  }

  #dropWaiting(): void {
    this.#waiting = [];
    this.#waiting_units = 0;
  }

  /** Nothing waits any longer. */
  #refuseWaiters(): void {
    for (const { resolve } of this.#waiters) resolve(false);
    this.#waiters = [];
  }
}

/** Losing one of these would mean doing work twice, so they do not wait for the interval. */
const settles = ({ kind }: Delta): boolean =>
  kind === 'tool_close' || kind === 'choice_call' || kind === 'finish';

/** What an event weighs besides its text. */
const OVERHEAD_UNITS = 64;

/** What an event weighs in memory, roughly, in UTF-16 units. */
export function unitsOf({ deltas, payload = '' }: JournalEvent): number {
  let units = OVERHEAD_UNITS + payload.length;
  for (const delta of deltas) {
    if ('text' in delta) units += delta.text.length;
    else if (delta.kind === 'choice_call') units += delta.arguments.length;
  }
  return units;
}
