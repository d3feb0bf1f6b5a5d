import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** How often a session is asked whether it is still there, and how long it may take to answer. */
const PING_EVERY_MS = 5_000;

/** The peer, or Node itself, has lost the session without anybody being told. */
class SessionLostError extends Error {
  override readonly name = 'SessionLostError';
  readonly code = 'ECONNRESET';
}

/**
 * Destroys the connection of a session that does not answer a ping. Besides peers that vanish, this is for Node 22 and
 * 24 themselves: when a write to a reset connection fails before the read does, TLSWrap takes that write to be under
 * way for ever, HTTP/2 stops reading until it ends, and every later stream waits on a connection that is gone.
 */
export function limitSilence(session: ClientHttp2Session, socket: Socket): void {
  let waiting = false;
  const timer = setInterval(() => {
    if (session.closed || session.destroyed) return;
    if (waiting) socket.destroy(new SessionLostError('the HTTP/2 session does not answer'));
    else
      waiting = session.ping(() => {
        waiting = false;
      });
  }, PING_EVERY_MS).unref();
  session.once('close', () => clearInterval(timer));
}
