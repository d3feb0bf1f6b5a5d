import { endTurn, takeTurn } from '../append-order.ts';
import { FIRST_EPOCH } from '../epoch.ts';
import { epochSeal, type Seal } from '../seal.ts';
import { JournalGapError, type Lease, type RunEnd, type RunId, StaleLeaseError } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { logKey, releasedList } from './keys.ts';
import { type Lost, LostTailError, RedisLease } from './lease.ts';
import { encodeOpening, type LogReader, type Opening, openingId, tokenOf } from './log.ts';
import type { Replication } from './replication.ts';
import type { ListedRun, RedisRunLists } from './run-index.ts';
import { LogWrites, type Mismatch } from './scripts.ts';

/** The expiry of a running run's log is renewed after this fraction of its time. */
const KEEP_AFTER = 0.25;
/** How many digits of the replica's id are sent with every write. */
const REPLICA_DIGITS = 8;
/** How many leases may wait to be given back while Redis is unreachable. */
const UNRETURNED_MAX = 10_000;
/** How many of them are given back at a time. */
const RETURNED_AT_ONCE = 100;

export interface RedisLeasesOptions {
  readonly connection: RedisConnection;
  /** Used to open epochs if openings must reach replicas of Redis. */
  readonly replication?: Replication | undefined;
  readonly lists: RedisRunLists;
  /** The id of this replica. */
  readonly replica: string;
  readonly seal: Seal | undefined;
  /** How long a running run's log lives if no replica renews its expiry. */
  readonly keep_ms: number;
  /** How long a finished run's log is kept. */
  readonly ttl_ms: number;
  /** How long a complete run's log is kept. */
  readonly complete_ttl_ms: number;
  /** See `RedisStoreOptions`. */
  readonly rewritable_bytes: number;
}

interface WrittenOpening {
  readonly run: RunId;
  readonly epoch: number;
  readonly line: string;
  readonly last_id: string;
  readonly token: string;
}

/** The leases of one replica and all writes made under them. */
export class RedisLeases {
  readonly #options: RedisLeasesOptions;
  readonly #writes: LogWrites;
  /** Keyed by identity, because an epoch can be opened again after Redis has lost its opening. */
  readonly #known = new WeakMap<Lease, RedisLease>();
  /** Leases whose logs need their expiry renewed, least recently renewed first. */
  readonly #held = new Set<RedisLease>();
  #isKeeping: boolean = false;
  readonly #unreturned = new Set<RedisLease>();
  /**
   * The number of leases for each epoch that this replica holds or may hold, from before it is listed until it is
   * removed from the list. A second lease for the same epoch is eventually refused and must not remove the first one's
   * entry.
   */
  readonly #delivered = new Map<string, number>();
  #returning: Promise<void> | undefined;
  /** Prefix of this replica's tokens. */
  readonly #tokenPrefix: string;
  #opened = 0;

  constructor(options: RedisLeasesOptions) {
    this.#options = options;
    this.#writes = new LogWrites(options.connection);
    this.#tokenPrefix = `${options.replica.slice(0, REPLICA_DIGITS)}.`;
  }

  /** Atomically opens the epoch if `last_id` is still the log's last entry. Resolves with undefined if it isn't. */
  async open(
    lease: Lease,
    last_id: string,
    after: Pick<Opening, 'base' | 'takeovers'>,
  ): Promise<Lease | undefined> {
    const { connection, replication, lists, replica, seal, rewritable_bytes } = this.#options;
    const token = this.#newToken();
    const line = encodeOpening({ ...lease, holder: replica, ...after }, seal);
    const held = new RedisLease({
      lease,
      token,
      ...after,
      seal: epochSeal(seal, lease.run, lease.owner, lease.epoch),
      kept_at_ms: connection.time.now(),
      rewritable_bytes,
    });
    const listed = this.#listed(lease);
    this.#delivered.set(nameOf(listed), (this.#delivered.get(nameOf(listed)) ?? 0) + 1);
    try {
      await lists.add(listed);
    } catch (error) {
      this.#forget(held);
      throw error;
    }
    try {
      const write = (on: RedisConnection) => this.#writeOpening({ ...lease, line, last_id, token }, on);
      const mismatch = await (replication?.replicated(write) ?? write(connection));
      // If the token matches, a cluster client has sent the command twice.
      if (mismatch && mismatch[1] !== token) {
        this.#strike(held);
        return undefined;
      }
    } catch (error) {
      // Redis may have executed the command anyway, and a forgotten lease would block the run.
      this.#remember(held);
      throw error;
    }
    if (lease.epoch === FIRST_EPOCH) held.opening_line = line;
    this.#known.set(lease, held);
    this.#held.add(held);
    return lease;
  }

