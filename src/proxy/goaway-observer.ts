import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';

const STREAM_CREATED = 'http2.client.stream.created';

/** The HTTP/2 stream that carries one request, and what its session said about leaving. */
export interface ObservedStream {
  /** RST_STREAM code, once the stream is closed; 0 if there was none. */
  readonly reset: number;
  /** GOAWAY code of the session; an error code once it has sent one, whatever it sent besides. */
  readonly goaway: number | undefined;
}

/**
 * Finds out which HTTP/2 session carries a request, and whether it sent GOAWAY. undici does not tell: it reports a
 * GOAWAY followed by a close as "other side closed", and a graceful one not at all.
 *
 * undici opens the stream in the same synchronous run in which it calls `onRequestStart`, and Node announces the
 * stream before that run ends. So whatever stream is announced between {@link expect} and the next microtask is
 * the one. An async context would not do: a request that waited for its connection is started from the context of
 * whichever request opened that connection.
 */
export class GoawayObserver {
  readonly #sessions = new WeakMap<ClientHttp2Session, { goaway: number | undefined }>();
  #expecting: ((stream: ObservedStream) => void) | undefined;

  constructor() {
    subscribe(STREAM_CREATED, this.#streamCreated);
  }

  close(): void {
    unsubscribe(STREAM_CREATED, this.#streamCreated);
  }

  /** Calls back at once with the stream the running request start opens; never for HTTP/1.1. */
  expect(callback: (stream: ObservedStream) => void): void {
    this.#expecting = callback;
    queueMicrotask(() => {
      if (this.#expecting === callback) this.#expecting = undefined;
    });
  }

  readonly #streamCreated = (message: unknown): void => {
    const expecting = this.#expecting;
    if (!expecting) return;
    this.#expecting = undefined;
    const { stream } = message as { stream: ClientHttp2Stream };
    const session = this.#observe(stream.session as ClientHttp2Session);
    expecting({
      get reset() {
        return stream.rstCode ?? 0;
      },
      get goaway() {
        return session.goaway;
      },
    });
  };

  #observe(session: ClientHttp2Session): { readonly goaway: number | undefined } {
    const known = this.#sessions.get(session);
    if (known) return known;
    const observed: { goaway: number | undefined } = { goaway: undefined };
    this.#sessions.set(session, observed);
    // Ahead of undici's own listener, which fails requests while it runs.
    session.prependListener('goaway', (code) => {
      observed.goaway ||= code;
    });
    return observed;
  }
}
