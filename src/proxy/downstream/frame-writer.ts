import type { Time } from '../../lib/time.ts';
import type { Client } from './client.ts';

/** Until then a failure can still be answered with a proper status. */
const HEADERS_WAIT_MS = 5_000;
export const KEEP_ALIVE_MS = 10_000;
/** Some clients' timers ignore comments and run for two minutes. */
const SILENCE_MAX_MS = 60_000;
/** A single newline: an empty line after a comment is an empty event to some clients, which they die of. */
export const KEEP_ALIVE = ': hb\n';

export interface FrameWriterOptions {
  readonly client: Client;
  readonly time: Time;
  /** Asked for when the response is opened. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Nothing but comments was sent for a minute. True if something better is on its way now. */
  readonly onSilence: () => boolean;
}

/**
 * Frames on their way to one client: collected, written once for everything that came together, and opening the
 * response when the first of them is there, or after five seconds. Keeps the connection alive while there are none.
 */
export class FrameWriter {
  readonly #options: FrameWriterOptions;
  #frames = '';
  #state: 'open' | 'ended' | 'closed' = 'open';
  #blocked = false;
  #written_ms: number;
  #data_ms: number;
  #cancelTimer: () => void;

  constructor(options: FrameWriterOptions) {
    this.#options = options;
    this.#written_ms = options.time.now();
    this.#data_ms = this.#written_ms;
    this.#cancelTimer = options.time.after(HEADERS_WAIT_MS, () => this.#keepAlive());
  }

  /** The whole response was handed to the client. */
  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Something was collected that {@link flush} would write. */
  get pending(): boolean {
    return this.#frames !== '';
  }

  add(frame: string): void {
    this.#frames += frame;
  }

  /** Writes what was collected. The promise, if any, is the client's backpressure. */
  flush(): Promise<void> | undefined {
    if (this.#frames === '' || this.#state !== 'open') return undefined;
    const { client, time } = this.#options;
    if (!client.opened) client.open(this.#options.headers());
    const frames = this.#frames;
    this.#frames = '';
    this.#written_ms = time.now();
    this.#data_ms = this.#written_ms;
    if (client.write(frames)) return undefined;
    return this.#drained();
  }

  /** Writes what was collected together with the end of the response. */
  end(): void {
    const { client } = this.#options;
    this.#cancelTimer();
    if (this.#state === 'closed') return;
    this.#state = 'ended';
    if (!client.opened) client.open(this.#options.headers());
    client.end(this.#frames);
    this.#frames = '';
  }

  /** Nothing more is sent, whatever was collected. */
  close(): void {
    this.#cancelTimer();
    if (this.#state === 'open') this.#state = 'closed';
  }

  async #drained(): Promise<void> {
    this.#blocked = true;
    await this.#options.client.drained();
    this.#blocked = false;
  }

  #keepAlive(): void {
    const { client, time } = this.#options;
    const now_ms = time.now();
    if (!this.#blocked && (!client.opened || now_ms - this.#written_ms >= KEEP_ALIVE_MS)) {
      if (!client.opened) client.open(this.#options.headers());
      const isSilent = now_ms - this.#data_ms >= SILENCE_MAX_MS;
      if (!isSilent || !this.#options.onSilence()) {
        this.#written_ms = now_ms;
        if (!client.write(KEEP_ALIVE)) void this.#drained();
      }
    }
    this.#cancelTimer = time.after(KEEP_ALIVE_MS, () => this.#keepAlive());
  }
}
