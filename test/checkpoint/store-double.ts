import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { MemoryStore } from '../../src/checkpoint/memory-store.ts';
import type { FinalStatus, Lease } from '../../src/checkpoint/store.ts';

/** A memory store whose appends and finishes can be made to fail, or to wait until they are let go. */
export class StoreDouble extends MemoryStore {
  /** The batches that were stored, in order. */
  readonly batches: (readonly JournalRecord[])[] = [];
  calls = 0;
  /** How many calls fail from now on, and whether what they carried is stored all the same. */
  failures = 0;
  failAfterStoring = false;
  #gate: Promise<void> | undefined;

  /** Holds every call back until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return () => {
      this.#gate = undefined;
      resolve();
    };
  }

  override async append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    return this.#call(async () => {
      const seq = await super.append(lease, records);
      this.batches.push(records);
      return seq;
    });
  }

  override async finish(lease: Lease, status: FinalStatus): Promise<void> {
    return this.#call(() => super.finish(lease, status));
  }

  async #call<Result>(store: () => Promise<Result>): Promise<Result> {
    this.calls++;
    await this.#gate;
    if (this.failures === 0) return store();
    this.failures--;
    if (this.failAfterStoring) await store();
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  }
}
