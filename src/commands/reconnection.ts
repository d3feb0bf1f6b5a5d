import { setTimeout as pause } from 'node:timers/promises';
import { CommandFailure } from './command.ts';
import { ReplicaUnreachable } from './replica-port.ts';

const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2000;
/** How long nothing new may come before it is given up. */
const FRUITLESS_MAX_MS = 60_000;

/** Decides whether a connection that broke is made again, and waits until it is. */
export class Reconnection {
  #pause_ms = PAUSE_MIN_MS;
  #fruitful_at_ms = performance.now();

  /** Something new has come. */
  succeeded(): void {
    this.#pause_ms = PAUSE_MIN_MS;
    this.#fruitful_at_ms = performance.now();
  }

  /** Resolves when it is time to connect again. Rejects with what is wrong when that is of no use. */
  async after(error: unknown): Promise<void> {
    if (error instanceof CommandFailure && !(error instanceof ReplicaUnreachable)) throw error;
    if (performance.now() - this.#fruitful_at_ms > FRUITLESS_MAX_MS) {
      if (error instanceof CommandFailure) throw error;
      throw new CommandFailure('the connection broke, and nothing more came of connecting again.');
    }
    await pause(this.#pause_ms);
    this.#pause_ms = Math.min(2 * this.#pause_ms, PAUSE_MAX_MS);
  }
}
