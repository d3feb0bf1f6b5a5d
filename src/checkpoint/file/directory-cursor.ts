import type { Dir } from 'node:fs';
import type { FileDirectory } from './file-directory.ts';

/** Goes round a directory, a bounded number of entries at a time. */
export class DirectoryCursor {
  readonly #directory: FileDirectory;
  #entries: Dir | undefined;

  constructor(directory: FileDirectory) {
    this.#directory = directory;
  }

  /**
   * Calls `visit` with the names of the next entries, until it returns false. True when it came to the end: the next
   * call begins another round.
   */
  advance(entries_max: number, visit: (name: string) => boolean): boolean {
    this.#entries ??= this.#directory.entries();
    for (let i = 0; i < entries_max; i++) {
      const entry = this.#entries.readSync();
      if (!entry) {
        this.close();
        return true;
      }
      if (!visit(entry.name)) return false;
    }
    return false;
  }

  close(): void {
    this.#entries?.closeSync();
    this.#entries = undefined;
  }
}
