import { onTestFinished } from 'vitest';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../src/checkpoint/memory/store.ts';
import { Salvage, type SalvageOptions } from '../../src/checkpoint/salvage.ts';
import type { SalvagedRun } from '../../src/checkpoint/salvaged-run.ts';
import type { RunId, Store } from '../../src/checkpoint/store.ts';
import { sleep } from '../../src/lib/time.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import { HEADER_RECORD, newRunId, OWNER, textRecord } from './fixtures.ts';

export const AFTER_MS = 60_000;
export const TTL_MS = 604_800_000;
export const NEVER = new AbortController().signal;

/** Replicas that share a store and a virtual time, and the results of their sweeps. */
export class Deployment {
  readonly time = new VirtualTime();
  readonly #runs = new MemoryRuns();
  readonly salvaged: SalvagedRun[] = [];
  readonly kept: SalvagedRun[] = [];
  readonly errors: { readonly error: unknown; readonly unreported: number }[] = [];
  readonly #salvages: Salvage[] = [];

  replica(): MemoryStore {
    return new MemoryStore({ time: this.time, ttl_ms: TTL_MS, runs: this.#runs });
  }

  /** Starts a replica's sweep. */
  sweep(store: Store = this.replica(), options: Partial<SalvageOptions> = {}): Salvage {
    const salvage = new Salvage({
      store,
      time: this.time,
      random: () => 0.5,
      after_ms: AFTER_MS,
      keep: async (run) => void this.kept.push(run),
      onSalvaged: (run) => this.salvaged.push(run),
      onError: (error, unreported) => this.errors.push({ error, unreported }),
      ...options,
    });
    this.#salvages.push(salvage);
    salvage.start();
    return salvage;
  }

  /** Stores a run and loses its replica. */
  async lose(records = [HEADER_RECORD, textRecord(0, 'Kelp', ' grips')]): Promise<RunId> {
    const store = this.replica();
    const { run } = await this.begin(store, records);
    await store.close();
    return run;
  }

  async begin(store: Store, records = [HEADER_RECORD, textRecord(0, 'Kelp', ' grips')]) {
    const lease = await store.acquire(newRunId(), OWNER);
    if (records.length > 0) await store.append(lease, records);
    return lease;
  }

  pass(delay_ms: number): Promise<void> {
    return this.time.drive(sleep(this.time, delay_ms, NEVER));
  }

  async statusOf(run: RunId): Promise<string | undefined> {
    return (await this.replica().read(run, OWNER, 0))?.status;
  }

  async close(): Promise<void> {
    for (const salvage of this.#salvages) await this.time.drive(salvage.close());
  }
}

/** A deployment whose sweeps stop when the test ends. */
export function deployment(): Deployment {
  const opened = new Deployment();
  onTestFinished(() => opened.close());
  return opened;
}
