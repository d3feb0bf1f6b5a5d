import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { Cut } from './fault.ts';

export type AnyRequest = IncomingMessage | Http2ServerRequest;
export type AnyResponse = ServerResponse | Http2ServerResponse;

const NOTHING = Buffer.alloc(0);
/** RST discards what the kernel hasn't sent yet, and nothing tells us when it has; on loopback, this is plenty. */
const RESET_GRACE_MS = 5;

export interface Connection {
  /** The socket below TLS and HTTP/2. */
  readonly tcp: Socket;
  /** Set once the TLS handshake is done, if there is one. */
  tls?: TLSSocket;
}

/** One response and the connection under it, which it can end in every way that a network can. */
export class Channel {
  readonly #response: AnyResponse;
  readonly #connection: Connection;
  #wake: (() => void) | undefined;
  readonly #closed = new AbortController();
  #was_cut = false;

  constructor(response: AnyResponse, connection: Connection) {
    this.#response = response;
    this.#connection = connection;
    // A write to a closed connection reports its error here; `gone` already covers it.
    response.on('error', () => {});
    response.once('close', () => {
      this.#closed.abort();
      this.#wake?.();
    });
  }

  /** Whether the connection is closed, so that nothing more can be sent. */
  get gone(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Whether we broke the connection ourselves. */
  get was_cut(): boolean {
    return this.#was_cut;
  }

  /** Resolves once the head has been sent. */
  async head(status: number, headers: Readonly<Record<string, string>>): Promise<void> {
    const response = this.#response as ServerResponse;
    response.writeHead(status, headers);
    response.flushHeaders();
    await this.#flushed();
  }

  /** Resolves once the kernel has taken the bytes, or the client has gone. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#until((done) => {
      (this.#response as Writable).write(bytes, done);
    });
  }

  /** Resolves after the delay, or once the client has gone. */
  async wait(delay_ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await this.#until((done) => {
      timer = globalThis.setTimeout(done, delay_ms);
    });
    clearTimeout(timer);
  }

  async untilGone(): Promise<void> {
    await this.#until(() => {});
  }

  end(): void {
    this.#response.end();
  }

  /** Announces the end of the HTTP/2 session; open streams may finish. */
  goaway(): void {
    this.#stream().session?.close();
  }

  async cut(how: Cut): Promise<void> {
    this.#was_cut = true;
    const { tcp, tls } = this.#connection;
    switch (how) {
      case 'reset':
        await setTimeout(RESET_GRACE_MS);
        tcp.resetAndDestroy();
        return;
      case 'fin_in_chunk':
        this.#announceChunk();
        (tls ?? tcp).end();
        return;
      case 'tls_cut':
        if (!tls) throw new Error('tls_cut needs a provider with protocol https1 or h2');
        tcp.destroy();
        return;
      case 'h2_rst':
        this.#stream().close(constants.NGHTTP2_INTERNAL_ERROR);
        return;
      case 'goaway_0_close':
        return this.#goawayAndClose(constants.NGHTTP2_NO_ERROR);
      case 'goaway_error':
        return this.#goawayAndClose(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }

  #until(start: (done: () => void) => void): Promise<void> {
    if (this.gone) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      start(resolve);
    });
  }

  #announceChunk(): void {
    if ('stream' in this.#response) throw new Error('fin_in_chunk needs an HTTP/1.1 request');
    this.#response.socket?.write('100\r\n');
  }

  async #goawayAndClose(code: number): Promise<void> {
    const { tcp, tls } = this.#connection;
    this.#stream().session?.goaway(code);
    await this.#flushed();
    (tls ?? tcp).end();
  }

  /**
   * Frames and heads are written in a later turn of the event loop, and what we do to the socket must not overtake
   * them.
   */
  async #flushed(): Promise<void> {
    if (!('stream' in this.#response)) return this.write(NOTHING);
    const { session } = this.#response.stream;
    while (!this.gone && session && !session.destroyed && session.state.outboundQueueSize !== 0) {
      await setImmediate();
    }
  }

  #stream() {
    if ('stream' in this.#response) return this.#response.stream;
    throw new Error('h2_rst and goaway need an HTTP/2 request');
  }
}
