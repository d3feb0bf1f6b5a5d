import { writeFileSync } from 'node:fs';
import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BEATS_PER_LEASE } from '../store.ts';
import { replicaName } from './names.ts';
import { isCode } from './private-directory.ts';

const PRIVATE_FILE = 0o600;

export interface HeartbeatOptions {
  readonly dir: string;
  readonly replica: string;
  readonly lease_ms: number;
  /** Once for every series of failures. */
  onError(error: Error): void;
}

/**
 * Tells every process that uses the directory that this one is alive. It beats on the thread that serves, so that a
 * process which is stopped, or wedged, falls silent; without waiting for the disk, which may be why it is slow.
 */
export class Heartbeat {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;
  readonly #onError: (error: Error) => void;
  #beating: Promise<void> | undefined;
  #failing: boolean = false;

  /** Throws a private-directory error when not even the first beat succeeds. */
  constructor({ dir, replica, lease_ms, onError }: HeartbeatOptions) {
    this.#path = join(dir, replicaName(replica));
    this.#onError = onError;
    writeFileSync(this.#path, '', { mode: PRIVATE_FILE });
    this.#timer = setInterval(() => this.#beat(), lease_ms / BEATS_PER_LEASE).unref();
  }

  /** Leaves no sign of life behind: the runs of this process are lost at once. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    await rm(this.#path, { force: true });
  }

  #beat(): void {
    this.#beating ??= this.#touch().finally(() => {
      this.#beating = undefined;
    });
  }

  async #touch(): Promise<void> {
    try {
      const now = new Date();
      await utimes(this.#path, now, now).catch(async (error: unknown) => {
        // Another process swept it, because this one had been silent for long.
        if (!isCode(error, 'ENOENT')) throw error;
        await writeFile(this.#path, '', { mode: PRIVATE_FILE });
      });
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#onError(error as Error);
      this.#failing = true;
    }
  }
}
