import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Client } from './client.ts';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // An answer belongs to one credential: no cache may store it or serve it to another.
  'cache-control': 'private, no-cache, no-store',
  // nginx buffers event streams by default.
  'x-accel-buffering': 'no',
};

/**
 * The client's side of a run over one HTTP/1.1 response.
 *
 * Writing is the hot path: each write goes to the socket as a single string with one chunk. `response.write` would make
 * three buffers and flush them in a later tick, which costs 2 µs (a third) more per event. Only headers and the end of
 * the message use `response`, which keeps its keep-alive accounting correct.
 */
export class ClientResponse implements Client {
  logFields?: Readonly<Record<string, unknown>>;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #gone = new AbortController();
  readonly #client_stall_ms: number;
  #opened: boolean = false;
  #ended: boolean = false;
  /** Set when we close the connection, which doesn't count as a disconnect. */
  #destroyed: boolean = false;
  #headers: Readonly<Record<string, string>> | undefined;
  #onOpen: (() => Readonly<Record<string, string>>) | undefined;

  /**
   * `response` must already have its socket; see {@link responseTurn}. `onOpen` runs when the stream begins, and
   * returns additional headers.
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

  /** Aborts if the client disconnects before everything was sent. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get opened(): boolean {
    return this.#opened;
  }

  get begun(): boolean {
    return this.#opened;
  }

  /** True once a complete response has been handed to the socket. */
  get ended(): boolean {
    return this.#ended;
  }

  /** True once nothing more can be sent: the response is complete or cut off, or the client has disconnected. */
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

  /** Resolves once the client has received the whole response, or has disconnected. */
  get closed(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      if (response.closed || response.writableFinished) return resolve();
      response.once('close', resolve).once('finish', resolve);
    });
  }

  /**
   * Closes the connection without ending the message, so that the client can't mistake the partial answer for a
   * complete one.
   */
  destroy(): void {
    this.#destroyed = true;
    this.#response.destroy();
  }

  /** Only while data is pending: otherwise the timer would restart with every event of a healthy stream. */
  #limitStall(): () => void {
    return limitStall(this.#response, this.#client_stall_ms);
  }

  #sendHeaders(headers: Readonly<Record<string, string>>): void {
    this.#headers = undefined;
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...headers });
    this.#response.flushHeaders();
  }

  #send(frames: string): boolean {
    // An empty chunk would end the message.
    if (frames === '') return !this.#socket.writableNeedDrain;
    const length = Buffer.byteLength(frames);
    // Equal byte and character counts mean ASCII, which needs no transcoding.
    const encoding = length === frames.length ? 'latin1' : 'utf8';
    // HTTP/1.0 has no chunks: the stream ends with the connection.
    if (!this.#response.chunkedEncoding) return this.#socket.write(frames, encoding);
    return this.#socket.write(`${length.toString(16)}\r\n${frames}\r\n`, encoding);
  }
}

/**
 * Resolves with true once this response may write to the connection, or false if it closed first. A pipelined request
 * waits here for earlier responses, because the output of its run would only fill memory.
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
 * Disconnects a client that accepts no data for `stall_ms`. A silent provider or a slow client doesn't count: the
 * socket's timer restarts whenever the kernel accepts another byte.
 *
 * Returns a function that lifts the limit, which costs time on every write while it is active.
 */
export function limitStall(response: ServerResponse, stall_ms: number): () => void {
  const cutOff = () => {
    if (response.socket && response.socket.writableLength > 0) response.destroy();
  };
  response.setTimeout(stall_ms, cutOff);
  return () => response.off('timeout', cutOff).setTimeout(0);
}
