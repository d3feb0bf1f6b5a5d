import { type EpochName, FIRST_EPOCH, latestEpochName, newMark } from '../../checkpoint/epoch.ts';
import type { RunHeader } from '../../checkpoint/journal.ts';
import { JournalWriter } from '../../checkpoint/journal-writer.ts';
import { AcquireRefusedError, type JournalEnd, type StoredRun } from '../../checkpoint/store.ts';
import { inTime, sleep } from '../../lib/time.ts';
import type { Resumption, Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';

/** How long delivery waits for the lease. */
const LEASE_WAIT_MAX_MS = 1000;
/** How long the end of a run waits for the store. */
const END_WAIT_MAX_MS = 10_000;
/** How long delivery waits for the store to confirm that this replica still holds the run. */
const PROOF_WAIT_MAX_MS = 30_000;
/** Retry interval for the lease, so that a run begun during an outage of the store still gets one. */
const LEASE_RETRY_MS = 500;

/**
 * The journal of a run as the relay uses it: accepts events at once, even while the lease is still being acquired, and
 * continues without a store that doesn't respond.
 */
export class RunJournal extends JournalWriter {
  /** When the run began on any replica. */
  readonly created_at_ms: number;
  /** The epoch for new events. */
  epoch: EpochName;
  readonly #context: RunContext;
  readonly #run: Run;
  /** The number of takeovers up to this epoch. */
  #takeovers: number;
  /** Resolves once the store has granted a lease, or never will. */
  readonly #ready: Promise<void>;
  #leased: Promise<void> | undefined;
  /** Created on demand. Aborts when the run has ended without a lease and the wait for its end is over. */
  #over: AbortController | undefined;

  /** `onStale`: called when another replica has taken the run over. */
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

  /** Resolves once all recorded events are stored, or the store has failed or timed out. */
  async stored(): Promise<void> {
    if (!this.isLeased) await this.#lease();
    await this.flush();
  }

  /**
   * Whether the store confirms within 30 seconds that all recorded events are stored, and therefore that this replica
   * holds the run. False if the store fails or doesn't respond.
   */
  async proven(): Promise<boolean> {
    return (await inTime(this.confirm(), this.#context.time, PROOF_WAIT_MAX_MS)) ?? false;
  }

  /** Whether other replicas that took the run over, and may have ended it, added no events to this journal. */
  isUntouched({ seq, takeovers }: Pick<StoredRun, 'seq' | 'takeovers'>): boolean {
    const last = this.isLeased ? this.seq : 0;
    const isOurs = seq >= this.stored_seq && seq <= last && takeovers.length >= this.#takeovers;
    return isOurs && takeovers.slice(this.#takeovers).every((takeover) => takeover.seq >= seq);
  }

  /**
   * Takes the run back from the given stored state. True once this replica holds it again and the missing events are
   * being stored; false if that failed, and the stored state must be read again.
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
      // The run was given up meanwhile, and an unused lease would block it.
      if (lease && this.isOver) await store.release(lease);
      return !this.isOver;
    } catch (error) {
      if (error instanceof AcquireRefusedError) return false;
      metrics.checkpointErrors.inc({ store: store.name });
      log.warn({ run: id, err: error }, 'could not take the run back: the store failed');
      return false;
    }
  }

  /** Seals the run with all recorded events. If the store is slow, this continues in the background. */
  override close(end: JournalEnd): Promise<boolean> {
    return this.#conclude(() => super.close(end));
  }

  /** Hands the run over with all recorded events, and waits like {@link close}. */
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
   * The epoch to follow when acquiring the lease. An existing empty run may still be this one: the store granted the
   * lease but its answer was lost, and the lease may have been handed over since; or a reader registered the run first.
   */
  async #epochBefore(before: 'nothing' | 'refused' | 'failed'): Promise<number> {
    if (before === 'nothing') return 0;
    const { store } = this.#context;
    const stored = await store.read(this.#run.id, this.#run.owner, 0);
    if (!stored || stored.records.length > 0) return 0;
    // Such a store already returns a lease that was granted but not acknowledged, so this holder is another replica.
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
