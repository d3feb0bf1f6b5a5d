import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Client } from './client.ts';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // An answer belongs to one credential: no cache may keep it or hand it to another.
  'cache-control': 'private, no-cache, no-store',
  // nginx buffers event streams unless told not to.
  'x-accel-buffering': 'no',
};

/**
 * The client's side of a run over one HTTP/1.1 response.
 *
 * Writing is the hot path: what is written in one turn goes to the socket framed as one chunk in one string.
 * `response.write` makes three buffers of it and flushes them in a later tick, which costs 2 µs (a third) more per
 * event. Only headers and the end of the message go through `response`, which keeps its keep-alive accounting.
 */
export class ClientResponse implements Client {
  logFields?: Readonly<Record<string, unknown>>;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #gone = new AbortController();
  readonly #client_stall_ms: number;
  #opened: boolean = false;
  #ended: boolean = false;
  /** By us, which is no sign that the client does not want the rest. */
  #destroyed: boolean = false;
  #headers: Readonly<Record<string, string>> | undefined;
  #onOpen: (() => Readonly<Record<string, string>>) | undefined;

  /**
   * `response` must have its socket: see {@link responseTurn}. `onOpen` is called when the stream begins, for headers
   * it is to have besides.
   */
  constructor(
    response: ServerResponse,
    limits: { readonly client_stall_ms: number },
    onOpen?: () => Readonly<Record<string, string>>,
  ) {
    if (!response.socket) throw new Error('the response has no socket yet');
    this.#response = response;
    this.#onOpen = onOpen;
    this.#socket = response.socket;
    response.once('close', () => {
      const isWhole = this.#ended && response.writableFinished;
      if (!isWhole && !this.#destroyed) this.#gone.abort();
    });
    if (response.closed) this.#gone.abort();
    this.#client_stall_ms = limits.client_stall_ms;
  }

  /** Aborts when the client has gone before it was sent everything. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get opened(): boolean {
    return this.#opened;
  }

  get begun(): boolean {
    return this.#opened;
  }

  /** True once a complete response was handed to the socket. */
  get ended(): boolean {
    return this.#ended;
  }

  /** True once nothing more can be sent: the response is complete, was cut off, or its client has gone. */
  get over(): boolean {
    return this.#ended || this.#response.destroyed;
  }

  open(headers: Readonly<Record<string, string>>): void {
    this.#opened = true;
    this.#headers = { ...headers, ...this.#onOpen?.() };
  }

  write(frames: string): boolean {
    if (this.#socket.destroyed) return true;
    if (!this.#headers) return this.#send(frames);
    this.#socket.cork();
    this.#sendHeaders(this.#headers);
    const writable = this.#send(frames);
    this.#socket.uncork();
    return writable;
  }

  drained(): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve) => {
      if (socket.destroyed || !socket.writableNeedDrain) return resolve();
      const liftLimit = this.#limitStall();
      const settle = () => {
        liftLimit();
        socket.off('drain', settle).off('close', settle);
        resolve();
      };
      socket.on('drain', settle).on('close', settle);
    });
  }

  end(frames: string): void {
    this.#ended = true;
    if (this.#socket.destroyed) return;
    this.#limitStall();
    this.#socket.cork();
    if (this.#headers) this.#sendHeaders(this.#headers);
    this.#send(frames);
    this.#response.end();
    this.#socket.uncork();
  }

  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void {
    if (this.#opened) throw new Error('a stream that was opened cannot be rejected');
    this.#ended = true;
    if (this.#socket.destroyed) return;
    this.#limitStall();
    this.#response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    this.#response.end(body);
  }

  /** Resolves when the client has taken the whole response, or is gone. */
  get closed(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      if (response.closed || response.writableFinished) return resolve();
      response.once('close', resolve).once('finish', resolve);
    });
  }

  /** Closes the connection without an end of message, so that the client cannot take what it has as complete. */
  destroy(): void {
    this.#destroyed = true;
    this.#response.destroy();
  }

  /** Only while the client owes us something: the timer would start anew with every event of a healthy stream. */
  #limitStall(): () => void {
    return limitStall(this.#response, this.#client_stall_ms);
  }

  #sendHeaders(headers: Readonly<Record<string, string>>): void {
    this.#headers = undefined;
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...headers });
    this.#response.flushHeaders();
  }

  #send(frames: string): boolean {
    // A chunk of no bytes would end the message.
    if (frames === '') return !this.#socket.writableNeedDrain;
    const length = Buffer.byteLength(frames);
    // As many bytes as characters means ASCII, which needs no transcoding.
    const encoding = length === frames.length ? 'latin1' : 'utf8';
    // HTTP/1.0 clients know no chunks: their stream ends with the connection.
    if (!this.#response.chunkedEncoding) return this.#socket.write(frames, encoding);
    return this.#socket.write(`${length.toString(16)}\r\n${frames}\r\n`, encoding);
  }
}

/**
 * Resolves when the connection is this response's to write to, false if it closed first. A pipelined request waits
 * here for the responses before it: a run whose output cannot be taken yet would only fill memory.
 */
export function responseTurn(response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    if (response.closed) return resolve(false);
    if (response.socket) return resolve(true);
    const settle = (ready: boolean) => () => {
      response.off('socket', taken).off('close', closed);
      resolve(ready);
    };
    const taken = settle(true);
    const closed = settle(false);
    response.on('socket', taken).on('close', closed);
  });
}

/**
 * Cuts off a client that takes nothing of what it was sent for `stall_ms`. Silence of the provider does not count,
 * and neither does slowness: the socket's timer starts anew whenever the kernel took another byte.
 *
 * The returned function lifts the limit. While it stands it costs something with every write.
 */
export function limitStall(response: ServerResponse, stall_ms: number): () => void {
  const cutOff = () => {
    if (response.socket && response.socket.writableLength > 0) response.destroy();
  };
  response.setTimeout(stall_ms, cutOff);
  return () => response.off('timeout', cutOff).setTimeout(0);
}
