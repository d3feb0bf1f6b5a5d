import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import { sleep, systemTime, type Time } from '../lib/time.ts';
import { type WorkerOptions, WorkerProcess } from './worker-process.ts';

/** Delay before replacing a worker that died soon after its start, doubled for each further one. */
const BACKOFF_MS = 200;
const BACKOFF_MAX_MS = 10_000;
/** A worker that lived longer didn't die at its start. */
const STABLE_MS = 30_000;

interface PoolHandlers {
  /** The worker serves. */
  onStart(worker: WorkerProcess): void;
  /** The set of serving workers has changed. */
  onChange(): void;
  onEnd(worker: WorkerProcess): void;
}

/** Replaced in tests. */
interface PoolSurroundings {
  readonly time?: Time;
  readonly begin?: (options: WorkerOptions) => WorkerProcess;
}

/** Keeps a number of workers alive and replaces each that ends. */
export class WorkerPool {
  /** Rejects with the last worker's error if none lives and none can start. */
  readonly failure: Promise<never>;
  readonly #fail: (error: Error) => void;
  readonly #count: number;
  readonly #log: Logger;
  readonly #handlers: PoolHandlers;
  readonly #time: Time;
  readonly #begin: (options: WorkerOptions) => WorkerProcess;
  /** Contains the workers' sockets; only this user may read it. */
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-'));
  readonly #alive = new Map<number, WorkerProcess>();
  /** Numbers of workers that ended before they could serve, until a successor serves. */
  readonly #unable = new Set<number>();
  readonly #stopping = new AbortController();

  constructor(
    count: number,
    log: Logger,
    handlers: PoolHandlers,
    { time = systemTime, begin = (options) => new WorkerProcess(options) }: PoolSurroundings = {},
  ) {
    this.#count = count;
    this.#log = log;
    this.#handlers = handlers;
    this.#time = time;
    this.#begin = begin;
    const { promise, reject } = Promise.withResolvers<never>();
    this.failure = promise;
    this.failure.catch(() => {});
    this.#fail = reject;
    process.once('exit', () => rmSync(this.#directory, { recursive: true, force: true }));
  }

  get serving(): readonly WorkerProcess[] {
    return [...this.#alive.values()].filter(({ isListening }) => isListening);
  }

  /**
   * Resolves once each number has had a worker that served or failed, and at least one serves. Rejects if none can.
   * `configuration`: the current one whenever a worker starts.
   */
  async start(configuration: () => Configuration): Promise<void> {
    const first = Array.from({ length: this.#count }, (_, index) => {
      const begun = Promise.withResolvers<void>();
      void this.#keep(index + 1, configuration, begun.resolve);
      return begun.promise;
    });
    await Promise.race([Promise.all(first), this.failure]);
    if (this.serving.length === 0) await this.failure;
  }

  /** Drains all workers. Resolves once they have ended. */
  async stop(drain_ms: number): Promise<void> {
    this.#stopping.abort();
    for (const worker of this.#alive.values()) worker.stop({ isLeaving: false, drain_ms });
    await Promise.all(Array.from(this.#alive.values(), ({ exited }) => exited));
  }

  kill(): void {
    this.#stopping.abort();
    for (const worker of this.#alive.values()) worker.kill();
  }

  /** Runs one worker after another. `onBegun`: called after the first one has served or failed. */
  async #keep(number: number, configuration: () => Configuration, onBegun: () => void): Promise<void> {
    const { signal } = this.#stopping;
    for (let deaths = 0; !signal.aborted; ) {
      const worker = this.#begin({ number, directory: this.#directory, configuration: configuration() });
      const began_ms = this.#time.now();
      this.#alive.set(number, worker);
      const fault = await worker.started.then(
        () => undefined,
        (error: Error) => error,
      );
      if (fault) this.#unable.add(number);
      else this.#serves(worker);
      onBegun();
      const { code, signal: killer } = await worker.exited;
      this.#alive.delete(number);
      this.#handlers.onEnd(worker);
      if (signal.aborted) return;
      if (fault && this.#unable.size === this.#count) return this.#fail(fault);
      this.#handlers.onChange();
      // A worker that exits with 0 was asked to.
      deaths = code === 0 || this.#time.now() - began_ms > STABLE_MS ? 0 : deaths + 1;
      const pause_ms = deaths === 0 ? 0 : Math.min(BACKOFF_MS * 2 ** (deaths - 1), BACKOFF_MAX_MS);
      const how = { worker: number, pid: worker.pid, code, signal: killer, pause_ms };
      this.#log.warn(
        { ...how, ...(fault && { reason: fault.message }) },
        'a worker has ended: it is replaced',
      );
      await sleep(this.#time, pause_ms, signal);
    }
  }

  #serves(worker: WorkerProcess): void {
    const { number, pid } = worker;
    this.#unable.delete(number);
    this.#log.info({ worker: number, pid }, 'a worker serves');
    this.#handlers.onStart(worker);
    this.#handlers.onChange();
  }
}
