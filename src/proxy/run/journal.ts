import type { JournalEvent, RunHeader } from '../../checkpoint/journal.ts';
import { HELD_UNITS_MAX, type JournalEnd, JournalWriter, unitsOf } from '../../checkpoint/journal-writer.ts';
import { AcquireRefusedError, type Lease } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { Resumption, Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';

/** A store that has not given a lease for this long no longer holds back what is delivered. */
const LEASE_WAIT_MAX_MS = 1000;
/** How long the end of a run waits for the store. */
const END_WAIT_MAX_MS = 10_000;
/** A store that failed to give a lease is asked again: a run that begins while it is away need not do without for ever. */
const LEASE_RETRY_MS = 500;

/**
 * The journal of a run from the relay's side: takes events from the first moment on, although the store may still
 * be busy handing out the lease, and continues without a store that does not answer.
 */
export class RunJournal {
  /** When the run began, on whatever replica. */
  readonly created_at_ms: number;
  readonly #context: RunContext;
  readonly #run: Run;
  readonly #onStale: () => void;
  readonly #ready: Promise<void>;
  #writer: JournalWriter | undefined;
  #waiting: JournalEvent[] | undefined = [];
  #waiting_units = 0;
  #leased: Promise<void> | undefined;
  /** Made when it is needed: aborts when the run has ended without a lease, and its end has waited long enough. */
  #over: AbortController | undefined;

  /** `onStale`: another replica took the run over. */
  constructor(run: Run, context: RunContext, onStale: () => void, resumption?: Resumption) {
    this.#run = run;
    this.#context = context;
    this.#onStale = onStale;
    this.created_at_ms = resumption?.stored.records[0]?.header?.created_at_ms ?? context.time.wall();
    if (resumption) {
      const { lease, stored } = resumption;
      this.#start(lease, stored.records.length > 0 ? stored.seq : this.#header());
    }
    this.#ready = resumption ? Promise.resolve() : this.#acquire();
  }

  record(event: JournalEvent): void {
    if (this.#writer) this.#writer.record(event);
    else this.#wait(event);
  }

  /** Resolves once everything recorded is stored, or the store has failed at it, or does not answer. */
  async stored(): Promise<void> {
    if (!this.#writer) await this.#lease();
    await this.#writer?.flush();
  }

  /** As {@link stored}, but does not wait for a lease: what was never ours cannot have been taken from us. */
  async confirmed(): Promise<void> {
    await this.#writer?.flush();
  }

  /** Seals the run, with everything that was recorded; later, without being waited for, if the store is slow. */
  async close(end: JournalEnd): Promise<void> {
    await this.#conclude((writer) => writer.close(end));
  }

  /** Hands the run over, with everything that was recorded, as {@link close} does otherwise. */
  async release(): Promise<void> {
    await this.#conclude((writer) => writer.release());
  }

  #wait(event: JournalEvent): void {
    if (!this.#waiting) return;
    this.#waiting.push(event);
    this.#waiting_units += unitsOf(event);
    // Without its beginning a journal is none.
    if (this.#waiting_units > HELD_UNITS_MAX) this.#waiting = undefined;
  }

  #lease(): Promise<void> {
    this.#leased ??= inTime(this.#ready, this.#context.time, LEASE_WAIT_MAX_MS);
    return this.#leased;
  }

  async #conclude(conclude: (writer: JournalWriter) => Promise<boolean>): Promise<void> {
    const concluded = this.#ready.then(() => this.#writer && conclude(this.#writer));
    await inTime(concluded, this.#context.time, END_WAIT_MAX_MS);
    if (this.#writer) return;
    this.#over ??= new AbortController();
    this.#over.abort();
  }

  async #acquire(): Promise<void> {
    const { store, metrics, log, time } = this.#context;
    let told = false;
    while (this.#waiting && !this.#over?.signal.aborted) {
      try {
        const lease = await store.acquire(this.#run.id, this.#run.owner, await this.#epochBefore(told));
        if (this.#waiting) this.#start(lease, this.#header());
        else await store.release(lease);
        break;
      } catch (error) {
        metrics.checkpointErrors.inc({ store: store.name });
        if (!told) log.warn({ run: this.#run.id, err: error }, 'no checkpoints yet: the store gave no lease');
        told = true;
        if (error instanceof AcquireRefusedError) break;
      }
      this.#over ??= new AbortController();
      await sleep(time, LEASE_RETRY_MS, this.#over.signal);
    }
    this.#waiting = undefined;
  }

  /** A lease may have been given although the answer was lost: then the run is there, and empty. */
  async #epochBefore(failed: boolean): Promise<number> {
    if (!failed) return 0;
    const stored = await this.#context.store.read(this.#run.id, this.#run.owner, 0);
    return stored?.records.length === 0 ? stored.epoch : 0;
  }

  #start(lease: Lease, start: RunHeader | number): void {
    const { store, scheduler, metrics, log } = this.#context;
    this.#writer = new JournalWriter({
      store,
      lease,
      scheduler,
      start,
      onAppend: (elapsed_ms) => metrics.checkpointAppend.observe({ store: store.name }, elapsed_ms / 1000),
      onError: (error) => {
        metrics.checkpointErrors.inc({ store: store.name });
        log.warn({ run: this.#run.id, err: error }, 'checkpoint failed; the run continues without it');
      },
      onStale: this.#onStale,
    });
    for (const event of this.#waiting ?? []) this.#writer.record(event);
  }

  #header(): RunHeader {
    const { wire, request, target, events, thread, digest, resumable, body } = this.#run;
    return {
      wire: wire.name,
      created_at_ms: this.created_at_ms,
      model: request.model,
      upstream: target.name,
      events,
      ...(thread !== undefined && { thread }),
      ...(digest !== undefined && { digest }),
      ...(resumable && { body }),
    };
  }
}
