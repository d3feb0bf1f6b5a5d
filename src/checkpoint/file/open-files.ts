import type { FileSystem } from './file-system.ts';

/** A bounded number of open files by slot. Beyond the limit the one opened first is closed, to be opened again later. */
export class OpenFiles {
  readonly #fs: Pick<FileSystem, 'closeSync'>;
  readonly #files_max: number;
  readonly #files = new Map<number, number>();

  constructor(fs: Pick<FileSystem, 'closeSync'>, files_max: number) {
    this.#fs = fs;
    this.#files_max = files_max;
  }

  get(slot: number): number | undefined {
    return this.#files.get(slot);
  }

  keep(slot: number, fd: number): void {
    const [oldest] = this.#files.keys();
    if (this.#files.size >= this.#files_max && oldest !== undefined) this.close(oldest);
    this.#files.set(slot, fd);
  }

  /** Takes a file out, so that nobody closes it meanwhile. */
  take(slot: number): number | undefined {
    const fd = this.#files.get(slot);
    this.#files.delete(slot);
    return fd;
  }

  close(slot: number): void {
    const fd = this.take(slot);
    if (fd !== undefined) this.#fs.closeSync(fd);
  }
}
