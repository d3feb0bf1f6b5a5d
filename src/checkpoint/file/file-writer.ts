import { Worker } from 'node:worker_threads';
import type {
  Answer,
  AnswerTo,
  BatchMessage,
  RequestKind,
  RequestMessage,
  RequestOf,
  WriterThreadData,
} from './file-protocol.ts';
import { FileStoreError, type Refusal } from './file-refusal.ts';

interface PendingAppend {
  readonly slot: number;
  readonly text: string;
  readonly settle: (error?: Error) => void;
}

interface PendingRequest {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The writing thread as the serving thread sees it. While it writes one batch of appends the next one gathers, so that
 * the cost of talking to it is shared by all runs, the more the busier it is.
 */
export class FileWriter {
  readonly #worker: Worker;
  readonly #onSweepError: (error: Error) => void;
  readonly #requests = new Map<number, PendingRequest>();
  #ids = 0;
  #gathering: PendingAppend[] = [];
  #writing: readonly PendingAppend[] = [];
  #posted_at_ms = 0;
  #onIdle: (() => void) | undefined;
  #failure: Error | undefined;

  constructor(data: WriterThreadData, onSweepError: (error: Error) => void) {
    this.#onSweepError = onSweepError;
    // The thread runs from the source or from the build, as this file does.
    const thread = new URL(`./file-writer-thread${import.meta.url.slice(-3)}`, import.meta.url);
    this.#worker = new Worker(thread, { workerData: data, name: 'holdfast-file-store' });
    this.#worker.on('message', (answer: Answer) => this.#answered(answer));
    this.#worker.on('error', (error) =>
      this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#fail(new Error('the file store is closed')));
  }

  /** How long the batch under way has been waiting for the disk. */
  get stalled_ms(): number {
    return this.#writing.length > 0 ? performance.now() - this.#posted_at_ms : 0;
  }

  /** Calls `settle` once `text` is written for `slot`, or with the reason why it is not. */
  append(slot: number, text: string, settle: (error?: Error) => void): void {
    if (this.#failure) {
      settle(this.#failure);
      return;
    }
    this.#gathering.push({ slot, text, settle });
    if (this.#gathering.length === 1 && this.#writing.length === 0) queueMicrotask(() => this.#post());
  }

  /** Rejects with a {@link FileStoreError}. */
  request<Kind extends RequestKind>(kind: Kind, request: RequestOf<Kind>): Promise<AnswerTo<Kind>> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      this.#requests.set(id, { resolve: (answer) => resolve(answer as AnswerTo<Kind>), reject });
      this.#worker.postMessage({ kind, id, request } satisfies RequestMessage);
    });
  }

  /** Resolves once everything is written and the thread has ended. */
  async close(): Promise<void> {
    while (this.#isBusy()) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    if (this.#failure) return;
    const exited = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.postMessage({ kind: 'close', id: 0, request: undefined } satisfies RequestMessage);
    await exited;
  }

  #isBusy(): boolean {
    return this.#writing.length > 0 || this.#gathering.length > 0 || this.#requests.size > 0;
  }

  #post(): void {
    const batch = this.#gathering;
    this.#gathering = [];
    this.#writing = batch;
    this.#posted_at_ms = performance.now();
    const meta = new Int32Array(batch.length * 2);
    let text = '';
    for (const [position, append] of batch.entries()) {
      meta[position * 2] = append.slot;
      meta[position * 2 + 1] = append.text.length;
      text += append.text;
    }
    this.#worker.postMessage({ kind: 'batch', text, meta } satisfies BatchMessage);
  }

  #answered(answer: Answer): void {
    switch (answer.kind) {
      case 'batch':
        this.#written(answer.refusals);
        break;
      case 'done':
        this.#takeRequest(answer.id)?.resolve(answer.answer);
        break;
      case 'refused':
        this.#takeRequest(answer.id)?.reject(new FileStoreError(answer.refusal));
        break;
      case 'sweep_failed':
        this.#onSweepError(new FileStoreError(answer.refusal));
        break;
    }
    if (!this.#isBusy()) this.#onIdle?.();
  }

  #written(refusals: ReadonlyMap<number, Refusal>): void {
    const batch = this.#writing;
    this.#writing = [];
    if (this.#gathering.length > 0) this.#post();
    for (const [position, append] of batch.entries()) {
      const refusal = refusals.get(position);
      append.settle(refusal && new FileStoreError(refusal));
    }
  }

  #takeRequest(id: number): PendingRequest | undefined {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    return request;
  }

  /** The thread is gone: everything waiting for it fails, and so does everything later. */
  #fail(error: Error): void {
    this.#failure ??= error;
    const appends = [...this.#writing, ...this.#gathering];
    this.#writing = [];
    this.#gathering = [];
    for (const append of appends) append.settle(this.#failure);
    for (const request of this.#requests.values()) request.reject(this.#failure);
    this.#requests.clear();
    this.#onIdle?.();
  }
}
