import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A changed file is read after this delay, and again until it stays the same for as long. */
const SETTLE_MS = 200;

interface FileWatchHandlers {
  /** The content has changed, or the file is gone. */
  onChange(): void;
  /** Changes may go unnoticed from now on. Called once. */
  onFault(error: Error): void;
}

/**
 * Detects changes of a file's content, however they are made. Watches directories, because editors replace the file,
 * and Kubernetes switches a link beside it (`..data`). A watch on the file itself would end with the first change.
 */
export class FileWatch {
  readonly #path: string;
  readonly #watchers = new Map<string, FSWatcher>();
  /** The content last reported, initially the content at construction. */
  #known: string | undefined;
  #seen: string | undefined;
  #handlers: FileWatchHandlers | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFaulty = false;

  /** Changes count from construction, but are reported only after {@link start}. */
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
      // The file may still be being written.
      this.#seen = content;
      this.#lookSoon();
    } else if (content !== this.#known) {
      this.#known = content;
      this.#handlers?.onChange();
    }
  }

  /** Watches the directory of the path, and that of the file it currently resolves to. */
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

/** Undefined if there is no regular file. Pipes aren't read, because their content can be read only once. */
function contentOf(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

/** The path itself if it can't be resolved. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
