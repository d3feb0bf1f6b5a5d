import { SilenceError } from './errors.ts';
import { EventSplitter, type WholeEvents } from './event-splitter.ts';
import type { Fetch } from './options.ts';

/** One request to a replica and what comes of it. It is given up when a step takes longer than it may. */
export class Connection {
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #splitter = new EventSplitter();
  #response: Response | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** `signal` closes it, too. */
  constructor(signal: AbortSignal) {
    this.#signal = AbortSignal.any([signal, this.#closing.signal]);
  }

  async request(fetch: Fetch, url: string, init: RequestInit, limit_ms: number): Promise<Response> {
    this.#response = await this.within(limit_ms, () => fetch(url, { ...init, signal: this.#signal }));
    return this.#response;
  }

  /** What the next bytes of the body completed; undefined at its end. */
  async read(limit_ms: number): Promise<WholeEvents | undefined> {
    this.#reader ??= this.#response?.body?.getReader();
    const bytes = await this.within(limit_ms, async () => (await this.#reader?.read())?.value);
    return bytes && this.#splitter.split(bytes);
  }

  /** Closes it if the work takes too long, and by that ends the work. */
  async within<T>(limit_ms: number, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#closing.abort(new SilenceError(limit_ms)), limit_ms);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#closing.abort();
  }
}
