import * as node_fs from 'node:fs';
import { join } from 'node:path';
import { refused } from './file-refusal.ts';
import { type FileSystem, isCode } from './file-system.ts';

const PRIVATE_FILE = 0o600;
const PRIVATE_DIRECTORY = 0o700;
/** Entries that one system call may bring. */
const ENTRIES_PER_READ = 512;
const { O_APPEND, O_CREAT, O_EXCL, O_WRONLY } = node_fs.constants;

/** A directory of private files, as the writing thread uses it: everything is synchronous. */
export class FileDirectory {
  readonly fs: FileSystem;
  readonly #dir: string;

  constructor(dir: string, fs: FileSystem = node_fs) {
    this.#dir = dir;
    this.fs = fs;
  }

  path(name: string): string {
    return join(this.#dir, name);
  }

  has(name: string): boolean {
    return this.fs.existsSync(this.path(name));
  }

  /** Undefined when there is no such file. */
  modified_ms(name: string): number | undefined {
    return this.fs.statSync(this.path(name), { throwIfNoEntry: false })?.mtimeMs;
  }

  /** Undefined when there is no such file. */
  read(name: string): Buffer | undefined {
    return unlessMissing(() => this.fs.readFileSync(this.path(name)));
  }

  /** The first bytes of a file, or all of them; undefined when there is no such file. */
  readStart(name: string, bytes_max: number): Buffer | undefined {
    const fd = unlessMissing(() => this.fs.openSync(this.path(name), 'r'));
    if (fd === undefined) return undefined;
    try {
      const start = Buffer.alloc(bytes_max);
      return start.subarray(0, this.fs.readSync(fd, start, 0, bytes_max, 0));
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /** The last bytes of a file, or all of them; undefined when there is no such file. */
  readEnd(name: string, bytes_max: number): Buffer | undefined {
    const fd = unlessMissing(() => this.fs.openSync(this.path(name), 'r'));
    if (fd === undefined) return undefined;
    try {
      const { size } = this.fs.fstatSync(fd);
      const end = Buffer.alloc(Math.min(size, bytes_max));
      return end.subarray(0, this.fs.readSync(fd, end, 0, end.length, size - end.length));
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /** A new file to append to; undefined when there is one of that name. */
  create(name: string): number | undefined {
    try {
      return this.fs.openSync(this.path(name), O_WRONLY | O_APPEND | O_CREAT | O_EXCL, PRIVATE_FILE);
    } catch (error) {
      if (isCode(error, 'EEXIST')) return undefined;
      throw error;
    }
  }

  /** A file to append to that must exist; undefined when it does not. */
  reopen(name: string): number | undefined {
    return unlessMissing(() => this.fs.openSync(this.path(name), O_WRONLY | O_APPEND));
  }

  /** Returns how many bytes were written; throws when not all of them were. */
  write(fd: number, text: string): number {
    const written = this.fs.writeSync(fd, text);
    const wanted = Buffer.byteLength(text);
    if (written !== wanted) throw refused('ENOSPC', `only ${written} of ${wanted} bytes were written`);
    return written;
  }

  /** Makes or replaces a whole file. `sync`: its content is on the disk before this returns. */
  replace(name: string, text: string, sync = false): void {
    const fd = this.fs.openSync(this.path(name), 'w', PRIVATE_FILE);
    try {
      this.write(fd, text);
      if (sync) this.fs.fdatasyncSync(fd);
    } finally {
      this.fs.closeSync(fd);
    }
  }

  /** False when there is no file `from`. */
  rename(from: string, to: string): boolean {
    const renamed = unlessMissing(() => {
      this.fs.renameSync(this.path(from), this.path(to));
      return true;
    });
    return renamed ?? false;
  }

  /** Gives a file a second name; false when that one is in use. */
  link(from: string, to: string): boolean {
    try {
      this.fs.linkSync(this.path(from), this.path(to));
      return true;
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false;
      throw error;
    }
  }

  /** There may be no such file. */
  remove(name: string): void {
    this.fs.rmSync(this.path(name), { force: true });
  }

  /** A directory in this one, whether it is there or not. */
  within(name: string): FileDirectory {
    return new FileDirectory(this.path(name), this.fs);
  }

  /** Makes a directory in this one, which may be there already. */
  make(name: string): void {
    this.fs.mkdirSync(this.path(name), { recursive: true, mode: PRIVATE_DIRECTORY });
  }

  /** Removes a directory in this one, unless something is in it. */
  removeIfEmpty(name: string): void {
    try {
      this.fs.rmdirSync(this.path(name));
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR'].some((code) => isCode(error, code))) throw error;
    }
  }

  /** What is in it; nothing when it is not there. */
  names(): readonly string[] {
    const names: string[] = [];
    const entries = unlessMissing(() => this.entries());
    try {
      for (let entry = entries?.readSync(); entry; entry = entries?.readSync()) names.push(entry.name);
    } finally {
      entries?.closeSync();
    }
    return names;
  }

  entries(): node_fs.Dir {
    return this.fs.opendirSync(this.#dir, { bufferSize: ENTRIES_PER_READ });
  }
}

function unlessMissing<Result>(call: () => Result): Result | undefined {
  try {
    return call();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
