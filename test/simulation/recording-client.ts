import type { Client } from '../../src/proxy/downstream/client.ts';

/** Records everything that a run does to its client. */
export class RecordingClient implements Client {
  opened = false;
  ended = false;
  /** Everything written, as one string. */
  body = '';
  headers: Readonly<Record<string, string>> = {};
  /** The connection was closed before the response ended. */
  destroyed = false;
  rejection: { readonly status: number; readonly body: string } | undefined;
  logFields?: Readonly<Record<string, unknown>>;
  rejectionHeaders: Readonly<Record<string, string | string[]>> = {};
  readonly #onWrite: ((client: RecordingClient) => void) | undefined;

  /** `onWrite` is called after every write, so that a client can leave at any moment. */
  constructor(onWrite?: (client: RecordingClient) => void) {
    this.#onWrite = onWrite;
  }

  get begun(): boolean {
    return this.opened;
  }

  open(headers: Readonly<Record<string, string>>): void {
    if (this.opened || this.rejection) throw new Error('opened twice, or after a rejection');
    this.opened = true;
    this.headers = headers;
  }

  write(frames: string): boolean {
    if (!this.opened || this.ended || this.destroyed)
      throw new Error('written before the opening or after the end');
    this.body += frames;
    this.#onWrite?.(this);
    return true;
  }

  async drained(): Promise<void> {}

  end(frames: string): void {
    this.write(frames);
    this.ended = true;
  }

  destroy(): void {
    if (this.ended || this.rejection) throw new Error('destroyed after the end');
    this.destroyed = true;
  }

  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void {
    if (this.opened || this.rejection) throw new Error('rejected after an opening, or twice');
    const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
    this.rejection = { status, body: text };
    this.rejectionHeaders = headers;
  }
}
