import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import type { Notes } from '../../src/checkpoint/notes.ts';
import type { RunIndex } from '../../src/checkpoint/run-index.ts';
import type { Lease, Orphan, Owner, RunEnd, RunId, Store, StoredRun } from '../../src/checkpoint/store.ts';
import { sleep, type Time } from '../../src/lib/time.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/proxy/upstream/transport.ts';

/** One replica's life. When it ends, nothing that the replica started ever returns to it, as after SIGKILL. */
export class Life {
  readonly #over = new AbortController();

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  get end(): AbortSignal {
    return this.#over.signal;
  }

  kill(): void {
    this.#over.abort();
  }

  /** The result of `work`; never settles if the replica dies first. */
  async within<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.isOver) return never();
    try {
      const result = await work();
      return this.isOver ? never() : result;
    } catch (error) {
      if (this.isOver) return never();
      throw error;
    }
  }
}

const never = (): Promise<never> => new Promise(() => {});

/** A clock that stops for the replica when its life ends. */
export class MortalTime implements Time {
  readonly #time: Time;
  readonly #life: Life;

  constructor(time: Time, life: Life) {
    this.#time = time;
    this.#life = life;
  }

  now(): number {
    return this.#time.now();
  }

  wall(): number {
    return this.#time.wall();
  }

  after(delay_ms: number, callback: () => void): () => void {
    return this.#time.after(delay_ms, () => {
      if (!this.#life.isOver) callback();
    });
  }
}

/** One replica's transport to the provider. `pace_ms` is the pause between two pieces of a body. */
export class MortalTransport implements Transport {
  readonly #transport: Transport;
  readonly #life: Life;
  readonly #pace: { readonly time: Time; readonly pace_ms: number };
  readonly #onOpen: () => void;

  constructor(
    transport: Transport,
    life: Life,
    pace: { readonly time: Time; readonly pace_ms: number },
    onOpen: () => void,
  ) {
    this.#transport = transport;
    this.#life = life;
    this.#pace = pace;
    this.#onOpen = onOpen;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const { time, pace_ms } = this.#pace;
    // A request without a body resumes or stops an existing answer, so it isn't a new one.
    if (!this.#life.isOver && request.body !== undefined) this.#onOpen();
    const { body, ...response } = await this.#life.within(() => this.#transport.open(request));
    return {
      ...response,
      body: {
        consume: (take) =>
          this.#life.within(() =>
            body.consume(async (piece) => {
              if (pace_ms > 0) await this.#life.within(() => sleep(time, pace_ms, request.signal));
              await this.#life.within(async () => take(piece));
            }),
          ),
      },
    };
  }

  async close(): Promise<void> {}
}

/** Dies at an append, before or after the store has it, and always before the replica knows. */
export interface DeathAtAppend {
  readonly append: number;
  readonly stored: boolean;
}

/** One replica's view of a store. */
export class MortalStore implements Store {
  readonly #store: Store;
  readonly #life: Life;
  readonly #death: DeathAtAppend | undefined;
  #appends = 0;

  constructor(store: Store, life: Life, death?: DeathAtAppend) {
    this.#store = store;
    this.#life = life;
    this.#death = death;
    life.end.addEventListener('abort', () => void store.close());
  }

  get name(): Store['name'] {
    return this.#store.name;
  }

  get notes(): Notes {
    return this.#store.notes;
  }

  get index(): RunIndex {
    return this.#store.index;
  }

  acquire(run: RunId, owner: Owner, after?: number): Promise<Lease> {
    return this.#life.within(() => this.#store.acquire(run, owner, after));
  }

  append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    const dies = ++this.#appends === this.#death?.append;
    if (dies && !this.#death?.stored) this.#life.kill();
    return this.#life.within(async () => {
      const seq = await this.#store.append(lease, records);
      if (dies) this.#life.kill();
      return seq;
    });
  }

  finish(lease: Lease, end: RunEnd): Promise<void> {
    return this.#life.within(() => this.#store.finish(lease, end));
  }

  release(lease: Lease): Promise<void> {
    return this.#life.within(() => this.#store.release(lease));
  }

  purge(run: RunId, owner: Owner): Promise<void> {
    return this.#life.within(() => this.#store.purge(run, owner));
  }

  read(run: RunId, owner: Owner, from: number): Promise<StoredRun | null> {
    return this.#life.within(() => this.#store.read(run, owner, from));
  }

  orphans(limit: number): Promise<readonly Orphan[]> {
    return this.#life.within(() => this.#store.orphans(limit));
  }

  check(): Promise<void> {
    return this.#life.within(() => this.#store.check());
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
