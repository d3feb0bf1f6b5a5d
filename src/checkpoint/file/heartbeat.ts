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
  /** Called once per series of failures. */
  onError(error: Error): void;
}

/**
 * Shows the other processes on the directory that this one is alive. It runs on the serving thread, so that a stopped
 * or blocked process falls silent, and doesn't wait for a slow disk.
 */
export class Heartbeat {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;
  readonly #onError: (error: Error) => void;
  #beating: Promise<void> | undefined;
  #failing: boolean = false;

  /** Throws a private-directory error if the first sign of life fails. */
  constructor({ dir, replica, lease_ms, onError }: HeartbeatOptions) {
    this.#path = join(dir, replicaName(replica));
    this.#onError = onError;
    writeFileSync(this.#path, '', { mode: PRIVATE_FILE });
    this.#timer = setInterval(() => this.#beat(), lease_ms / BEATS_PER_LEASE).unref();
  }

  /** Removes the sign of life, so that this process's runs count as lost at once. */
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
        // Another process removed the file because this one had been silent for long.
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
