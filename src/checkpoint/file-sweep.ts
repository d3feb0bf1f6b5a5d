import { type Dir, opendirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseFileName } from './file-names.ts';
import type { RunId } from './store.ts';

/** Directory entries looked at in one pass: a pass holds up the writing thread for a few milliseconds at most. */
const ENTRIES_PER_PASS = 500;
export const SWEEP_EVERY_MS = 60_000;
/** Holders touch their files with every pass; a file untouched for so many passes has no living holder. */
const ALIVE_MS = 5 * SWEEP_EVERY_MS;

/** Removes expired runs, a bounded number of directory entries at a time. */
export class FileSweep {
  readonly #dir: string;
  readonly #ttl_ms: number;
  #entries: Dir | undefined;

  /** `ttl_ms`: how long a run is kept after its last append. */
  constructor(options: { readonly dir: string; readonly ttl_ms: number }) {
    this.#dir = options.dir;
    this.#ttl_ms = options.ttl_ms;
  }

  /** One pass. Runs in `held` are never removed, nor are runs whose holder may live in another process. */
  pass(now_ms: number, held: ReadonlySet<RunId>): void {
    this.#entries ??= opendirSync(this.#dir);
    for (let i = 0; i < ENTRIES_PER_PASS; i++) {
      const entry = this.#entries.readSync();
      if (!entry) {
        this.close();
        return;
      }
      if (this.#isExpired(entry.name, now_ms, held)) rmSync(join(this.#dir, entry.name), { force: true });
    }
  }

  close(): void {
    this.#entries?.closeSync();
    this.#entries = undefined;
  }

  #isExpired(name: string, now_ms: number, held: ReadonlySet<RunId>): boolean {
    const file = parseFileName(name);
    if (!file || held.has(file.run)) return false;
    const stat = statSync(join(this.#dir, name), { throwIfNoEntry: false });
    if (!stat) return false;
    const idle_ms = now_ms - stat.mtimeMs;
    return idle_ms >= (file.finished ? this.#ttl_ms : Math.max(this.#ttl_ms, ALIVE_MS));
  }
}
