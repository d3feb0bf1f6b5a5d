import { randomNumbers } from '../../../bench/soak/random.ts';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { logKey } from '../../../src/checkpoint/redis/keys.ts';
import type { StoredRun } from '../../../src/checkpoint/store.ts';
import { OWNER, RUN } from '../simulate.ts';
import { VirtualTime } from '../virtual-time.ts';
import type { Fault, History } from './history.ts';
import { Replica } from './replica.ts';
import { firstClient, type SimulatedClient, secondReader } from './simulated-client.ts';
import { SimulatedRedis } from './simulated-redis.ts';
import { WordProvider } from './word-provider.ts';

/** The interval of the snapshots from which the server may restart. */
const SNAPSHOT_EVERY_MS = 50;
/** How many snapshots are kept. */
const SNAPSHOTS_MAX = 50;
/** How long a stored run may take to end once no client is waiting for it. */
const SETTLE_MAX_MS = 60_000;
const SETTLE_POLL_MS = 250;
/** A replica whose store has failed may wait this long before it tries again. */
const ASKS_AGAIN_MS = 3500;

/** The results of a history. */
export interface Consequences {
  readonly history: History;
  readonly clients: readonly SimulatedClient[];
  /** The final state of the run, and of the runs that continue it. */
  readonly stored: ReadonlyMap<string, StoredRun>;
  /** The times at which Redis lost acknowledged data. */
  readonly losses_ms: readonly number[];
  /** Redis has at some time lost the whole run. */
  readonly isForgotten: boolean;
  /** The events of each run, in order, that the store has acknowledged and not lost since. */
  readonly acknowledged: ReadonlyMap<string, readonly (string | undefined)[]>;
  readonly requests: number;
  /** Errors that should not have been thrown. */
  readonly errors: readonly unknown[];
  readonly elapsed_ms: number;
}

/** Several replicas, one Redis, one provider, and all their faults, in virtual time. */
export class Deployment {
  readonly time = new VirtualTime();
  readonly history: History;
  readonly provider: WordProvider;
  readonly errors: unknown[] = [];
  readonly redis: SimulatedRedis;
  readonly random: () => number;
  #replicas: Replica[] = [];
  #snapshots: { readonly at_ms: number; readonly kept: ReturnType<SimulatedRedis['snapshot']> }[] = [];
  #clients: SimulatedClient[] = [];
  #isForgotten: boolean = false;
  readonly #acknowledged = new Map<string, string[]>();

  constructor(history: History) {
    this.history = history;
    this.provider = new WordProvider(history.plan);
    this.redis = new SimulatedRedis(() => this.time.now());
    this.random = randomNumbers(history.seed);
  }

  /** The current process at this index. */
  replica(index: number): Replica {
    const { replicas } = this.history;
    const replica = this.#replicas[index % replicas];
    if (!replica) throw new Error(`there is no replica ${index}`);
    return replica;
  }

  /** Records that the store has acknowledged these events. */
  acknowledged(run: string, records: readonly JournalRecord[]): void {
    const known = this.#acknowledged.get(run) ?? [];
    this.#acknowledged.set(run, known);
    for (const { seq, events } of records)
      for (const [index, { deltas }] of events.entries())
        known[seq - events.length + index] = JSON.stringify(deltas);
  }

  run(): Promise<Consequences> {
    return this.time.drive(this.#run(), 10 * 60_000);
  }

  async #run(): Promise<Consequences> {
    const { history, time, errors } = this;
    const { replicas, faults, readers } = history;
    for (let index = 0; index < replicas; index++) await this.#start(index);
    if (faults.some(({ kind }) => kind === 'restart')) this.#keepSnapshots();
    for (const fault of faults) time.after(fault.at_ms, () => this.#fail(fault));
    const first = firstClient(this);
    this.#clients = [first, ...readers.map((reader) => secondReader(this, reader))];
    await Promise.all(this.#clients.map((client) => client.over));
    const stored = await this.#settled();
    return {
      history,
      clients: this.#clients,
      stored,
      losses_ms: this.redis.losses_ms,
      isForgotten: this.#isForgotten,
      acknowledged: this.#acknowledged,
      requests: this.provider.requests,
      errors,
      elapsed_ms: time.now(),
    };
  }

  async #start(index: number): Promise<void> {
    const replica = new Replica(this, index);
    this.#replicas[index] = replica;
    await replica.start();
  }

  #fail(fault: Fault): void {
    if (fault.kind === 'disconnect') this.#clients[0]?.disconnect(fault.away_ms);
    else if (fault.kind === 'restart') this.#restart(fault);
    else this.#disturb(this.replica(fault.replica), fault);
  }

