import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A file that has changed is looked at so long after that, and again until it has stayed the same for as long. */
const SETTLE_MS = 200;

interface FileWatchHandlers {
  /** The content is another one now, or there is none. */
  onChange(): void;
  /** Changes may pass unnoticed from now on. Called once. */
  onFault(error: Error): void;
}

/**
 * Notices changes of a file's content, however they are made. Directories are watched, because editors put a new file in the
 * place of the old one, and Kubernetes changes where a link beside it leads (`..data`); the file itself would be lost with the
 * first change.
 */
export class FileWatch {
  readonly #path: string;
  readonly #watchers = new Map<string, FSWatcher>();
  /** What was reported last, or was there at the beginning. */
  #known: string | undefined;
  #seen: string | undefined;
  #handlers: FileWatchHandlers | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFaulty = false;

  /** A change counts from now on, although it is reported only once this was started. */
  constructor(path: string) {
    this.#path = resolve(path);
    this.#known = contentOf(this.#path);
    this.#seen = this.#known;
  }

  start(handlers: FileWatchHandlers): void {
    this.#handlers = handlers;
    this.#watchDirectories();
    this.#look();
  }

  close(): void {
    this.#handlers = undefined;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  readonly #lookSoon = (): void => {
    if (!this.#handlers) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#watchDirectories();
      this.#look();
    }, SETTLE_MS);
  };

  #look(): void {
    const content = contentOf(this.#path);
    if (content !== this.#seen) {
      // It may still be being written.
      this.#seen = content;
      this.#lookSoon();
    } else if (content !== this.#known) {
      this.#known = content;
      this.#handlers?.onChange();
    }
  }

  /** That of the path, and that of the file which it leads to now. */
  #watchDirectories(): void {
    const wanted = new Set([dirname(this.#path), dirname(targetOf(this.#path))]);
    for (const [directory, watcher] of this.#watchers) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const directory of wanted) if (!this.#watchers.has(directory)) this.#watch(directory);
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, this.#lookSoon);
      watcher.on('error', (error) => this.#lose(directory, error));
      this.#watchers.set(directory, watcher);
    } catch (error) {
      this.#lose(directory, error as Error);
    }
  }

  #lose(directory: string, error: Error): void {
    this.#watchers.get(directory)?.close();
    this.#watchers.delete(directory);
    if (!this.#isFaulty) this.#handlers?.onFault(error);
    this.#isFaulty = true;
  }
}

/** A pipe is not read: what is in it is there once. */
function contentOf(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

/** The path itself where it leads nowhere. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
