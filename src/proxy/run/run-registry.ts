import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { ClientConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import { MemoryBudget, type MemoryShare } from '../../lib/memory-budget.ts';
import { inTime, sleep, type Time } from '../../lib/time.ts';
import { HAND_OVER, LEFT } from './context/run.ts';

/** Memory for delivering an answer, besides its request and content. */
const RUN_BYTES = 102_400;

/** The active runs on this replica: for its caps, for cancelling one, and for handing all of them over on shutdown. */
export class RunRegistry {
  /** How many active runs one owner may have on this replica; changes apply to later runs. */
  runs_per_owner: number;
  readonly #active = new Set<ActiveRun>();
  /** By {@link ActiveRun.counted}. */
  readonly #counts = new Map<string, number>();
  readonly #held = new Map<RunId, ActiveRun>();
  readonly #counter: RunCounter = {
    onAnswered: ({ counted }) => this.#uncount(counted),
    onEnd: (active) => this.#active.delete(active),
  };

  constructor({ runs_per_owner }: { readonly runs_per_owner: number }) {
    this.runs_per_owner = runs_per_owner;
  }

  /**
   * Begins a run, which counts until it is answered or ends. `memory`: holds the request, and from now on the answer.
   * Throws `too_many_runs` and `memory_exhausted`.
   */
  begin(
    owner: Owner,
    client?: Pick<ClientConfiguration, 'name' | 'runs'>,
    memory: MemoryShare = new MemoryBudget().share(),
  ): ActiveRun {
    const { counted, limit, setting } =
      client?.runs === undefined
        ? { counted: owner, limit: this.runs_per_owner, setting: 'limits.runs_per_owner' }
        : { counted: `client ${client.name}`, limit: client.runs, setting: 'clients[].runs' };
    const count = this.#counts.get(counted) ?? 0;
    if (count >= limit) throw apiError('too_many_runs', { limit, setting });
    memory.beginAnswer(RUN_BYTES);
    this.#counts.set(counted, count + 1);
    const active = new ActiveRun(owner, memory, this.#counter, client?.name, counted);
    this.#active.add(active);
    return active;
  }

  /** Marks the run as held by this replica, so that salvage ignores it until `active` ends. */
  hold(run: RunId, active: ActiveRun): void {
    this.#held.set(run, active);
    void active.ended.then(() => {
      if (this.#held.get(run) === active) this.#held.delete(run);
    });
  }

  /** The active delivery of the run on this replica, if any. */
  holder(run: RunId): ActiveRun | undefined {
    return this.#held.get(run);
  }

  /** Hands all active runs over. Resolves when they have ended, or after `limit_ms`. */
  async handOver(time: Time, limit_ms: number): Promise<void> {
    const active = [...this.#active];
    for (const run of active) run.handOver();
    await inTime(Promise.all(active.map(({ ended }) => ended)), time, limit_ms);
  }

  #uncount(counted: string): void {
    const count = (this.#counts.get(counted) ?? 1) - 1;
    if (count > 0) this.#counts.set(counted, count);
    else this.#counts.delete(counted);
  }
}

/** Every run ends with this reason. A symbol is cheaper than an exception with its stack. */
const CANCELLED = Symbol('cancelled');

/** How long a run continues without its client. */
export interface DetachTimeout {
  readonly time: Time;
  readonly detached_ms: number;
  /** Whether another client reads the run on any replica, which restarts the timeout. */
  isRead(run: RunId, owner: Owner): Promise<boolean>;
  /** Called whenever the timeout starts. */
  onDetached(run: RunId, owner: Owner): void;
}

/** Counts active runs. */
interface RunCounter {
  /** Called once, when the client no longer waits for the run. */
  onAnswered(run: ActiveRun): void;
  /** Called once, after {@link onAnswered}, when no work for the run is left. */
  onEnd(run: ActiveRun): void;
}

/** One active run on this replica, from its request until it is stored, and the ways to end it early. */
export class ActiveRun {
  readonly owner: Owner;
  /** The memory of its request and answer. */
  readonly memory: MemoryShare;
  /** The configured name of its client, if any. */
  readonly client: string | undefined;
  /** The key of its cap: its owner, or a client with its own limit. */
  readonly counted: string;
  /** Resolves once the run is over. */
  readonly ended: Promise<void>;
  /** Set while the client has left an unfinished answer; settles once the store has the note about it. */
  leaving: Promise<void> | undefined;
  readonly #over = new AbortController();
  readonly #counter: RunCounter;
  readonly #resolveEnded: () => void;
  #isAnswered: boolean = false;
  #outlives: { readonly run: RunId; readonly grace: DetachTimeout } | undefined;

  constructor(
    owner: Owner,
    memory: MemoryShare,
    counter: RunCounter,
    client?: string,
    counted: string = owner,
  ) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.owner = owner;
    this.memory = memory;
    this.client = client;
    this.counted = counted;
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#counter = counter;
    memory.hold();
  }

  /** Aborts when no client waits for the answer; the reason is `LEFT` if the client disconnected, or `HAND_OVER`. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The client has the whole answer, or no longer waits for it. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Lets the run continue for a while after its client disconnects, because the client asked for a resumable run. */
  outlive(run: RunId, grace: DetachTimeout): void {
    this.#outlives = { run, grace };
  }

  /** The client disconnected before everything was sent. */
  leave(): void {
    if (this.#outlives) void this.#detached(this.#outlives.run, this.#outlives.grace);
    else this.#over.abort(LEFT);
  }

  /** The run is no longer wanted. */
  cancel(): void {
    this.#over.abort(CANCELLED);
  }

  handOver(): void {
    this.#over.abort(HAND_OVER);
  }

  /** The client has the whole answer. The store may take longer. */
  answered(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#counter.onAnswered(this);
  }

  end(): void {
    this.cancel();
    this.answered();
    this.memory.release();
    this.#counter.onEnd(this);
    this.#resolveEnded();
  }

  async #detached(run: RunId, { time, detached_ms, isRead, onDetached }: DetachTimeout): Promise<void> {
    if (this.signal.aborted) return;
    do {
      onDetached(run, this.owner);
      await sleep(time, detached_ms, this.signal);
    } while (!this.signal.aborted && (await isRead(run, this.owner)));
    this.#over.abort(LEFT);
  }
}