  #disturb(replica: Replica, fault: Exclude<Fault, { kind: 'disconnect' | 'restart' }>): void {
    const { process, redisClient } = replica;
    switch (fault.kind) {
      case 'pause':
        process.stop(fault.for_ms, fault.readsFirst);
        break;
      case 'kill':
        replica.kill();
        this.#replace(fault.replica, fault.for_ms);
        break;
      case 'drain':
        void replica.drain();
        this.#replace(fault.replica, fault.for_ms);
        break;
      case 'partition':
        redisClient.cut();
        this.time.after(fault.for_ms, () => redisClient.heal());
        break;
      case 'delay':
        redisClient.slow(fault.latency_ms);
        this.time.after(fault.for_ms, () => redisClient.slow());
        break;
      case 'lost_reply':
        redisClient.loseReplies();
    }
  }

  #replace(index: number, after_ms: number): void {
    const start = () => this.#start(index % this.history.replicas).catch((error) => this.errors.push(error));
    this.time.after(after_ms, () => void start());
  }

  #keepSnapshots(): void {
    this.#snapshots.push({ at_ms: this.time.now(), kept: this.redis.snapshot() });
    if (this.#snapshots.length > SNAPSHOTS_MAX) this.#snapshots.shift();
    this.time.after(SNAPSHOT_EVERY_MS, () => this.#keepSnapshots());
  }

  #restart({ for_ms, lost_ms }: Extract<Fault, { kind: 'restart' }>): void {
    const { redis, time } = this;
    if (redis.isDown) return;
    redis.isDown = true;
    redis.start++;
    for (const { redisClient } of this.#replicas) redisClient.reset();
    time.after(for_ms, () => {
      redis.isDown = false;
      const until_ms = time.now() - for_ms - lost_ms;
      const snapshot = this.#snapshots.findLast(({ at_ms }) => at_ms <= until_ms) ?? this.#snapshots[0];
      if (lost_ms === 0 || !snapshot) return;
      this.#isForgotten ||= !snapshot.kept.has(logKey(RUN));
      redis.restore(snapshot.kept);
      this.#acknowledged.clear();
    });
  }

  /** Waits until replicas that could not reach the server have had time to store the rest of their runs. */
  async #reached(): Promise<void> {
    const { time, history } = this;
    const reached_ms = history.faults.map((fault) =>
      fault.kind === 'partition' || fault.kind === 'delay' ? fault.at_ms + fault.for_ms + ASKS_AGAIN_MS : 0,
    );
    const wait_ms = Math.max(0, ...reached_ms) - time.now();
    if (wait_ms > 0) await new Promise<void>((resolve) => time.after(wait_ms, resolve));
  }

  /** The stored runs, once they have all ended. */
  async #settled(): Promise<ReadonlyMap<string, StoredRun>> {
    await this.#reached();
    const observer = new Replica(this, 0);
    await observer.store.start({ required: false });
    const until_ms = this.time.now() + SETTLE_MAX_MS;
    // A fork may exist in the store even if its client had left before it was stored.
    const known = this.#clients.flatMap(({ runs }) => [...runs]);
    const runs = new Set<string>([RUN, ...known, ...this.#acknowledged.keys()]);
    for (;;) {
      const stored = new Map<string, StoredRun>();
      let isRead = true;
      for (const run of runs) {
        const found = await observer.store.read(run as typeof RUN, OWNER, 0).catch(() => {
          isRead = false;
        });
        if (found) stored.set(run, found);
      }
      const isSettled = isRead && [...stored.values()].every(({ status }) => status !== 'running');
      if (isSettled || this.time.now() >= until_ms) return stored;
      await new Promise<void>((resolve) => this.time.after(SETTLE_POLL_MS, resolve));
    }
  }
}
