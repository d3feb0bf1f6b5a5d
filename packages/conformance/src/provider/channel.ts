import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';

export type AnyRequest = IncomingMessage | Http2ServerRequest;
export type AnyResponse = ServerResponse | Http2ServerResponse;

/** One answer on its way to the gateway, and the ways to break it. */
export class Channel {
  readonly #response: AnyResponse;

  /** Resolves when the answer has ended, or the gateway has left. */
  readonly closed: Promise<unknown>;

  constructor(response: AnyResponse) {
    this.#response = response;
    this.closed = once(response, 'close');
    // A connection that fails is closed as well.
    this.closed.catch(() => {});
  }

  /** Both kinds of responses have the methods that are called on it, with types of their own. */
  get #http1(): ServerResponse {
    return this.#response as ServerResponse;
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded;
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#http1.writeHead(status, headers);
  }

  /** Resolves when the operating system has the text. Nothing is sent to a gateway that has left. */
  async send(text: string): Promise<void> {
    if (text === '' || !this.isOpen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#http1.write(text, () => resolve());
    await Promise.race([promise, this.closed]);
  }

  end(): void {
    if (this.isOpen) this.#response.end();
  }

  /** RST of the connection, or of the stream in HTTP/2. */
  reset(): void {
    if (!this.isOpen) return;
    if ('stream' in this.#response) this.#response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else this.#response.socket?.resetAndDestroy();
  }

  /** Says that the connection ends, and ends it. */
  goaway(): void {
    if (!this.isOpen) return;
    if (!('stream' in this.#response)) throw new Error('HTTP/1.1 has no GOAWAY');
    const { session } = this.#response.stream;
    session?.goaway(constants.NGHTTP2_NO_ERROR);
    session?.destroy();
  }
}
