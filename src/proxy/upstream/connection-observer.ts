import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import type { Socket } from 'node:net';

/** undici's channel, for HTTP/1.1 and HTTP/2. */
const HEADERS_SENT = 'undici:client:sendHeaders';
/** Node's channel. */
const STREAM_CREATED = 'http2.client.stream.created';

/** The connection of one request, as far as known; filled in while the request is sent. */
export interface Connection {
  socket?: Socket;
  /** HTTP/2 only. */
  stream?: ClientHttp2Stream;
  session?: ObservedSession;
}

interface ObservedSession {
  /** GOAWAY code of the HTTP/2 session. The first error code is kept over other codes. */
  goaway: number | undefined;
}

/** Resets the HTTP/2 stream with CANCEL, where undici's own abort would send NO_ERROR. Does nothing for HTTP/1.1. */
export function cancelStream({ stream }: Connection): void {
  stream?.close(constants.NGHTTP2_CANCEL);
}

/**
 * Finds the socket, stream and session of a request, because undici hides their state: it reports a GOAWAY followed by
 * a close as "other side closed" and a graceful one not at all, takes a stream reset with CANCEL for a complete
 * response, and a TCP reset for the end of a response without a length.
 *
 * undici sends a request in the same synchronous run that calls `onRequestStart`, so events between {@link observe} and
 * the next microtask belong to that request. An async context would not work: a request that waited for its connection
 * is sent in the context of the request that opened it.
 */
export class ConnectionObserver {
  readonly #sessions = new WeakMap<ClientHttp2Session, ObservedSession>();
  #starting: Connection | undefined;

  constructor() {
    subscribe(HEADERS_SENT, this.#headersSent);
    subscribe(STREAM_CREATED, this.#streamCreated);
  }

  close(): void {
    unsubscribe(HEADERS_SENT, this.#headersSent);
    unsubscribe(STREAM_CREATED, this.#streamCreated);
  }

  /** Call this from `onRequestStart`. */
  observe(): Connection {
    const starting: Connection = {};
    this.#starting = starting;
    queueMicrotask(() => {
      if (this.#starting === starting) this.#starting = undefined;
    });
    return starting;
  }

  readonly #headersSent = (message: unknown): void => {
    if (this.#starting) this.#starting.socket = (message as { socket: Socket }).socket;
  };

  readonly #streamCreated = (message: unknown): void => {
    if (!this.#starting) return;
    const { stream } = message as { stream: ClientHttp2Stream };
    this.#starting.stream = stream;
    this.#starting.session = this.#observed(stream.session as ClientHttp2Session, this.#starting.socket);
    this.#starting = undefined;
  };

  #observed(session: ClientHttp2Session, socket: Socket | undefined): ObservedSession {
    const known = this.#sessions.get(session);
    if (known) return known;
    const observed: ObservedSession = { goaway: undefined };
    this.#sessions.set(session, observed);
    if (socket) limitSilence(session, socket);
    // Runs before undici's own listener, which fails the requests.
    session.prependListener('goaway', (code) => {
      observed.goaway ||= code;
    });
    return observed;
  }
}

/** Interval of pings, and the time limit for an answer. */
const PING_EVERY_MS = 5_000;
/** The interval is counted in steps: a step delayed because this process was busy still counts as one. */
const STEPS = 5;

/** The peer or Node itself has lost the session without any event. */
class SessionLostError extends Error {
  override readonly name = 'SessionLostError';
  readonly code = 'ECONNRESET';
}

/**
 * Destroys the connection of a session that doesn't answer a ping. This covers vanished peers, and a defect in Node 22
 * and 24: if a write to a reset connection fails before the read does, TLSWrap considers the write pending forever,
 * HTTP/2 stops reading until it ends, and all later streams wait on a dead connection.
 */
export function limitSilence(
  session: Pick<ClientHttp2Session, 'closed' | 'destroyed' | 'ping' | 'once'>,
  socket: Pick<Socket, 'destroy'>,
): void {
  let waiting = false;
  let steps = 0;
  const timer = setInterval(() => {
    if (session.closed || session.destroyed || ++steps % STEPS !== 0) return;
    if (waiting) socket.destroy(new SessionLostError('the HTTP/2 session does not answer'));
    else
      waiting = session.ping(() => {
        waiting = false;
      });
  }, PING_EVERY_MS / STEPS).unref();
  session.once('close', () => clearInterval(timer));
}
