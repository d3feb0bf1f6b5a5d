import { isAfter, NOTHING_STORED, recordsToAppend } from '../append-order.ts';
import { DamageReports } from '../damage-reports.ts';
import { newMark } from '../epoch.ts';
import type { JournalRecord } from '../journal.ts';
import { NoteReader } from '../note-codec.ts';
import type { Notes } from '../notes.ts';
import { REPLICA_LOST } from '../salvaged-run.ts';
import type { Seal } from '../seal.ts';
import {
  AcquireRefusedError,
  BEATS_PER_LEASE,
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
  type Takeover,
} from '../store.ts';
import type { RedisAddress } from './address.ts';
import { RedisConnection, type RedisConnectionOptions } from './connection.ts';
import { RELEASED_LISTS } from './keys.ts';
import { RedisLeases } from './leases.ts';
import { encodeEnd, encodeLine, type LogReader, type Opening, recordId } from './log.ts';
import { RedisNotes } from './notes.ts';
import { Reconciliation } from './reconciliation.ts';
import { UnreachableRedisError } from './refusal.ts';
import { RedisReplicas } from './replicas.ts';
import { Replication, type ReplicationSettings } from './replication.ts';
import { type ListedRun, RedisRunIndex, RedisRunLists } from './run-index.ts';
import { RedisRuns } from './runs.ts';
import { durabilityDoubts } from './server-checks.ts';

/** Default of `rewritable_bytes`. */
const REWRITABLE_BYTES = 32 * 1024;
/** How often a takeover is retried while the holder keeps appending. */
const TAKEOVERS_MAX = 20;
/** How often this replica reconciles its runs with Redis, besides after every reconnection. */
const COMPARE_EVERY_BEATS = 10 * BEATS_PER_LEASE;
/** Keys of running runs and of dead replicas live at least this many leases, however briefly finished runs are kept. */
const KEPT_LEASES = 10;

export interface RedisStoreOptions extends RedisConnectionOptions {
  readonly address: RedisAddress;
  /** How long a run is kept after its end. A running one is kept for as long as its replica lives. */
  readonly ttl_ms: number;
  /** How long a complete run is kept, if shorter. */
  readonly complete_ttl_ms?: number;
  readonly lease_ms: number;
  /**
   * How many bytes of each running run's stored entries are kept in memory, to write them again if Redis loses them.
   * Default 32 Ki.
   */
  readonly rewritable_bytes?: number;
  readonly replication?: ReplicationSettings | undefined;
  /** Encrypts or proves stored data. Without a seal, Redis is trusted. */
  readonly seal?: Seal | undefined;
  /** Receives damaged runs that were read or taken over, and unreadable notes. */
  onError(error: Error): void;
  /** Called once when Redis stops working for this replica; `onRecovery` once when it works again. */
  onOutage(error: Error): void;
  onRecovery(outage_ms: number): void;
  /** Called once for each way in which Redis's configuration may lose acknowledged writes. */
  onDoubt?(doubt: string): void;
}

/**
 * Stores runs in Redis or Valkey, for any number of replicas. Appends are as durable as Redis is configured to be, and
 * losses are detected and never hidden. However Redis fails, every call settles within seconds.
 */
export class RedisStore implements Store {
  readonly name = 'redis';
  readonly notes: Notes;
  readonly index: RedisRunIndex;
  readonly #connection: RedisConnection;
  readonly #replication: Replication | undefined;
  readonly #replicas: RedisReplicas;
  readonly #lists: RedisRunLists;
  readonly #runs: RedisRuns;
  readonly #leases: RedisLeases;
  readonly #damages: DamageReports;
  #closing: Promise<void> | undefined;

