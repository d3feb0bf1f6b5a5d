import { segmentName } from './names.ts';
import type { PrivateDirectory } from './private-directory.ts';

/** The maximum number of closed segments kept open for reading. */
const READERS_MAX = 32;
/** Places at most this far apart are read in one call. */
const READ_GAP_BYTES = 16_384;

/** The current segment, which is already open. */
interface PresentSegment {
  readonly segment: number;
  readonly fd: number;
}

/** Reads lines from any segment by place. */
export class SegmentReaders {
  readonly #directory: PrivateDirectory;
  /** Ordered by how long the file has been open, longest first. */
  readonly #open = new Map<number, number>();

  constructor(directory: PrivateDirectory) {
    this.#directory = directory;
  }

  /** The lines at these places, each with a newline. Throws `ENOENT` if a segment was removed. */
  read(places: readonly number[], present: PresentSegment): Buffer {
    const parts: Buffer[] = [];
    for (let at = 0; at < places.length; ) {
      const [segment, offset] = [places[at] as number, places[at + 1] as number];
      let [last, end] = [at, offset];
      while (last < places.length && places[last] === segment) {
        const next = places[last + 1] as number;
        if (next < end || next - end > READ_GAP_BYTES) break;
        end = next + (places[last + 2] as number) + 1;
        last += 3;
      }
      const fd = segment === present.segment ? present.fd : this.#reader(segment);
      const bytes = this.#directory.readRange(fd, offset, end);
      for (; at < last; at += 3) {
        const start = (places[at + 1] as number) - offset;
        parts.push(bytes.subarray(start, start + (places[at + 2] as number) + 1));
      }
    }
    return Buffer.concat(parts);
  }

  /** Closes the file of a removed segment. */
  forget(segment: number): void {
    const fd = this.#open.get(segment);
    this.#open.delete(segment);
    if (fd !== undefined) this.#directory.fs.closeSync(fd);
  }

  close(): void {
    for (const segment of [...this.#open.keys()]) this.forget(segment);
  }

  #reader(segment: number): number {
    const open = this.#open.get(segment);
    if (open !== undefined) return open;
    const [oldest] = this.#open.keys();
    if (this.#open.size >= READERS_MAX && oldest !== undefined) this.forget(oldest);
    const fd = this.#directory.openToRead(segmentName(segment));
    this.#open.set(segment, fd);
    return fd;
  }
}
