import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Headers } from '../proxy/upstream/headers.ts';
import type { AnswerSink } from './answer-sink.ts';

/** The client's side of one answer. */
export class ClientConnection implements AnswerSink {
  readonly #response: ServerResponse;
  readonly #gone = new AbortController();
  readonly #onFlushed = () => this.#countFlushed();
  /** Writes that the kernel hasn't accepted yet. */
  #unflushed = 0;
  #flushed = () => {};
  #isOver: boolean = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    // The upstream's headers are passed on, so none is added.
    response.sendDate = false;
    response.once('close', () => {
      this.#gone.abort();
      this.#flushed();
    });
  }

  /** Aborts when the answer is over or the client disconnects early. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  begin(status: number, headers: Headers): void {
    if (this.gone.aborted) return;
    this.#response.writeHead(status, headers);
    this.#response.flushHeaders();
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    if (bytes.length === 0 || this.#isOver || this.gone.aborted) return;
    this.#unflushed++;
    if (this.#response.write(bytes, this.#onFlushed)) return;
    await once(this.#response, 'drain', { signal: this.gone }).catch(() => {});
  }

  end(bytes?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#response.end(bytes);
  }

  /** Resets the connection with a TCP RST. */
  async reset(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#flushed = resolve;
    if (this.#unflushed === 0 || this.gone.aborted) resolve();
    await promise;
    this.#response.socket?.resetAndDestroy();
  }

  /** Breaks the answer off, as the upstream did. */
  breakOff(): void {
    this.#isOver = true;
    this.#response.destroy();
  }

  #countFlushed(): void {
    if (--this.#unflushed === 0) this.#flushed();
  }
}
