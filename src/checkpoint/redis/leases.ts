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

/** The expiry of the log of a run under way is renewed when this part of its time is over. */
const KEEP_AFTER = 0.25;
/** Of the id of a replica, so many digits are part of what is sent with every write. */
const REPLICA_DIGITS = 8;
/** How many leases that could not be given back may wait until Redis is reachable. */
const UNRETURNED_MAX = 10_000;
/** How many of them are given back at the same time. */
const RETURNED_AT_ONCE = 100;

export interface RedisLeasesOptions {
  readonly connection: RedisConnection;
  /** Through which epochs are opened, where they have to reach replicas of Redis. */
  readonly replication?: Replication | undefined;
  readonly lists: RedisRunLists;
  /** Of this replica. */
  readonly replica: string;
  readonly seal: Seal | undefined;
  /** How long the log of a run under way lives without a replica that keeps it. */
  readonly keep_ms: number;
  /** Of a run that has ended. */
  readonly ttl_ms: number;
  /** Of a complete one. */
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

/** The leases of one replica, and everything that is written under them. */
export class RedisLeases {
  readonly #options: RedisLeasesOptions;
  readonly #writes: LogWrites;
  /** By identity: an epoch can be opened twice, when Redis has forgotten the first time. */
  readonly #known = new WeakMap<Lease, RedisLease>();
  /** Those whose logs have to be kept, the one that was kept the longest ago first. */
  readonly #held = new Set<RedisLease>();
  #isKeeping: boolean = false;
  readonly #unreturned = new Set<RedisLease>();
  /**
   * For each epoch that this replica holds, or may hold, by how many leases: from before it is listed until it is struck
   * off. A second lease for the same epoch is refused in the end, and must not strike off the first.
   */
  readonly #delivered = new Map<string, number>();
  #returning: Promise<void> | undefined;
  /** Of the tokens of this replica. */
  readonly #tokenPrefix: string;
  #opened = 0;

  constructor(options: RedisLeasesOptions) {
    this.#options = options;
    this.#writes = new LogWrites(options.connection);
    this.#tokenPrefix = `${options.replica.slice(0, REPLICA_DIGITS)}.`;
  }

  /** In one step: opens the epoch if `last_id` is still the last entry of the log, and resolves with undefined if not. */
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
      // The client of a cluster may have sent it twice.
      if (mismatch && mismatch[1] !== token) {
        this.#strike(held);
        return undefined;
      }
    } catch (error) {
      // Redis may have carried it out all the same: a forgotten lease would block the run.
      this.#remember(held);
      throw error;
    }
    if (lease.epoch === FIRST_EPOCH) held.opening_line = line;
    this.#known.set(lease, held);
    this.#held.add(held);
    return lease;
  }

  /** Keeps the logs of all runs under way for which it is time, however long nothing was appended. Never rejects. */
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

  /** Calls `action` when everything that was asked for under the lease before is done. */
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
   * Writes what `compose` makes, of each entry its id, a space and its line, if the log ends as it should; when more is
   * stored than was known, or less, `compose` is called again. `accepts_loss`: writes also behind a tail that was lost.
   * `kept_ms`: how long the log is kept from now on, where that is to change.
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

  /** How long the log of a run that ends in this way is kept. */
  keptAfter({ status }: RunEnd): number {
    const { ttl_ms, complete_ttl_ms } = this.#options;
    return status === 'complete' ? Math.min(complete_ttl_ms, ttl_ms) : ttl_ms;
  }

  /** The run is no longer delivered under this lease. */
  ended(held: RedisLease, state: 'finished' | 'fenced'): void {
    held.state = state;
    this.#held.delete(held);
    this.#strike(held);
  }

  /**
   * The same where the log is another's. It stays in the list until the reconciliation has read its log: where Redis has come back
   * with an older state, the other is an earlier lease of this replica, which nothing delivers any more.
   */
  #fenced(held: RedisLease): void {
    held.state = 'fenced';
    this.#held.delete(held);
    this.#forget(held);
  }

  /** Whether the log has the opening of this lease; undefined where Redis never acknowledged that there is one. */
  async isOpened(lease: Lease): Promise<boolean | undefined> {
    const held = this.#known.get(lease);
    if (!held) return undefined;
    const id = openingId(lease.epoch);
    const [opening] = await this.#options.connection.ask((client) =>
      client.xrangeBuffer(logKey(lease.run), id, id, 'COUNT', 1),
    );
    return opening !== undefined && tokenOf(opening) === held.token;
  }

  /** Whether this replica holds that epoch, or may hold it. */
  delivers(listed: ListedRun): boolean {
    return this.#delivered.has(nameOf(listed));
  }

  /** Hands over a run that this replica holds and does not deliver, unless its log has changed since it was read. */
  async handBack({ run, opening, epoch, last_id, prefix }: LogReader): Promise<void> {
    if (!opening) return;
    const next = epoch + 1;
    await this.#options.lists.add({ list: releasedList(run), run, epoch: next });
    const { owner, takeovers } = opening;
    const line = encodeOpening({ run, owner, epoch: next, base: prefix.seq, takeovers }, this.#options.seal);
    await this.#writeOpening({ run, epoch: next, line, last_id, token: this.#newToken() });
  }

  /** Hands the run over if this lease still holds it; when that fails, it is made up for later. */
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

  /** Gives back what could not be given back when it should have been; what fails now is left for another time. */
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
      // Most likely it is Redis that does not work, and the others would only wait for the same failure.
      if (!returned.includes(true)) return;
    }
  }

  /** True when there is nothing left to give back. Otherwise all others have their turn before this one. */
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
      // Then there is nothing to hand over.
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
    // What has ended meanwhile is kept no longer.
    if (this.#held.delete(held)) this.#held.add(held);
  }

  /** Writes again what Redis has lost, if the log still ends with `last_id`; otherwise the next attempt to write tells. */
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

  /** Not waited for: a sweep finds out what stays in the list by mistake. */
  #strike(held: RedisLease): void {
    if (this.#forget(held)) void this.#options.lists.remove(this.#listed(held.lease)).catch(ignore);
  }

  /** True when it was the last lease for its epoch. */
  #forget(held: RedisLease): boolean {
    if (!held.isListed) return false;
    held.isListed = false;
    const name = nameOf(this.#listed(held.lease));
    const left = (this.#delivered.get(name) ?? 1) - 1;
    if (left === 0) this.#delivered.delete(name);
    else this.#delivered.set(name, left);
    return left === 0;
  }

  /** Writes the opening of an epoch if `last_id` is still the last entry of the log. */
  #writeOpening(
    { run, epoch, line, last_id, token }: WrittenOpening,
    connection: RedisConnection = this.#options.connection,
  ): Promise<Mismatch | null> {
    const { keep_ms } = this.#options;
    return connection.ask((client) =>
      client.holdfastOpen(logKey(run), last_id, openingId(epoch), line, token, String(keep_ms)),
    );
  }

  /** Tells one opening of an epoch from another one, after Redis has forgotten the first. */
  #newToken(): string {
    return `${this.#tokenPrefix}${(++this.#opened).toString(36)}`;
  }

  #listed({ run, epoch }: Lease): ListedRun {
    return { list: this.#options.replica, run, epoch };
  }
}

const nameOf = ({ run, epoch }: ListedRun): string => `${run}:${epoch}`;

const ignore = () => {};
