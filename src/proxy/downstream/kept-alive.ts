import type { Time } from '../../lib/time.ts';
import type { Client } from './client.ts';
import { KEEP_ALIVE } from './event-frame.ts';

/** Writes frames to a client with backpressure, and keep-alive comments while it is idle. */
export class KeptAlive {
  readonly #client: Client;
  readonly #time: Time;
  readonly #keepalive_ms: number;
  readonly #onTick: () => void;
  #isBlocked = false;
  #written_ms: number;
  #cancelTimer: () => void;

  /** `onTick`: called every `keepalive_ms`, whether idle or not. */
  constructor(client: Client, time: Time, keepalive_ms: number, onTick: () => void = () => {}) {
    this.#client = client;
    this.#time = time;
    this.#keepalive_ms = keepalive_ms;
    this.#onTick = onTick;
    this.#written_ms = time.now();
    this.#cancelTimer = time.after(keepalive_ms, () => this.#tick());
  }

  /** Resolves once the client accepts more, or has disconnected. */
  async write(frames: string): Promise<void> {
    this.#written_ms = this.#time.now();
    if (this.#client.write(frames)) return;
    this.#isBlocked = true;
    await this.#client.drained();
    this.#isBlocked = false;
  }

  /** Stops the comments. */
  close(): void {
    this.#cancelTimer();
  }

  #tick(): void {
    this.#onTick();
    const isIdle = this.#time.now() - this.#written_ms >= this.#keepalive_ms;
    if (this.#client.opened && !this.#isBlocked && isIdle) void this.write(KEEP_ALIVE);
    this.#cancelTimer = this.#time.after(this.#keepalive_ms, () => this.#tick());
  }
}
