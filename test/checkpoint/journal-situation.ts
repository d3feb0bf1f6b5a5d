import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { JournalWriter } from '../../src/checkpoint/journal-writer.ts';
import type { Lease, StaleLeaseError } from '../../src/checkpoint/store.ts';
import { sleep } from '../../src/lib/time.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import { HEADER, newRunId, OWNER, textOf } from './fixtures.ts';
import { StoreDouble } from './store-double.ts';

export const INTERVAL_MS = 100;

/** A journal in virtual time, on a store that the test controls. */
export class Situation {
  readonly time = new VirtualTime();
  readonly store = new StoreDouble({ time: this.time, ttl_ms: 3_600_000 });
  readonly scheduler = new CheckpointScheduler({ interval_ms: INTERVAL_MS, time: this.time });
  readonly run = newRunId();
  readonly errors: unknown[] = [];
  readonly stale: StaleLeaseError[] = [];
  appends = 0;

  async open(): Promise<JournalWriter> {
    return this.openWith(await this.lease());
  }

  lease(): Promise<Lease> {
    return this.store.acquire(this.run, OWNER);
  }

  /** Without a lease, the journal gets one later. */
  openWith(lease: Lease | undefined): JournalWriter {
    return new JournalWriter({
      store: this.store,
      lease,
      scheduler: this.scheduler,
      start: HEADER,
      onAppend: () => this.appends++,
      onError: (error) => this.errors.push(error),
      onStale: (error) => this.stale.push(error),
    });
  }

  /** Advances virtual time. */
  async pass(delay_ms: number): Promise<void> {
    await this.time.drive(sleep(this.time, delay_ms, new AbortController().signal));
    await this.settle();
  }

  /** Runs everything that is due without advancing the time. */
  settle(): Promise<void> {
    return this.time.drive(Promise.resolve());
  }

  get seqs(): number[][] {
    return this.store.batches.map((batch) => batch.map(({ seq }) => seq));
  }

  async storedText(): Promise<string> {
    return textOf((await this.store.read(this.run, OWNER, 0))?.records ?? []);
  }
}