  constructor(options: RedisStoreOptions) {
    const { lease_ms, seal, onError, onOutage, onRecovery } = options;
    const ttl_ms = Math.ceil(options.ttl_ms);
    const connection = new RedisConnection(options.address, options);
    this.#connection = connection;
    const { replication, onDoubt } = options;
    if (replication && replication.wait_replicas > 0)
      this.#replication = new Replication(options.address, replication, options);
    if (onDoubt) connection.client.once('ready', () => void this.#examine(onDoubt));
    this.#damages = new DamageReports(onError);
    this.notes = new RedisNotes({ connection, seal, reader: new NoteReader(seal, onError) });
    this.index = new RedisRunIndex({ connection, seal, ttl_ms });
    const keep_ms = Math.max(ttl_ms, KEPT_LEASES * lease_ms);
    this.#lists = new RedisRunLists(connection, keep_ms);
    this.#runs = new RedisRuns(connection, seal);
    let beats = 0;
    connection.client.on('ready', () => {
      beats = 0;
    });
    const onBeat = () => {
      void this.#leases.returnLeases();
      void this.#leases.keep();
      if (beats++ % COMPARE_EVERY_BEATS === 0) void reconciliation.compare().catch(ignore);
    };
    this.#replicas = new RedisReplicas({ connection, lease_ms, keep_ms, onOutage, onRecovery, onBeat });
    const replica = this.#replicas.id;
    const complete_ttl_ms = Math.ceil(options.complete_ttl_ms ?? ttl_ms);
    this.#leases = new RedisLeases({
      connection,
      replication: this.#replication,
      lists: this.#lists,
      replica,
      seal,
      keep_ms,
      ttl_ms,
      complete_ttl_ms,
      rewritable_bytes: options.rewritable_bytes ?? REWRITABLE_BYTES,
    });
    const reconciliation = new Reconciliation(this.#leases, this.#lists, this.#runs, replica);
  }

  /**
   * Connects. Rejects with a {@link StoreConfigurationError} if Redis refuses this store, or if it is required and
   * doesn't work within seconds. If it isn't required, the store starts to work once Redis does.
   */
  async start(options: { readonly required: boolean }): Promise<void> {
    try {
      await Promise.all([
        this.#connection.start(() => this.#replicas.beat()),
        this.#replication?.connection.start(async () => {}),
      ]);
      this.#replicas.start();
    } catch (error) {
      if (!options.required && error instanceof UnreachableRedisError) return this.#replicas.start(error);
      await this.close();
      throw error;
    }
  }

