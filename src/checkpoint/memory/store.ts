import type { Time } from '../../lib/time.ts';
import { NOTHING_STORED, recordsToAppend } from '../append-order.ts';
import type { JournalRecord } from '../journal.ts';
import type { Notes } from '../notes.ts';
import { decodeRecord, encodeRecord } from '../record-codec.ts';
import type { RunIndex } from '../run-index.ts';
import {
  AcquireRefusedError,
  type Holder,
  isRunId,
  isSameOwner,
  type Lease,
  type Orphan,
  type Owner,
  type RunEnd,
  type RunId,
  StaleLeaseError,
  type Store,
  type StoredRun,
} from '../store.ts';
import { MemoryNotes } from './notes.ts';
import { type MemoryRun, MemoryRuns } from './runs.ts';

/**
 * Stores runs in the memory of one process, for tests and trials: nothing survives the process. Finished runs are
 * dropped once they expire or, oldest first, to make room. If that isn't enough, appends are refused.
 */
export class MemoryStore implements Store {
  readonly name = 'memory';
  readonly notes: Notes;
  readonly index: RunIndex;
  readonly #time: Time;
  readonly #ttl_ms: number;
  readonly #complete_ttl_ms: number;
  readonly #runs: MemoryRuns;
  #isOpen: boolean = true;

  /**
   * `ttl_ms`: how long a finished run is kept. `complete_ttl_ms`: how long a complete one is kept, if shorter. `runs`:
   * shared with the stores of other replicas.
   */
  constructor(options: {
    readonly time: Time;
    readonly ttl_ms: number;
    readonly complete_ttl_ms?: number;
    readonly runs?: MemoryRuns;
  }) {
    this.#time = options.time;
    this.#ttl_ms = options.ttl_ms;
    this.#complete_ttl_ms = options.complete_ttl_ms ?? options.ttl_ms;
    this.#runs = options.runs ?? new MemoryRuns();
    this.notes = new MemoryNotes(options.time, this.#runs.notes);
    this.index = this.#runs.index;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  async acquire(run: RunId, owner: Owner, after = 0): Promise<Lease> {
    this.#assertOpen();
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    this.#dropExpired();
    const known = this.#runs.get(run);
    if (known ? !isSameOwner(known.owner, owner) : after > 0) throw new AcquireRefusedError(run, 'foreign');
    if (known?.end) throw new AcquireRefusedError(run, 'finished');
    if (known && known.epoch !== after) throw new AcquireRefusedError(run, 'taken');
    if (known) this.#follow(known);
    else this.#runs.add(run, this.#newRun(owner));
    return { run, owner, epoch: after + 1 };
  }

  async append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    this.#assertOpen();
    const run = this.#held(lease);
    if (!run || run.end) throw new StaleLeaseError(lease);
    const fresh = recordsToAppend(lease.run, run.seq, records);
    this.#runs.append(
      run,
      fresh.map((record) => encodeRecord(record)),
    );
    for (const { seq } of fresh) run.seqs.push(seq);
    const header = fresh[0]?.header;
    if (header) this.#runs.index.add(lease.owner, lease.run, header);
    run.seq = fresh.at(-1)?.seq ?? run.seq;
    return run.seq;
  }

  async finish(lease: Lease, end: RunEnd): Promise<void> {
    this.#assertOpen();
    const run = this.#held(lease);
    if (!run) throw new StaleLeaseError(lease);
    if (!run.end) this.#runs.finish(lease.run, run, end, this.#time.now());
  }

  async purge(run: RunId, owner: Owner): Promise<void> {
    this.#assertOpen();
    const known = this.#runs.get(run);
    if (known && isSameOwner(known.owner, owner)) this.#runs.purge(run);
  }

  async release(lease: Lease): Promise<void> {
    this.#assertOpen();
    const run = this.#held(lease);
    if (!run || run.end) return;
    run.epoch++;
    run.holder = undefined;
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    this.#dropExpired();
    const known = this.#runs.get(run);
    if (!known || !isSameOwner(known.owner, owner)) return null;
    const records: JournalRecord[] = [];
    for (const line of known.lines.slice(firstAfter(known.seqs, from))) {
      const decoded = decodeRecord(line);
      if ('reason' in decoded) throw new Error(`the memory of this process is damaged: ${decoded.reason}`);
      records.push(decoded.value);
    }
    return {
      status: known.end?.status ?? 'running',
      ...(known.end && { end: known.end }),
      epoch: known.epoch,
      holder: holderOf(known),
      takeovers: [...known.takeovers],
      seq: Math.max(known.seq, 0),
      records,
    };
  }

  async orphans(limit: number): Promise<readonly Orphan[]> {
    const orphans: Orphan[] = [];
    for (const [run, { owner, epoch, holder }] of this.#runs.running()) {
      if (orphans.length === limit) break;
      if (!holder?.isOpen) orphans.push({ run, owner, epoch });
    }
    return orphans;
  }

  async check(): Promise<void> {
    this.#assertOpen();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw new Error('the memory store is closed');
  }

  #newRun(owner: Owner): MemoryRun {
    return {
      owner,
      epoch: 1,
      holder: this,
      takeovers: [],
      end: undefined,
      lines: [],
      seqs: [],
      units: 0,
      seq: NOTHING_STORED,
      finished_ms: 0,
    };
  }

  #follow(run: MemoryRun): void {
    run.epoch++;
    run.holder = this;
    run.takeovers.push({ seq: Math.max(run.seq, 0) });
  }

  /** The run, unless the lease was fenced. */
  #held(lease: Lease): MemoryRun | undefined {
    const run = this.#runs.get(lease.run);
    return run?.epoch === lease.epoch && run.owner === lease.owner ? run : undefined;
  }

  #dropExpired(): void {
    const now_ms = this.#time.now();
    this.#runs.dropFinished(now_ms - this.#ttl_ms, now_ms - this.#complete_ttl_ms);
  }
}

/** The index of the first record that ends after the cursor `from`. 0 includes the header. */
function firstAfter(seqs: readonly number[], from: number): number {
  const position = from <= 0 ? 0 : seqs.findIndex((seq) => seq > from);
  return position < 0 ? seqs.length : position;
}

function holderOf({ end, holder }: MemoryRun): Holder {
  if (end || !holder) return { state: 'released' };
  return holder.isOpen ? { state: 'alive', silent_ms: 0 } : { state: 'lost' };
}
