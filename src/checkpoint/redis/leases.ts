import { endTurn, takeTurn } from '../append-order.ts';
import { epochSeal, type Seal } from '../seal.ts';
import { JournalGapError, type Lease, type RunEnd, StaleLeaseError } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { logKey, RELEASED } from './keys.ts';
import { LostTailError, RedisLease } from './lease.ts';
import { encodeOpening, type LogReader, type Opening, openingId } from './log.ts';
import type { ListedRun, RedisRunLists } from './run-index.ts';
import type { Mismatch } from './scripts.ts';

/** The expiry of a log that is still written to is renewed when this part of its time is over. */
const KEEP_AFTER = 0.25;
/** How many leases that could not be given back may wait until Redis is reachable. */
const UNRETURNED_MAX = 10_000;
/** How many of them are given back at the same time. */
const RETURNED_AT_ONCE = 100;

export interface RedisLeasesOptions {
  readonly connection: RedisConnection;
  readonly lists: RedisRunLists;
  /** Of this replica. */
  readonly replica: string;
  readonly seal: Seal | undefined;
  readonly ttl_ms: number;
  /** Of a complete run. */
  readonly complete_ttl_ms: number;
}

/** The leases of one replica, and everything that is written under them. */
export class RedisLeases {
  readonly #options: RedisLeasesOptions;
  /** By identity: an epoch can be opened twice, when Redis has forgotten the first time. */
  readonly #known = new WeakMap<Lease, RedisLease>();
  readonly #unreturned = new Set<RedisLease>();
  /** Names of the epochs that this replica holds, or may hold: from before they are listed until they are struck off. */
  readonly #delivered = new Set<string>();
  #returning: Promise<void> | undefined;
  #opened = 0;

  constructor(options: RedisLeasesOptions) {
    this.#options = options;
  }

  /** In one step: opens the epoch if `last_id` is still the last entry of the log, and resolves with undefined if not. */
  async open(
    lease: Lease,
    last_id: string,
    after: Pick<Opening, 'base' | 'takeovers'>,
  ): Promise<Lease | undefined> {
    const { lists, replica, seal } = this.#options;
    const token = this.#newToken();
    const held = new RedisLease({
      lease,
      token,
      ...after,
      seal: epochSeal(seal, lease.run, lease.owner, lease.epoch),
      kept_at_ms: performance.now(),
    });
    const listed = this.#listed(lease);
    this.#delivered.add(nameOf(listed));
    try {
      await lists.add(listed);
    } catch (error) {
      this.#delivered.delete(nameOf(listed));
      throw error;
    }
    try {
      const mismatch = await this.#writeOpening({ ...lease, holder: replica, ...after }, last_id, token);
      // The client of a cluster may have sent it twice.
      if (mismatch && mismatch[1] !== token) {
        this.#strike(lease);
        return undefined;
      }
    } catch (error) {
      // Redis may have carried it out all the same: a forgotten lease would block the run.
      this.#remember(held);
      throw error;
    }
    this.#known.set(lease, held);
    return lease;
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
   * Writes what `compose` makes, ids and lines in turn, if the log ends as it should; when more is stored than was
   * known, `compose` is called again. `accepts_loss`: writes also behind a tail that was lost.
   * `kept_ms`: how long the log is kept from now on, where that is to change.
   */
  async write(
    held: RedisLease,
    compose: () => readonly string[],
    accepts_loss = false,
    kept_ms?: number,
  ): Promise<void> {
    const { connection, ttl_ms } = this.#options;
    const now_ms = performance.now();
    const isDue = now_ms - held.kept_at_ms >= KEEP_AFTER * ttl_ms;
    for (let entries = compose(); entries.length > 0; entries = compose()) {
      const mismatch = await connection.ask((client) =>
        client.holdfastWrite(
          logKey(held.lease.run),
          held.last_id,
          held.opening_id,
          held.token,
          String(kept_ms ?? (isDue ? ttl_ms : 0)),
          ...entries,
        ),
      );
      if (!mismatch) {
        if (isDue) held.kept_at_ms = now_ms;
        return;
      }
      this.#correct(held, mismatch, accepts_loss);
    }
  }

  /** How long the log of a run that ends in this way is kept, where that is less than of others. */
  keptAfter({ status }: RunEnd): number | undefined {
    const { ttl_ms, complete_ttl_ms } = this.#options;
    return status === 'complete' && complete_ttl_ms < ttl_ms ? complete_ttl_ms : undefined;
  }

  /** The run is no longer delivered under this lease. */
  ended(held: RedisLease, state: 'finished' | 'fenced'): void {
    held.state = state;
    this.#strike(held.lease);
  }

  /** Whether this replica holds that epoch, or may hold it. */
  delivers(listed: ListedRun): boolean {
    return this.#delivered.has(nameOf(listed));
  }

  /** Hands over a run that this replica holds and does not deliver, unless its log has changed since it was read. */
  async handBack({ run, opening, epoch, last_id, prefix }: LogReader): Promise<void> {
    if (!opening) return;
    const next = epoch + 1;
    await this.#options.lists.add({ list: RELEASED, run, epoch: next });
    const { owner, takeovers } = opening;
    await this.#writeOpening(
      { run, owner, epoch: next, base: prefix.seq, takeovers },
      last_id,
      this.#newToken(),
    );
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
    await this.#options.lists.add({ list: RELEASED, run, epoch: next });
    const entry = () => {
      if (held.state !== 'held') return [];
      const opening = { run, owner, epoch: next, base: held.seq, takeovers: held.takeovers };
      return [openingId(next), encodeOpening(opening, this.#options.seal)];
    };
    try {
      await this.write(held, entry, true);
    } catch (error) {
      // Then there is nothing to hand over.
      if (!(error instanceof StaleLeaseError || error instanceof JournalGapError)) throw error;
    }
    if (held.state === 'held') this.ended(held, 'fenced');
  }

  #correct(held: RedisLease, mismatch: Mismatch, accepts_loss: boolean): void {
    try {
      held.correct(mismatch);
    } catch (error) {
      if (error instanceof StaleLeaseError) this.#strike(held.lease);
      if (!accepts_loss || !(error instanceof LostTailError)) throw error;
      held.accept(error);
    }
  }

  #remember(held: RedisLease): void {
    this.#unreturned.delete(held);
    const [oldest] = this.#unreturned;
    if (oldest && this.#unreturned.size >= UNRETURNED_MAX) {
      this.#unreturned.delete(oldest);
      this.#delivered.delete(nameOf(this.#listed(oldest.lease)));
    }
    this.#unreturned.add(held);
  }

  /** Not waited for: a sweep finds out what stays in the list by mistake. */
  #strike(lease: Lease): void {
    const listed = this.#listed(lease);
    this.#delivered.delete(nameOf(listed));
    void this.#options.lists.remove(listed).catch(ignore);
  }

  /** Writes the opening of an epoch if `last_id` is still the last entry of the log. */
  #writeOpening(opening: Opening, last_id: string, token: string): Promise<Mismatch | null> {
    const { connection, seal, ttl_ms } = this.#options;
    const { run, epoch } = opening;
    const line = encodeOpening(opening, seal);
    return connection.ask((client) =>
      client.holdfastOpen(logKey(run), last_id, openingId(epoch), line, token, String(ttl_ms)),
    );
  }

  #newToken(): string {
    return `${this.#options.replica}.${++this.#opened}`;
  }

  #listed({ run, epoch }: Lease): ListedRun {
    return { list: this.#options.replica, run, epoch };
  }
}

const nameOf = ({ run, epoch }: ListedRun): string => `${run}:${epoch}`;

const ignore = () => {};
