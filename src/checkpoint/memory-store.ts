import type { Time } from '../time.ts';
import { isAfter, NOTHING_STORED, recordsToAppend } from './append-order.ts';
import type { JournalRecord } from './journal.ts';
import { decodeRecord, encodeRecord } from './record-codec.ts';
import type { FinalStatus, Lease, Owner, RunId, RunStatus, Store, StoredRun } from './store.ts';
import { AcquireRefusedError, isRunId, StaleLeaseError } from './store.ts';

const UNITS_MAX = 256 * 1024 * 1024;

interface MemoryRun {
  readonly owner: Owner;
  epoch: number;
  status: RunStatus;
  /** Encoded: a few strings weigh far less on the heap than an object per event. */
  readonly lines: string[];
  units: number;
  seq: number;
  finished_ms: number;
}

/**
 * Runs in the memory of one process, for tests and trials: nothing survives the process. Finished runs are dropped
 * when their time is over or, oldest first, when 256 Mi UTF-16 units are held; then appends are refused.
 */
export class MemoryStore implements Store {
  readonly name = 'memory';
  readonly #time: Time;
  readonly #ttl_ms: number;
  readonly #units_max: number;
  readonly #runs = new Map<RunId, MemoryRun>();
  /** Finished runs, oldest first. */
  readonly #finished = new Set<RunId>();
  #units = 0;

  /** `ttl_ms`: how long a run is kept after it was finished. */
  constructor(options: { readonly time: Time; readonly ttl_ms: number; readonly units_max?: number }) {
    this.#time = options.time;
    this.#ttl_ms = options.ttl_ms;
    this.#units_max = options.units_max ?? UNITS_MAX;
  }

  async acquire(run: RunId, owner: Owner): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    this.#dropExpired();
    const known = this.#runs.get(run);
    if (!known) {
      this.#runs.set(run, {
        owner,
        epoch: 1,
        status: 'running',
        lines: [],
        units: 0,
        seq: NOTHING_STORED,
        finished_ms: 0,
      });
      return { run, owner, epoch: 1 };
    }
    if (known.owner !== owner) throw new AcquireRefusedError(run, 'foreign');
    if (known.status !== 'running') throw new AcquireRefusedError(run, 'finished');
    known.epoch++;
    return { run, owner, epoch: known.epoch };
  }

  async append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    const run = this.#held(lease);
    if (run.status !== 'running') throw new StaleLeaseError(lease);
    const lines = recordsToAppend(lease.run, run.seq, records).map(encodeRecord);
    const units = lines.reduce((sum, line) => sum + line.length, 0);
    this.#makeRoom(units);
    run.lines.push(...lines);
    run.units += units;
    run.seq = Math.max(run.seq, records.at(-1)?.seq ?? run.seq);
    return run.seq;
  }

  async finish(lease: Lease, status: FinalStatus): Promise<void> {
    const run = this.#held(lease);
    if (run.status !== 'running') return;
    run.status = status;
    run.finished_ms = this.#time.now();
    this.#finished.add(lease.run);
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    this.#dropExpired();
    const known = this.#runs.get(run);
    if (known?.owner !== owner) return null;
    const records: JournalRecord[] = [];
    for (const line of known.lines) {
      const decoded = decodeRecord(line);
      if ('reason' in decoded) throw new Error(`the memory of this process is damaged: ${decoded.reason}`);
      if (isAfter(decoded.value, from)) records.push(decoded.value);
    }
    return { status: known.status, seq: Math.max(known.seq, 0), records };
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {}

  #held(lease: Lease): MemoryRun {
    const run = this.#runs.get(lease.run);
    if (run?.epoch !== lease.epoch || run.owner !== lease.owner) throw new StaleLeaseError(lease);
    return run;
  }

  #dropExpired(): void {
    const now_ms = this.#time.now();
    for (const id of this.#finished) {
      const run = this.#runs.get(id);
      if (run && now_ms - run.finished_ms < this.#ttl_ms) return;
      this.#drop(id);
    }
  }

  #makeRoom(units: number): void {
    for (const id of this.#finished) {
      if (this.#units + units <= this.#units_max) break;
      this.#drop(id);
    }
    if (this.#units + units > this.#units_max) throw new Error('the memory store is full of running runs');
    this.#units += units;
  }

  #drop(id: RunId): void {
    this.#units -= this.#runs.get(id)?.units ?? 0;
    this.#runs.delete(id);
    this.#finished.delete(id);
  }
}
