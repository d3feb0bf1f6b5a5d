import { expect, onTestFinished, vi } from 'vitest';
import { CheckpointScheduler } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { JournalWriter } from '../../src/checkpoint/journal-writer.ts';
import { parseRedisUrl } from '../../src/checkpoint/redis/address.ts';
import { RedisStore, type RedisStoreOptions } from '../../src/checkpoint/redis/store.ts';
import { JournalGapError, type Lease, type RunId, type StoredRun } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/lib/time.ts';
import { HEADER, newRunId, OWNER, textEvent, textOf } from '../checkpoint/fixtures.ts';

export const LEASE_MS = 600;
const INTERVAL_MS = 20;
const TTL_MS = 3_600_000;
/**
 * The time within which each of the store's promises settles, whatever Redis does, plus an allowance for a busy
 * machine.
 */
export const SETTLES_MS = 2000 + 500;
const CHANGE_MAX_MS = 15_000;

export type Settings = Partial<
  Pick<
    RedisStoreOptions,
    'ttl_ms' | 'complete_ttl_ms' | 'lease_ms' | 'command_ms' | 'seal' | 'replication' | 'rewritable_bytes'
  >
>;

/** A store, and everything that it has reported. */
export class ObservedStore {
  readonly store: RedisStore;
  readonly outages: Error[] = [];
  readonly damages: Error[] = [];
  readonly doubts: string[] = [];
  recoveries = 0;

  private constructor(url: string, settings: Settings) {
    this.store = new RedisStore({
      address: parseRedisUrl(url),
      ttl_ms: TTL_MS,
      lease_ms: LEASE_MS,
      ...settings,
      onError: (error) => this.damages.push(error),
      onOutage: (error) => this.outages.push(error),
      onRecovery: () => this.recoveries++,
      onDoubt: (doubt) => this.doubts.push(doubt),
    });
  }

  /** Opens a store that is closed when the test ends. */
  static async open(url: string, settings: Settings = {}): Promise<ObservedStore> {
    const observed = new ObservedStore(url, settings);
    onTestFinished(() => observed.store.close());
    await observed.store.start({ required: true });
    return observed;
  }

  /** The error with which the call rejects, which has to happen within {@link SETTLES_MS}. */
  async failure(call: (store: RedisStore) => Promise<unknown>): Promise<Error> {
    const started_ms = performance.now();
    const error = await call(this.store).then(
      () => expect.unreachable('it did not fail'),
      (reason: unknown) => reason,
    );
    expect(performance.now() - started_ms).toBeLessThan(SETTLES_MS);
    return error as Error;
  }

  /** Expects every kind of call to fail in time. */
  async expectNothingWorks(lease: Lease, reason: RegExp): Promise<void> {
    const note = { kind: 'thread', name: 'x' } as const;
    const failures = await Promise.all([
      this.failure((store) => store.acquire(newRunId(), OWNER)),
      this.failure((store) => store.read(lease.run, OWNER, 0)),
      this.failure((store) => store.orphans(10)),
      this.failure((store) => store.notes.put(OWNER, note, 'x', 1000)),
      this.failure((store) => store.notes.get(OWNER, note)),
      this.failure((store) => store.check()),
    ]);
    for (const { message } of failures) expect(message).toMatch(reason);
  }

  async untilRecovered(): Promise<void> {
    const { outages } = this;
    await vi.waitFor(() => expect(this.recoveries).toBe(outages.length), {
      timeout: CHANGE_MAX_MS,
      interval: 10,
    });
    await this.store.check();
  }

  async untilOutage(): Promise<void> {
    await vi.waitFor(() => expect(this.outages.length).toBe(this.recoveries + 1), {
      timeout: CHANGE_MAX_MS,
      interval: 10,
    });
  }

  async read({ run }: Lease): Promise<StoredRun> {
    const stored = await this.store.read(run, OWNER, 0);
    if (!stored) throw new Error('the run is unknown');
    return stored;
  }

  async text(lease: Lease): Promise<string> {
    return textOf((await this.read(lease)).records);
  }

  /** Begins a run and its journal. */
  async journal(run: RunId = newRunId()): Promise<ObservedJournal> {
    return ObservedJournal.begin(this.store, run);
  }
}

/** A real journal writer on top of the store. */
export class ObservedJournal {
  readonly lease: Lease;
  readonly writer: JournalWriter;
  readonly errors: unknown[] = [];
  readonly stale: unknown[] = [];
  /** Everything recorded so far. */
  text = '';

  private constructor(store: RedisStore, lease: Lease) {
    this.lease = lease;
    this.writer = new JournalWriter({
      store,
      lease,
      scheduler: new CheckpointScheduler({ interval_ms: INTERVAL_MS, time: systemTime }),
      start: HEADER,
      onAppend: () => {},
      onError: (error) => this.errors.push(error),
      onStale: (error) => this.stale.push(error),
    });
  }

  static async begin(store: RedisStore, run: RunId): Promise<ObservedJournal> {
    return new ObservedJournal(store, await store.acquire(run, OWNER));
  }

  record(text: string): void {
    for (const character of text) this.writer.record(textEvent(character));
    this.text += text;
  }

  async untilStored(): Promise<void> {
    await vi.waitFor(() => expect(this.writer.stored_seq).toBe(this.writer.seq), {
      timeout: CHANGE_MAX_MS,
      interval: 10,
    });
    expect(this.writer.degraded).toBe(false);
  }

  /** Waits until the store has reported a loss. */
  async untilLost(): Promise<void> {
    const isLost = () => this.errors.some((error) => error instanceof JournalGapError);
    await vi.waitFor(() => expect(isLost()).toBe(true), { timeout: CHANGE_MAX_MS, interval: 10 });
  }

  async untilDegraded(): Promise<void> {
    await vi.waitFor(() => expect(this.writer.degraded).toBe(true), { timeout: CHANGE_MAX_MS, interval: 10 });
  }
}
