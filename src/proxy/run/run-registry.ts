import type { Owner, RunId } from '../../checkpoint/store.ts';
import type { ClientConfiguration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import { MemoryBudget, type MemoryShare } from '../../lib/memory-budget.ts';
import { inTime, sleep, type Time } from '../../lib/time.ts';
import { HAND_OVER, LEFT } from './context/run.ts';

/** What the delivery of an answer takes, besides its request and what is said. */
const RUN_BYTES = 102_400;

/** The runs under way on this replica: for its caps, to cancel one, and to hand all of them over in the end. */
export class RunRegistry {
  /** How many runs one owner may be delivered here at once; a change applies to runs that begin after it. */
  runs_per_owner: number;
  readonly #active = new Set<ActiveRun>();
  /** By what {@link ActiveRun.counted} says. */
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
   * A run that counts until it is answered, or ended. `memory`: what the request holds, and from now on its answer.
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

  /** The run is delivered here from now on: salvage leaves it alone while `active` lasts. */
  hold(run: RunId, active: ActiveRun): void {
    this.#held.set(run, active);
    void active.ended.then(() => {
      if (this.#held.get(run) === active) this.#held.delete(run);
    });
  }

  /** The delivery of the run on this replica, if there is one. */
  holder(run: RunId): ActiveRun | undefined {
    return this.#held.get(run);
  }

  /** Hands over what is under way. Resolves when all of it has ended, or after `limit_ms`. */
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

/** Every run ends with it: a reason of our own spares each of them an exception with its stack. */
const CANCELLED = Symbol('cancelled');

/** How long a run continues without its client. */
export interface DetachTimeout {
  readonly time: Time;
  readonly detached_ms: number;
  /** Whether another client reads the run meanwhile, here or elsewhere: then the time starts again. */
  isRead(run: RunId, owner: Owner): Promise<boolean>;
  /** Called whenever the time starts. */
  onDetached(run: RunId, owner: Owner): void;
}

/** Counts the runs that are under way. */
interface RunCounter {
  /** Called once: the client waits for nothing of the run any more. */
  onAnswered(run: ActiveRun): void;
  /** Called once, after {@link onAnswered}: nothing of the run is under way any more. */
  onEnd(run: ActiveRun): void;
}

/** One run under way on this replica, from the request until it is stored, and what ends it early. */
export class ActiveRun {
  readonly owner: Owner;
  /** What its request and its answer hold, on behalf of its client. */
  readonly memory: MemoryShare;
  /** The name of its client, where the configuration has one for it. */
  readonly client: string | undefined;
  /** Among whose runs it counts: those of its owner, or of a client with a limit of its own. */
  readonly counted: string;
  /** Resolves once all of it is over. */
  readonly ended: Promise<void>;
  /** While no client waits although the answer is not over: settles when the store has the note of that. */
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

  /** Aborts when no client waits for the answer any more, with `LEFT` as its reason where its client has gone, or with `HAND_OVER`. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The client has its whole answer, or waits for none any more. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** From now on the run continues for a while when its client leaves: it asked to be resumable. */
  outlive(run: RunId, grace: DetachTimeout): void {
    this.#outlives = { run, grace };
  }

  /** The client has gone before it was sent everything. */
  leave(): void {
    if (this.#outlives) void this.#detached(this.#outlives.run, this.#outlives.grace);
    else this.#over.abort(LEFT);
  }

  /** It is not wanted any more. */
  cancel(): void {
    this.#over.abort(CANCELLED);
  }

  handOver(): void {
    this.#over.abort(HAND_OVER);
  }

  /** The client has its whole answer. The store may take a while longer. */
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
