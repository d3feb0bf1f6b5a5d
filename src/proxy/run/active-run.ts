import type { Owner, RunId } from '../../checkpoint/store.ts';
import { sleep, type Time } from '../../lib/time.ts';
import { HAND_OVER, LEFT } from './context/run.ts';

/** Every run ends with it: a reason of our own spares each of them an exception with its stack. */
const CANCELLED = Symbol('cancelled');

/** How long a run goes on without its client. */
export interface DetachTimeout {
  readonly time: Time;
  readonly detached_ms: number;
  /** Whether somebody reads the run meanwhile, here or elsewhere: then the time starts again. */
  isRead(run: RunId, owner: Owner): Promise<boolean>;
}

/** What those who count runs are told. */
export interface RunCounter {
  /** Called once: the client waits for nothing of the run any more. */
  onAnswered(): void;
  /** Called once, after {@link onAnswered}: nothing of the run is under way any more. */
  onEnd(): void;
}

/** One run under way on this replica, from the request until it is stored, and what ends it early. */
export class ActiveRun {
  readonly owner: Owner;
  /** Resolves once all of it is over. */
  readonly ended: Promise<void>;
  readonly #over = new AbortController();
  readonly #counter: RunCounter;
  readonly #resolveEnded: () => void;
  #isAnswered: boolean = false;
  #outlives: { readonly run: RunId; readonly grace: DetachTimeout } | undefined;

  constructor(owner: Owner, counter: RunCounter) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.owner = owner;
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#counter = counter;
  }

  /** Aborts when no client waits for the answer any more, with `LEFT` as its reason where its client has gone, or with `HAND_OVER`. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** From now on the run goes on for a while when its client leaves: it asked to be resumable. */
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
    this.#counter.onAnswered();
  }

  end(): void {
    this.cancel();
    this.answered();
    this.#counter.onEnd();
    this.#resolveEnded();
  }

  async #detached(run: RunId, { time, detached_ms, isRead }: DetachTimeout): Promise<void> {
    do await sleep(time, detached_ms, this.signal);
    while (!this.signal.aborted && (await isRead(run, this.owner)));
    this.#over.abort(LEFT);
  }
}
