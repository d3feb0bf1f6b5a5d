import { type EpochName, FIRST_EPOCH, latestEpochName, newMark } from '../../checkpoint/epoch.ts';
import type { RunHeader } from '../../checkpoint/journal.ts';
import { JournalWriter } from '../../checkpoint/journal-writer.ts';
import { AcquireRefusedError, type JournalEnd, type StoredRun } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { Resumption, Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';

/** A store that has not given a lease for this long no longer holds back what is delivered. */
const LEASE_WAIT_MAX_MS = 1000;
/** How long the end of a run waits for the store. */
const END_WAIT_MAX_MS = 10_000;
/** How long nothing is delivered because the store does not confirm that the run is still ours. */
const PROOF_WAIT_MAX_MS = 30_000;
/** A store that failed to give a lease is asked again: a run that begins while it is away need not do without for ever. */
const LEASE_RETRY_MS = 500;

/**
 * The journal of a run from the relay's side: takes events from the first moment on, although the store may still
 * be busy handing out the lease, and continues without a store that does not answer.
 */
export class RunJournal extends JournalWriter {
  /** When the run began, on whatever replica. */
  readonly created_at_ms: number;
  /** The epoch in which events are recorded. */
  epoch: EpochName;
  readonly #context: RunContext;
  readonly #run: Run;
  /** How many takeovers there have been up to it. */
  #takeovers: number;
  /** Resolves once the store has given a lease, or never will. */
  readonly #ready: Promise<void>;
  #leased: Promise<void> | undefined;
  /** Made when it is needed: aborts when the run has ended without a lease, and its end has waited long enough. */
  #over: AbortController | undefined;

  /** `onStale`: another replica took the run over. */
  constructor(run: Run, context: RunContext, onStale: () => void, resumption?: Resumption) {
    const { store, scheduler, metrics, log, time } = context;
    const { lease, stored } = resumption ?? {};
    const created_at_ms = stored?.records[0]?.header?.created_at_ms ?? time.wall();
    super({
      store,
      lease,
      scheduler,
      start: stored && stored.records.length > 0 ? stored.seq : headerOf(run, created_at_ms),
      onAppend: (elapsed_ms) => metrics.checkpointAppend.observe({ store: store.name }, elapsed_ms / 1000),
      onError: (error) => {
        metrics.checkpointErrors.inc({ store: store.name });
        log.warn({ run: run.id, err: error }, 'checkpoint failed; the run continues without it');
      },
      onStale,
    });
    this.created_at_ms = created_at_ms;
    this.epoch = latestEpochName(stored?.takeovers ?? []);
    this.#takeovers = stored?.takeovers.length ?? 0;
    this.#run = run;
    this.#context = context;
    this.#ready = lease ? Promise.resolve() : this.#acquire();
  }

  /** Resolves once everything recorded is stored, or the store has failed at it, or does not answer. */
  async stored(): Promise<void> {
    if (!this.isLeased) await this.#lease();
    await this.flush();
  }

  /**
   * Whether the store confirms within half a minute that everything recorded is stored, and with that, that the run is
   * ours. A store that fails, or does not answer, confirms nothing.
   */
  async proven(): Promise<boolean> {
    return (await inTime(this.confirm(), this.#context.time, PROOF_WAIT_MAX_MS)) ?? false;
  }

  /** Others have taken the run over since, and perhaps ended it, and have added nothing to what was recorded here. */
  isUntouched({ seq, takeovers }: Pick<StoredRun, 'seq' | 'takeovers'>): boolean {
    const last = this.isLeased ? this.seq : 0;
    const isOurs = seq >= this.stored_seq && seq <= last && takeovers.length >= this.#takeovers;
    return isOurs && takeovers.slice(this.#takeovers).every((takeover) => takeover.seq >= seq);
  }

  /**
   * Takes the run back, of which the store has this. True once it is ours again, and what the store does not have of it is
   * being stored; false if that failed, and the store has to be asked again what it has.
   */
  async takeBack({ epoch, seq, takeovers }: StoredRun): Promise<boolean> {
    const { store, metrics, log, time } = this.#context;
    const { id, owner } = this.#run;
    const asked_ms = time.now();
    const mark = newMark();
    try {
      const lost = this.lease ?? { run: id, owner, epoch: FIRST_EPOCH };
      const lease = await store.takeBack?.(lost, epoch, mark);
      this.epoch = latestEpochName([...takeovers, { seq, mark }]);
      this.#takeovers = takeovers.length + 1;
      this.begin(lease, asked_ms);
      // It was given up meanwhile; an unused lease would block the run.
      if (lease && this.isOver) await store.release(lease);
      return !this.isOver;
    } catch (error) {
      if (error instanceof AcquireRefusedError) return false;
      metrics.checkpointErrors.inc({ store: store.name });
      log.warn({ run: id, err: error }, 'could not take the run back: the store failed');
      return false;
    }
  }

  /** Seals the run, with everything that was recorded; later, without being waited for, if the store is slow. */
  override close(end: JournalEnd): Promise<boolean> {
    return this.#conclude(() => super.close(end));
  }

  /** Hands the run over, with everything that was recorded, as {@link close} does otherwise. */
  override release(): Promise<boolean> {
    return this.#conclude(() => super.release());
  }

  #lease(): Promise<void> {
    this.#leased ??= inTime(this.#ready, this.#context.time, LEASE_WAIT_MAX_MS);
    return this.#leased;
  }

  async #conclude(conclude: () => Promise<boolean>): Promise<boolean> {
    const concluded = this.#ready.then(conclude);
    const isConcluded = await inTime(concluded, this.#context.time, END_WAIT_MAX_MS);
    if (!this.isLeased) {
      this.#over ??= new AbortController();
      this.#over.abort();
    }
    return isConcluded ?? false;
  }

  async #acquire(): Promise<void> {
    const { store, metrics, log, time } = this.#context;
    const { id, owner } = this.#run;
    let before: 'nothing' | 'refused' | 'failed' = 'nothing';
    while (!this.isOver && !this.#over?.signal.aborted) {
      try {
        const asked_ms = time.now();
        const lease = await store.acquire(id, owner, await this.#epochBefore(before));
        if (this.isOver) await store.release(lease);
        else this.begin(lease, asked_ms);
        return;
      } catch (error) {
        if (error instanceof AcquireRefusedError) {
          if (before === 'refused') return this.supersede({ run: id, owner, epoch: FIRST_EPOCH });
          before = 'refused';
          continue;
        }
        metrics.checkpointErrors.inc({ store: store.name });
        if (before !== 'failed')
          log.warn({ run: id, err: error }, 'no checkpoints yet: the store gave no lease');
        before = 'failed';
      }
      this.#over ??= new AbortController();
      await sleep(time, LEASE_RETRY_MS, this.#over.signal);
    }
    this.begin(undefined, time.now());
  }

  /**
   * The epoch to follow. A run that cannot be a new one may be this one all the same, if it is empty: the lease was given
   * and the answer lost, and may have been handed over since, or a reader has made the run known before its replica could.
   */
  async #epochBefore(before: 'nothing' | 'refused' | 'failed'): Promise<number> {
    if (before === 'nothing') return 0;
    const { store } = this.#context;
    const stored = await store.read(this.#run.id, this.#run.owner, 0);
    if (!stored || stored.records.length > 0) return 0;
    // A store that gives runs back hands over what was given and not acknowledged: this holder is another one.
    const isOthers = before === 'refused' || store.takeBack !== undefined;
    return isOthers && stored.holder.state === 'alive' ? 0 : stored.epoch;
  }
}

function headerOf(
  { wire, request, target, events, thread, step, digest, resumable, body }: Run,
  created_at_ms: number,
): RunHeader {
  return {
    wire: wire.name,
    created_at_ms,
    model: request.model,
    upstream: target.name,
    events,
    ...(thread !== undefined && { thread }),
    ...(step && { step }),
    ...(digest !== undefined && { digest }),
    ...(resumable && { body }),
  };
}
