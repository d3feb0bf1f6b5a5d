import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import type { Lease, RunEnd } from '../../src/checkpoint/store.ts';
import { sleep, type Time } from '../../src/lib/time.ts';

const NEVER = new AbortController().signal;

/** A memory store whose appends, finishes and releases can fail on demand, or wait until they are let through. */
export class StoreDouble extends MemoryStore {
  /** The stored batches, in order. */
  readonly batches: (readonly JournalRecord[])[] = [];
  calls = 0;
  /** The number of upcoming calls that fail, and whether they store their content first. */
  failures = 0;
  failAfterStoring = false;
  /** The duration of each call. */
  latency_ms = 0;
  readonly #time: Time;
  #gate: Promise<void> | undefined;

  constructor(options: { readonly time: Time; readonly ttl_ms: number }) {
    super(options);
    this.#time = options.time;
  }

  /** Blocks all calls until the returned function is called. */
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

  override async finish(lease: Lease, end: RunEnd): Promise<void> {
    return this.#call(() => super.finish(lease, end));
  }

  override async release(lease: Lease): Promise<void> {
    return this.#call(() => super.release(lease));
  }

  async #call<Result>(store: () => Promise<Result>): Promise<Result> {
    this.calls++;
    await this.#gate;
    if (this.latency_ms > 0) await sleep(this.#time, this.latency_ms, NEVER);
    if (this.failures === 0) return store();
    this.failures--;
    if (this.failAfterStoring) await store();
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  }
}
