import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import type { Socket } from 'node:net';

/** undici's, for HTTP/1.1 and HTTP/2 alike. */
const HEADERS_SENT = 'undici:client:sendHeaders';
/** Node's. */
const STREAM_CREATED = 'http2.client.stream.created';

/** What carries one request, as far as it is known: the observer fills it in while the request is sent. */
export interface Connection {
  socket?: Socket;
  /** HTTP/2 only. */
  stream?: ClientHttp2Stream;
  session?: ObservedSession;
}

interface ObservedSession {
  /** GOAWAY code of the HTTP/2 session; an error code once it has sent one, whatever it sent besides. */
  goaway: number | undefined;
}

/** Resets the HTTP/2 stream with CANCEL. undici's own abort would say NO_ERROR; HTTP/1.1 leaves all to that. */
export function cancelStream({ stream }: Connection): void {
  stream?.close(constants.NGHTTP2_CANCEL);
}

/**
 * Finds out which socket, stream and session carry a request, because undici keeps back what they say. It reports a
 * GOAWAY followed by a close as "other side closed" and a graceful one not at all, takes a stream reset with CANCEL
 * for a whole response, and a TCP reset for the end of a response without a length.
 *
 * undici sends a request in the same synchronous run in which it calls `onRequestStart`. So what is announced
 * between {@link observe} and the next microtask belongs to that request. An async context would not tell: a
 * request that waited for its connection is sent in the context of whichever request opened it.
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

  /** To be called from `onRequestStart`. */
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
    // Ahead of undici's own listener, which fails requests while it runs.
    session.prependListener('goaway', (code) => {
      observed.goaway ||= code;
    });
    return observed;
  }
}

/** How often a session is asked whether it is still there, and how long it may take to answer. */
const PING_EVERY_MS = 5_000;
/** That time passes in so many steps: one that is late, because this process was busy, counts as one. */
const STEPS = 5;

/** The peer, or Node itself, has lost the session without any event. */
class SessionLostError extends Error {
  override readonly name = 'SessionLostError';
  readonly code = 'ECONNRESET';
}

/**
 * Destroys the connection of a session that does not answer a ping. Besides peers that vanish, this is for Node 22 and
 * 24 themselves: when a write to a reset connection fails before the read does, TLSWrap takes that write to be under
 * way for ever, HTTP/2 stops reading until it ends, and every later stream waits on a connection that is gone.
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
