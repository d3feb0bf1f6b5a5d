import type { ServerResponse } from 'node:http';

/** One who is sent events as they come. Holds no more than one message that was not taken yet. */
export class Viewer {
  readonly #response: ServerResponse;
  #behind_since_ms: number | undefined;
  /** Messages were kept from it: it needs a snapshot to go on. */
  isStale: boolean = true;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** For how long it has not taken what it was sent last. */
  behind_ms(now_ms: number): number {
    if (this.#response.writableLength === 0) this.#behind_since_ms = undefined;
    else this.#behind_since_ms ??= now_ms;
    return this.#behind_since_ms === undefined ? 0 : now_ms - this.#behind_since_ms;
  }

  get isBehind(): boolean {
    return this.#behind_since_ms !== undefined;
  }

  send(message: string): void {
    this.#response.write(message);
  }

  /** It may come back, and begins with a snapshot then. */
  drop(): void {
    this.#response.destroy();
  }
}

/** A server-sent event. JSON has no line breaks of its own. */
export const feedMessage = (event: 'snapshot' | 'update', data: object): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