  /** Renews the expiry of all logs that are due, even without recent appends. Never rejects. */
  async keep(): Promise<void> {
    if (this.#isKeeping) return;
    const now_ms = this.#options.connection.time.now();
    const due: RedisLease[] = [];
    for (const held of this.#held) {
      if (now_ms - held.kept_at_ms < KEEP_AFTER * this.#options.keep_ms) break;
      due.push(held);
    }
    this.#isKeeping = true;
    await Promise.allSettled(due.map((held) => this.#keep(held, now_ms)));
    this.#isKeeping = false;
  }

  /** Calls `action` once all earlier requests under the lease are done. */
  async inTurn<Result>(lease: Lease, action: (held: RedisLease) => Promise<Result>): Promise<Result> {
    const held = this.#known.get(lease);
    if (!held) throw new StaleLeaseError(lease);
    await new Promise<void>((resolve) => takeTurn(held, resolve));
    try {
      return await action(held);
    } finally {
      endTurn(held);
    }
  }

  /**
   * Writes the entries that `compose` returns (`<id> <line>`) if the log ends as expected. If more or less is stored
   * than known, `compose` is called again. `accepts_loss`: also write after a lost tail. `kept_ms`: new expiry of the
   * log; 0 leaves it unchanged.
   */
  async write(
    held: RedisLease,
    compose: () => readonly string[],
    accepts_loss = false,
    kept_ms = 0,
  ): Promise<void> {
    const { connection } = this.#options;
    for (let entries = compose(); entries.length > 0; entries = compose()) {
      const { last_id, token } = held;
      const asked_ms = connection.time.now();
      held.keep(entries);
      const mismatch = await this.#writes.write({
        log: logKey(held.lease.run),
        last_id,
        token,
        entries,
        kept_ms,
      });
      if (!mismatch) {
        held.confirm(asked_ms);
        return;
      }
      const lost = held.lostSince(mismatch, connection.fault_ms);
      if (lost) await this.#restore(held, mismatch[0], lost);
      else this.#correct(held, mismatch, accepts_loss);
    }
  }

  /** How long the log of a run with this end is kept. */
  keptAfter({ status }: RunEnd): number {
    const { ttl_ms, complete_ttl_ms } = this.#options;
    return status === 'complete' ? Math.min(complete_ttl_ms, ttl_ms) : ttl_ms;
  }

  /** This lease no longer delivers the run. */
  ended(held: RedisLease, state: 'finished' | 'fenced'): void {
    held.state = state;
    this.#held.delete(held);
    this.#strike(held);
  }

  /**
   * Like {@link ended}, for a log that another lease has taken. The run stays on the list until the reconciliation has
   * read its log: if Redis has come back with an older state, the other lease may be an earlier one of this replica
   * that no longer delivers anything.
   */
  #fenced(held: RedisLease): void {
    held.state = 'fenced';
    this.#held.delete(held);
    this.#forget(held);
  }

  /** Whether the log contains this lease's opening; undefined if Redis never acknowledged it. */
  async isOpened(lease: Lease): Promise<boolean | undefined> {
    const held = this.#known.get(lease);
    if (!held) return undefined;
    const id = openingId(lease.epoch);
    const [opening] = await this.#options.connection.ask((client) =>
      client.xrangeBuffer(logKey(lease.run), id, id, 'COUNT', 1),
    );
    return opening !== undefined && tokenOf(opening) === held.token;
  }

  /** Whether this replica holds the epoch, or may hold it. */
  delivers(listed: ListedRun): boolean {
    return this.#delivered.has(nameOf(listed));
  }

  /** Hands over a run that this replica holds but doesn't deliver, unless its log has changed since it was read. */
  async handBack({ run, opening, epoch, last_id, prefix }: LogReader): Promise<void> {
    if (!opening) return;
    const next = epoch + 1;
    await this.#options.lists.add({ list: releasedList(run), run, epoch: next });
    const { owner, takeovers } = opening;
    const line = encodeOpening({ run, owner, epoch: next, base: prefix.seq, takeovers }, this.#options.seal);
    await this.#writeOpening({ run, epoch: next, line, last_id, token: this.#newToken() });
  }

  /** Hands the run over if this lease still holds it. A failed attempt is repeated later. */
  async release(lease: Lease): Promise<void> {
    const held = this.#known.get(lease);
    if (!held) return;
    try {
      await this.inTurn(lease, () => this.#handOver(held));
    } catch (error) {
      this.#remember(held);
      throw error;
    }
  }

  /** Gives back leases whose release failed earlier. Those that fail again are kept for the next call. */
  returnLeases(): Promise<void> {
    this.#returning ??= this.#returnLeases().finally(() => {
      this.#returning = undefined;
    });
    return this.#returning;
  }