  async acquire(run: RunId, owner: Owner, after = 0): Promise<Lease> {
    if (!isRunId(run)) throw new AcquireRefusedError(run, 'invalid_id');
    return after === 0 ? this.#begin(run, owner) : this.#follow(run, owner, after);
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    const header = records[0]?.header;
    if (header) this.index.add(lease.owner, lease.run, header);
    return this.#leases.inTurn(lease, async (held) => {
      await this.#leases.write(held, () => {
        if (held.state !== 'held') throw new StaleLeaseError(lease);
        const fresh = recordsToAppend(lease.run, held.seq, records);
        return fresh.map((record) => `${recordId(lease.epoch, record.seq)} ${encodeLine(record, held.seal)}`);
      });
      const seq = records.at(-1)?.seq ?? held.seq;
      if (seq > held.seq) held.wrote(seq);
      return held.seq;
    });
  }

  finish(lease: Lease, end: RunEnd): Promise<void> {
    return this.#leases.inTurn(lease, async (held) => {
      if (held.state === 'fenced') throw new StaleLeaseError(lease);
      // A run that lost events must not end as `complete`; any other end may follow the remaining ones.
      const accepts_loss = end.status !== 'complete';
      const entry = () =>
        held.state === 'held' ? [`${held.end_id} ${encodeEnd(end, held.seq, held.seal)}`] : [];
      await this.#leases.write(held, entry, accepts_loss, this.#leases.keptAfter(end));
      this.#leases.ended(held, 'finished');
    });
  }

  async takeBack(lost: Lease, after: number, mark: string): Promise<Lease> {
    const { run, owner } = lost;
    const lease: Lease = { run, owner, epoch: after + 1 };
    const log = await this.#ownLog(run, owner);
    const { end, epoch, prefix } = log;
    if (prefix.damage || (end && end.cause !== REPLICA_LOST)) throw new AcquireRefusedError(run, 'finished');
    // Redis may have lost that lease, and another replica may have begun the run anew.
    const isOurs = (await this.#leases.isOpened(lost)) ?? prefix.seq <= 0;
    if (isOurs && epoch === after && (await this.#openAfter(log, lease, mark))) return lease;
    throw new AcquireRefusedError(run, 'taken');
  }

  async purge(run: RunId, owner: Owner): Promise<void> {
    const stored = await this.read(run, owner, 0);
    if (!stored?.end) return;
    await this.#runs.remove(run);
    await this.index.remove(owner, run, stored.records[0]?.header);
  }

  release(lease: Lease): Promise<void> {
    return this.#leases.release(lease);
  }

  async read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    if (!isRunId(run)) return null;
    const log = (from > 0 ? await this.#runs.tail(run, from) : undefined) ?? (await this.#runs.whole(run));
    if (!log) return null;
    const { damage, records, seq } = log.prefix;
    const isOwn = log.opening !== undefined && isSameOwner(log.opening.owner, owner);
    if (damage && (isOwn || !log.opening)) this.#damages.found(run, damage);
    if (!isOwn) return null;
    return {
      status: log.end?.status ?? 'running',
      ...(log.end && { end: log.end }),
      epoch: log.epoch,
      holder: await this.#holderOf(log),
      takeovers: log.opening?.takeovers ?? [],
      seq: Math.max(seq, 0),
      records: records.filter((record) => isAfter(record, from)),
      ...(damage && { damage }),
    };
  }

  async orphans(limit: number): Promise<readonly Orphan[]> {
    const orphans: Orphan[] = [];
    const isLost = async (replica: string) => (await this.#replicas.holder(replica)).state === 'lost';
    for await (const listed of this.#lists.unheld(isLost)) {
      const found = await Promise.all(listed.map((one) => this.#orphan(one)));
      for (const orphan of found) if (orphan) orphans.push(orphan);
      if (orphans.length >= limit) break;
    }
    return orphans.slice(0, limit);
  }

  check(): Promise<void> {
    return this.#replicas.beat();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #begin(run: RunId, owner: Owner): Promise<Lease> {
    const lease: Lease = { run, owner, epoch: 1 };
    if (await this.#leases.open(lease, '', { base: NOTHING_STORED, takeovers: [] })) return lease;
    const log = await this.#ownLog(run, owner);
    throw new AcquireRefusedError(run, log.end ? 'finished' : 'taken');
  }

  async #follow(run: RunId, owner: Owner, after: number): Promise<Lease> {
    const lease: Lease = { run, owner, epoch: after + 1 };
    const log = await this.#ownLog(run, owner);
    for (let attempt = 0; attempt < TAKEOVERS_MAX; attempt++) {
      if (log.end) throw new AcquireRefusedError(run, 'finished');
      if (log.epoch !== after) throw new AcquireRefusedError(run, 'taken');
      const { damage } = log.prefix;
      if (await this.#openAfter(log, lease, newMark())) {
        if (damage) this.#damages.rewound(run, damage);
        return lease;
      }
      await this.#runs.readOn(log);
    }
    throw new Error(`${run} cannot be taken over now: its holder appends too fast`);
  }

  /**
   * The opening names the last event before it, so the opening fails if anything was appended since the log was read.
   */
  #openAfter(
    { opening, last_id, prefix }: LogReader,
    lease: Lease,
    mark: string,
  ): Promise<Lease | undefined> {
    const takeover: Takeover = { seq: Math.max(prefix.seq, 0), mark };
    const takeovers = [...(opening?.takeovers ?? []), takeover];
    return this.#leases.open(lease, last_id, { base: prefix.seq, takeovers });
  }

  async #ownLog(run: RunId, owner: Owner): Promise<LogReader> {
    const log = await this.#runs.whole(run);
    if (log?.opening && isSameOwner(log.opening.owner, owner)) return log;
    throw new AcquireRefusedError(run, 'foreign');
  }

  async #holderOf({ end, holder }: LogReader): Promise<Holder> {
    return end || holder === undefined ? { state: 'released' } : this.#replicas.holder(holder);
  }

  /** A listed run may have been finished or taken over since, or may never have been held. */
  async #orphan(listed: ListedRun): Promise<Orphan | undefined> {
    const { run, list, epoch } = listed;
    const latest = await this.#runs.latest(run);
    // The run may belong to another deployment or to a version that this one can't read. Salvaging it is up to them.
    if (latest === 'unproven') return undefined;
    // A dead replica's opening may still be in transit. The replica's list expires as a whole.
    if (!latest && !RELEASED_LISTS.includes(list)) return undefined;
    if (latest && !latest.isFinished) {
      const { opening } = latest;
      if (opening.epoch === epoch && isHeldBy(list, opening)) return { run, owner: opening.owner, epoch };
      // Runs are listed before they are held, and this one may not be held yet.
      if (opening.epoch < epoch) return undefined;
    }
    await this.#lists.remove(listed);
    return undefined;
  }

  async #examine(onDoubt: (doubt: string) => void): Promise<void> {
    for (const doubt of await durabilityDoubts(this.#connection.client)) onDoubt(doubt);
  }

  async #close(): Promise<void> {
    // If Redis is unreachable, the lease expires instead.
    await this.#replicas.stop().catch(ignore);
    await Promise.all([this.#connection.close(), this.#replication?.connection.close()]);
  }
}

const isHeldBy = (list: string, { holder }: Opening): boolean =>
  holder === undefined ? RELEASED_LISTS.includes(list) : holder === list;

const ignore = () => {};
