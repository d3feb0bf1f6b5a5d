import { Worker } from 'node:worker_threads';
import type {
  AnswerTo,
  FromThread,
  Reply,
  Request,
  RequestKind,
  RequestOf,
  ToThread,
  WriterThreadData,
} from './protocol.ts';
import { FileStoreError } from './refusal.ts';

interface Pending {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The minimum interval between batches: a batch costs both threads as much as several requests. */
const BATCH_INTERVAL_MS = 1;

/**
 * The serving thread's handle on the writer thread. A request is sent at once if none was sent within the last
 * millisecond; otherwise a millisecond's requests go together. While a batch is in progress, appends accumulate. So all
 * runs share the cost of messages and writes, more so the busier the store is.
 */
export class Writer {
  readonly #opening = Promise.withResolvers<void>();
  readonly #worker: Worker;
  readonly #onUpkeepError: (error: Error) => void;
  #gathering: Request[] = [];
  /** Those that wait for the replies to the requests being gathered. */
  #pending: Pending[] = [];
  /** The same of each batch without a reply so far. */
  #underWay: (readonly Pending[])[] = [];
  /** A batch is about to be sent. */
  #isPosting: boolean = false;
  #posted_at_ms = 0;
  #stalled_since_ms = 0;
  #onIdle: (() => void) | undefined;
  #failure: Error | undefined;

  constructor(data: WriterThreadData, onUpkeepError: (error: Error) => void) {
    this.#onUpkeepError = onUpkeepError;
    // If nothing awaits the opening, the first request reports its failure.
    this.#opening.promise.catch(() => {});
    // The thread runs from source or from the build, like this file.
    const thread = new URL(`./file-writer-thread${import.meta.url.slice(-3)}`, import.meta.url);
    this.#worker = new Worker(thread, { workerData: data, name: 'holdfast-file-store' });
    this.#worker.on('message', (message: FromThread) => this.#receive(message));
    this.#worker.on('error', (error) =>
      this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#fail(new Error('the file store is closed')));
  }

  /** Resolves once the thread has read the log; rejects if it can't. */
  get opened(): Promise<void> {
    return this.#opening.promise;
  }

  /** How long the current batch has been waiting for the disk. */
  get stalled_ms(): number {
    return this.#underWay.length > 0 ? performance.now() - this.#stalled_since_ms : 0;
  }

  /** Rejects with a {@link FileStoreError}. */
  request<Kind extends RequestKind>(kind: Kind, request: RequestOf<Kind>): Promise<AnswerTo<Kind>> {
    return new Promise((resolve, reject) => {
      this.send(kind, request, resolve, reject);
    });
  }

  /** Like {@link request}, with callbacks, which cost less than a promise. */
  send<Kind extends RequestKind>(
    kind: Kind,
    request: RequestOf<Kind>,
    resolve: (answer: AnswerTo<Kind>) => void,
    reject: (error: Error) => void,
  ): void {
    if (this.#failure) {
      reject(this.#failure);
      return;
    }
    this.#pending.push({ resolve: resolve as Pending['resolve'], reject });
    this.#gathering.push([kind, request]);
    if (this.#isPosting || (this.#underWay.length > 0 && kind === 'append')) return;
    this.#schedule();
  }

  /** Resolves once everything is written and the thread has ended. */
  async close(): Promise<void> {
    while (!this.#isIdle) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    if (this.#failure) return;
    const exited = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.postMessage('close' satisfies ToThread);
    await exited;
  }

  get #isIdle(): boolean {
    return this.#gathering.length === 0 && this.#underWay.length === 0;
  }

  #schedule(): void {
    this.#isPosting = true;
    const rest_ms = this.#posted_at_ms + BATCH_INTERVAL_MS - performance.now();
    if (rest_ms > 0) setTimeout(this.#post, rest_ms);
    else queueMicrotask(this.#post);
  }

  readonly #post = (): void => {
    this.#isPosting = false;
    if (this.#gathering.length === 0) return;
    const batch = this.#gathering;
    this.#gathering = [];
    this.#posted_at_ms = performance.now();
    if (this.#underWay.length === 0) this.#stalled_since_ms = this.#posted_at_ms;
    this.#underWay.push(this.#pending);
    this.#pending = [];
    this.#worker.postMessage(batch satisfies ToThread);
  };

  #receive(message: FromThread): void {
    if (message.kind === 'opened') {
      this.#opening.resolve();
      return;
    }
    if (message.kind === 'failed') {
      this.#onUpkeepError(new FileStoreError(message.refusal));
      return;
    }
    const pending = this.#underWay.shift() ?? [];
    this.#stalled_since_ms = performance.now();
    if (this.#underWay.length === 0 && !this.#isPosting && this.#gathering.length > 0) this.#schedule();
    for (const [at, each] of pending.entries()) settle(each, message.replies[at]);
    if (this.#isIdle) this.#onIdle?.();
  }

  /** The thread is gone: all pending and future requests fail. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#opening.reject(error);
    const pending = [...this.#underWay.flat(), ...this.#pending];
    this.#underWay = [];
    this.#gathering = [];
    this.#pending = [];
    for (const { reject } of pending) reject(this.#failure);
    this.#onIdle?.();
  }
}

function settle({ resolve, reject }: Pending, reply: Reply): void {
  if (reply && 'refusal' in reply) reject(new FileStoreError(reply.refusal));
  else resolve(reply?.answer);
}