  async #returnLeases(): Promise<void> {
    const unreturned = [...this.#unreturned];
    for (let start = 0; start < unreturned.length; start += RETURNED_AT_ONCE) {
      const batch = unreturned.slice(start, start + RETURNED_AT_ONCE);
      const returned = await Promise.all(batch.map((held) => this.#tryToReturn(held)));
      // Redis itself is probably failing, so the remaining leases would only wait for the same failure.
      if (!returned.includes(true)) return;
    }
  }

  /** True if nothing is left to give back. Otherwise the lease moves to the end of the queue. */
  async #tryToReturn(held: RedisLease): Promise<boolean> {
    try {
      await this.#handOver(held);
      this.#unreturned.delete(held);
      return true;
    } catch {
      this.#remember(held);
      return false;
    }
  }

  async #handOver(held: RedisLease): Promise<void> {
    if (held.state !== 'held') return;
    const { run, owner, epoch } = held.lease;
    const next = epoch + 1;
    await this.#options.lists.add({ list: releasedList(run), run, epoch: next });
    const entry = () => {
      if (held.state !== 'held') return [];
      const opening = { run, owner, epoch: next, base: held.seq, takeovers: held.takeovers };
      return [`${openingId(next)} ${encodeOpening(opening, this.#options.seal)}`];
    };
    try {
      await this.write(held, entry, true);
    } catch (error) {
      // A lost lease or log leaves nothing to hand over.
      if (!(error instanceof StaleLeaseError || error instanceof JournalGapError)) throw error;
    }
    if (held.state === 'held') this.ended(held, 'fenced');
  }

  async #keep(held: RedisLease, now_ms: number): Promise<void> {
    const { connection, keep_ms } = this.#options;
    const { run, epoch } = held.lease;
    await connection.ask((client) =>
      client.holdfastKeep(logKey(run), String(epoch), held.token, String(keep_ms)),
    );
    held.kept_at_ms = now_ms;
    // A lease that has ended in the meantime isn't added again.
    if (this.#held.delete(held)) this.#held.add(held);
  }

  /** Writes lost entries again if the log still ends with `last_id`. Otherwise the next write attempt finds out. */
  async #restore(
    { lease, token }: RedisLease,
    last_id: string,
    { opening_line, entries }: Lost,
  ): Promise<void> {
    if (opening_line !== undefined) {
      await this.#options.lists.add(this.#listed(lease));
      await this.#writeOpening({ ...lease, line: opening_line, last_id, token });
    }
    const after = opening_line === undefined ? last_id : openingId(lease.epoch);
    if (entries.length > 0)
      await this.#writes.write({ log: logKey(lease.run), last_id: after, token, entries, kept_ms: 0 });
  }

  #correct(held: RedisLease, mismatch: Mismatch, accepts_loss: boolean): void {
    try {
      held.correct(mismatch);
      if (held.state === 'finished') this.#held.delete(held);
    } catch (error) {
      if (error instanceof StaleLeaseError) this.#fenced(held);
      if (!accepts_loss || !(error instanceof LostTailError)) throw error;
      held.accept(error);
    }
  }

  #remember(held: RedisLease): void {
    this.#unreturned.delete(held);
    const [oldest] = this.#unreturned;
    if (oldest && this.#unreturned.size >= UNRETURNED_MAX) {
      this.#unreturned.delete(oldest);
      this.#forget(oldest);
    }
    this.#unreturned.add(held);
  }

  /** Not awaited: a sweep removes entries that stay on the list by mistake. */
  #strike(held: RedisLease): void {
    if (this.#forget(held)) void this.#options.lists.remove(this.#listed(held.lease)).catch(ignore);
  }

  /** True if this was the last lease for its epoch. */
  #forget(held: RedisLease): boolean {
    if (!held.isListed) return false;
    held.isListed = false;
    const name = nameOf(this.#listed(held.lease));
    const left = (this.#delivered.get(name) ?? 1) - 1;
    if (left === 0) this.#delivered.delete(name);
    else this.#delivered.set(name, left);
    return left === 0;
  }

  /** Writes an epoch's opening if `last_id` is still the log's last entry. */
  #writeOpening(
    { run, epoch, line, last_id, token }: WrittenOpening,
    connection: RedisConnection = this.#options.connection,
  ): Promise<Mismatch | null> {
    const { keep_ms } = this.#options;
    return connection.ask((client) =>
      client.holdfastOpen(logKey(run), last_id, openingId(epoch), line, token, String(keep_ms)),
    );
  }

  /** Distinguishes two openings of the same epoch, after Redis has lost the first. */
  #newToken(): string {
    return `${this.#tokenPrefix}${(++this.#opened).toString(36)}`;
  }

  #listed({ run, epoch }: Lease): ListedRun {
    return { list: this.#options.replica, run, epoch };
  }
}

const nameOf = ({ run, epoch }: ListedRun): string => `${run}:${epoch}`;

const ignore = () => {};
