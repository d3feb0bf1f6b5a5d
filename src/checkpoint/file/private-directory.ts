import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { refused } from './refusal.ts';

const PRIVATE_FILE = 0o600;
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDONLY, O_RDWR } = node_fs.constants;

/** The file-system calls in use, replaceable by tests that make them fail. */
export type FileSystem = Pick<
  typeof node_fs,
  | 'closeSync'
  | 'fdatasync'
  | 'fdatasyncSync'
  | 'fstatSync'
  | 'fsync'
  | 'openSync'
  | 'readSync'
  | 'readdirSync'
  | 'rmSync'
  | 'statSync'
  | 'writeSync'
>;

/**
 * The writer thread's view of a directory of private files. All calls but `sync` are synchronous, and symbolic links
 * aren't followed.
 */
export class PrivateDirectory {
  readonly fs: FileSystem;
  readonly #dir: string;

  constructor(dir: string, fs: FileSystem = node_fs) {
    this.#dir = dir;
    this.fs = fs;
  }

  names(): readonly string[] {
    return this.fs.readdirSync(this.#dir);
  }

  /** Throws `ENOENT` if the file doesn't exist. */
  stat(name: string): node_fs.Stats {
    return this.fs.statSync(join(this.#dir, name));
  }

  /** Undefined if the file doesn't exist. */
  modified_ms(name: string): number | undefined {
    return this.fs.statSync(join(this.#dir, name), { throwIfNoEntry: false })?.mtimeMs;
  }

  /** Opens a file for appending and reading. `create`: create it if it doesn't exist. */
  openLog(name: string, create: boolean): number {
    const fd = this.#open(name, O_RDWR | O_APPEND | (create ? O_CREAT : 0));
    if (this.fs.fstatSync(fd).isFile()) return fd;
    this.fs.closeSync(fd);
    throw refused('EINVAL', `${join(this.#dir, name)} is no regular file`);
  }

  openToRead(name: string): number {
    return this.#open(name, O_RDONLY);
  }

  /** The bytes from `start` up to but excluding `end`, or fewer if the file is shorter. */
  readRange(fd: number, start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    let read = 0;
    while (read < bytes.length) {
      const more = this.fs.readSync(fd, bytes, read, bytes.length - read, start + read);
      if (more === 0) break;
      read += more;
    }
    return bytes.subarray(0, read);
  }

  /** Writes `text` to a file, replacing an existing one. */
  write(name: string, text: string): void {
    const fd = this.#open(name, O_RDWR | O_CREAT);
    try {
      const written = this.fs.writeSync(fd, text);
      if (written !== text.length)
        throw refused('ENOSPC', `only ${written} of ${text.length} bytes were written`);
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /**
   * Overwrites parts of a file without changing its length. Does nothing if the file doesn't exist. `sync`: also flush
   * them to disk.
   */
  overwrite(name: string, parts: readonly { readonly offset: number; readonly content: Buffer }[]): void {
    const fd = unlessMissing(() => this.#open(name, O_RDWR));
    if (fd === undefined) return;
    try {
      for (const { offset, content } of parts) this.fs.writeSync(fd, content, 0, content.length, offset);
      this.fs.fdatasyncSync(fd);
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /** Resolves once the directory's file names survive a power cut. */
  async sync(): Promise<void> {
    const fd = this.fs.openSync(this.#dir, O_RDONLY);
    try {
      await new Promise<void>((resolve, reject) => {
        this.fs.fsync(fd, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /** Does nothing if the file doesn't exist. */
  remove(name: string): void {
    this.fs.rmSync(join(this.#dir, name), { force: true });
  }

  #open(name: string, flags: number): number {
    return this.fs.openSync(join(this.#dir, name), flags | O_NOFOLLOW, PRIVATE_FILE);
  }
}

export function unlessMissing<Result>(call: () => Result): Result | undefined {
  try {
    return call();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
