import {
  decodeFrame,
  encodeFrame,
  endOfSplit,
  endOfUnended,
  type Frame,
  isCutShort,
  type Place,
  VERSION,
} from './frame.ts';
import { segmentName, segmentNumber } from './names.ts';
import { isCode, type PrivateDirectory, unlessMissing } from './private-directory.ts';
import { refused } from './refusal.ts';
import { SegmentReaders } from './segment-readers.ts';

const SEGMENT_BYTES = 16 * 1024 * 1024;
/**
 * The ends of runs are forced to disk together, this long after the first of them, because data that is only written
 * survives a killed process but no power cut. Measured with short answers: if each waits for the disk, an answer costs 5
 * to 8 % more CPU, also because its run stays in memory for longer.
 */
export const SYNC_AFTER_MS = 50;
/** Precision of the recorded append times. */
const CLOCK_STEP_MS = 1000;
const NEWLINE = 0x0a;

/** The effect of a frame that this process appended. */
export interface Outcome {
  /** `ok`, or why the frame doesn't count. */
  readonly code: 'ok' | 'stale' | 'taken' | 'foreign' | 'finished' | 'missing';
  /** Place of the frame's subject in the log. */
  readonly place?: Place;
}

/** Receives the log's content in the order in which all processes read it. */
export interface LogReader {
  frame(frame: Frame, bytes: Buffer, place: Place, at_ms: number): Outcome;
  /** Called for a line that was written whole and can no longer be read. */
  damaged(bytes: Buffer, start: number, end: number, place: Place): void;
}

export interface SegmentLogOptions {
  readonly directory: PrivateDirectory;
  readonly reader: LogReader;
  readonly segment_bytes?: number | undefined;
  /** Receives the errors of a disk to which written data could not be forced. */
  onError(error: Error): void;
}

/**
 * One log in segments, shared by all processes on a directory. Each write is a single append, so a file has one order
 * of writes and every process reads them in that order. A process knows the effect of its own write once it has read
 * that far. The first closing frame ends a segment: later writes to it don't count, and their processes repeat them in
 * the next segment.
 */
export class SegmentLog {
  readonly #directory: PrivateDirectory;
  readonly #reader: LogReader;
  readonly #segment_bytes: number;
  readonly #onError: (error: Error) => void;
  readonly #readers: SegmentReaders;
  #segment = 0;
  #fd = -1;
  #inode = 0;
  /** The offset up to which the current segment was read. */
  #end = 0;
  #closed: boolean = true;
  /** This process created a segment whose name may not survive a power cut yet. */
  #isNew: boolean = false;
  #at_ms = 0;
  /** Set while data waits to be forced to disk. */
  #sync_timer: NodeJS.Timeout | undefined;
  /** Set while the disk is at it. */
  #syncing: Promise<void> | undefined;

  constructor({ directory, reader, segment_bytes = SEGMENT_BYTES, onError }: SegmentLogOptions) {
    this.#directory = directory;
    this.#readers = new SegmentReaders(directory);
    this.#reader = reader;
    this.#segment_bytes = segment_bytes;
    this.#onError = onError;
  }

  /** The current segment, which is appended to. */
  get segment(): number {
    return this.#segment;
  }

  /** In ascending order. */
  segments(): readonly number[] {
    return this.#directory
      .names()
      .flatMap((name) => segmentNumber(name) ?? [])
      .sort((a, b) => a - b);
  }

  /** Reads the whole log. */
  open(): void {
    this.catchUp();
    for (;;) {
      const segment = this.#segment;
      if (!this.segments().some((number) => number > segment)) return;
      this.catchUp();
      // The closing frame is damaged. The segment must have been closed, because a later one exists, and all of it was
      // read after that.
      if (this.#segment === segment) this.#closed = true;
    }
  }

  /** Reads everything appended since the last call. */
  catchUp(): void {
    for (;;) {
      while (this.#closed) this.#next();
      const size = this.#size();
      if (size > this.#end) this.#consume(this.#directory.readRange(this.#fd, this.#end, size), this.#end);
      if (!this.#closed) return;
    }
  }

  /**
   * Appends lines and reads back up to them. Returns their outcomes in order, or fewer if not all lines could be
   * written. Throws if nothing was written, or if it isn't known what was.
   */
  append(lines: string | Buffer): readonly Outcome[] {
    if (this.#end >= this.#segment_bytes) this.#rotate();
    for (;;) {
      const head = this.#head();
      const bytes =
        typeof lines === 'string' ? Buffer.from(head + lines) : Buffer.concat([Buffer.from(head), lines]);
      const written = this.#directory.fs.writeSync(this.#fd, bytes);
      const outcomes = this.#readOwn(bytes.subarray(0, written), head.length);
      if (!outcomes) {
        this.catchUp();
        continue;
      }
      return outcomes;
    }
  }

  /** Forces everything appended so far to disk soon. */
  syncSoon(): void {
    this.#sync_timer ??= setTimeout(() => void this.#sync(), SYNC_AFTER_MS);
  }

  /** The lines at these places, each with a newline. Throws `ENOENT` if a segment was removed. */
  read(places: readonly number[]): Buffer {
    return this.#readers.read(places, { segment: this.#segment, fd: this.#fd });
  }

  /**
   * The lines at the places that `find` returns; undefined if they are gone. Asks `find` again when another process has
   * copied the lines elsewhere and removed their segment.
   */
  readCurrent(find: () => readonly number[]): Buffer | undefined {
    let missed: readonly number[] | undefined;
    for (;;) {
      const places = find();
      if (missed?.length === places.length && missed.every((number, at) => number === places[at]))
        return undefined;
      try {
        return this.read(places);
      } catch (error) {
        if (!isCode(error, 'ENOENT')) throw error;
        missed = [...places];
        this.catchUp();
      }
    }
  }

  /** Overwrites the lines at these places, so that their content can't be read any more. */
  blank(places: readonly number[]): void {
    const bySegment = new Map<number, { offset: number; content: Buffer }[]>();
    for (let at = 0; at < places.length; at += 3) {
      const parts = bySegment.get(places[at] as number) ?? [];
      parts.push({ offset: places[at + 1] as number, content: Buffer.alloc(places[at + 2] as number, '\n') });
      bySegment.set(places[at] as number, parts);
    }
    for (const [segment, parts] of bySegment) this.#directory.overwrite(segmentName(segment), parts);
  }

  bytesOf(segment: number): number {
    return unlessMissing(() => this.#directory.stat(segmentName(segment)).size) ?? 0;
  }

  /** Removes a closed segment. */
  remove(segment: number): void {
    this.#directory.remove(segmentName(segment));
    this.#readers.forget(segment);
  }

  close(): void {
    this.#readers.close();
    if (this.#sync_timer !== undefined) this.#syncAtLast();
    this.#leave();
    this.#fd = -1;
  }

  /** Moves from the current segment, which is closed, to the next one; initially to the oldest one. */
  #next(): void {
    if (this.#fd >= 0) this.#directory.fs.fdatasyncSync(this.#fd);
    const following = this.segments().find((number) => number > this.#segment);
    const number = following ?? this.#segment + 1;
    const fd = unlessMissing(() => this.#directory.openLog(segmentName(number), following === undefined));
    if (fd === undefined) {
      if (following === undefined) throw refused('ENOENT', 'the directory was removed');
      this.#segment = number;
      return;
    }
    if (following === undefined) this.#isNew = true;
    this.#leave();
    this.#fd = fd;
    this.#inode = this.#directory.fs.fstatSync(fd).ino;
    this.#segment = number;
    this.#end = 0;
    this.#closed = false;
  }

  #leave(): void {
    const fd = this.#fd;
    if (fd < 0) return;
    const close = () => this.#directory.fs.closeSync(fd);
    if (this.#syncing !== undefined) void this.#syncing.then(close);
    else close();
  }

  #size(): number {
    try {
      const { ino, size } = this.#directory.stat(segmentName(this.#segment));
      if (ino === this.#inode) return size;
    } catch (error) {
      if (!isCode(error, 'ENOENT') || !this.segments().some((number) => number > this.#segment)) throw error;
      // Another process closed and removed the segment. The lines that are still needed were copied to later ones.
      const { size } = this.#directory.fs.fstatSync(this.#fd);
      if (size === this.#end) this.#closed = true;
      return size;
    }
    throw refused('ESTALE', `${segmentName(this.#segment)} is not the file that it was`);
  }

  #rotate(): void {
    this.#directory.fs.writeSync(this.#fd, `\n${encodeFrame('s', '-', 0, '')}`);
    this.catchUp();
  }

  /** The prefix of a write: a newline that terminates an unfinished line and, periodically, the time. */
  #head(): string {
    const now_ms = Date.now();
    if (this.#end > 0 && Math.abs(now_ms - this.#at_ms) < CLOCK_STEP_MS) return '\n';
    return `\n${encodeFrame('h', '-', now_ms, String(VERSION))}`;
  }

  /** Undefined if the segment was closed before these lines. `own`: the written bytes, whose lines begin at `start`. */
  #readOwn(own: Buffer, start: number): readonly Outcome[] | undefined {
    const base = this.#end;
    const { size } = this.#directory.fs.fstatSync(this.#fd);
    const region = size === base + own.length ? own : this.#directory.readRange(this.#fd, base, size);
    const at = region === own ? 0 : region.indexOf(own);
    if (at < 0) throw refused('EIO', 'what was written cannot be read back');
    const outcomes: Outcome[] = [];
    this.#consume(region, base, at + start, at + own.length, outcomes);
    return this.#closed && this.#end <= base + at ? undefined : outcomes;
  }

  /**
   * Passes on the complete lines of `bytes`, which begin at offset `base`. `outcomes` receives those of the lines
   * between `from` and `to`.
   */
  #consume(bytes: Buffer, base: number, from = 0, to = 0, outcomes?: Outcome[]): void {
    for (let start = 0; start < bytes.length && !this.#closed; ) {
      const newline = bytes.indexOf(NEWLINE, start);
      if (newline < 0) return;
      const frame = newline > start ? decodeFrame(bytes, start, newline) : undefined;
      const end =
        frame || newline === start
          ? newline
          : (endOfUnended(bytes, start, newline) ?? endOfSplit(bytes, start, newline) ?? newline);
      const outcome = end > start ? this.#line(frame, bytes, start, end, base) : undefined;
      if (outcome && start >= from && start < to) outcomes?.push(outcome);
      start = end + 1;
      this.#end = base + start;
    }
  }

  #line(
    known: Frame | undefined,
    bytes: Buffer,
    start: number,
    end: number,
    base: number,
  ): Outcome | undefined {
    const place = { segment: this.#segment, offset: base + start, bytes: end - start };
    const frame = known ?? decodeFrame(bytes, start, end);
    if (!frame) {
      if (!this.#isUnfinished(bytes, start, end)) this.#reader.damaged(bytes, start, end, place);
      return undefined;
    }
    if (frame.kind === 's') this.#closed = true;
    else if (frame.kind === 'h') this.#at_ms = readClock(frame, bytes);
    else return this.#reader.frame(frame, bytes, place, this.#at_ms);
    return undefined;
  }

  /** A killed process or a full disk left the line unfinished, so that another write begins right after it. */
  #isUnfinished(bytes: Buffer, start: number, end: number): boolean {
    if (!isCutShort(bytes, start, end)) return false;
    let next = end + 1;
    while (bytes[next] === NEWLINE) next++;
    const next_end = bytes.indexOf(NEWLINE, next);
    return (
      next_end < 0 || decodeFrame(bytes, next, next_end) !== undefined || isCutShort(bytes, next, next_end)
    );
  }

  async #sync(): Promise<void> {
    // A sync in progress may have started too early for the data that waits.
    await this.#syncing;
    // The log was closed meanwhile.
    if (this.#sync_timer === undefined) return;
    this.#sync_timer = undefined;
    this.#syncing = this.#syncNow()
      .catch(this.#onError)
      .finally(() => {
        this.#syncing = undefined;
      });
  }

  #syncAtLast(): void {
    clearTimeout(this.#sync_timer);
    this.#sync_timer = undefined;
    try {
      this.#directory.fs.fdatasyncSync(this.#fd);
    } catch (error) {
      this.#onError(error as Error);
    }
  }

  async #syncNow(): Promise<void> {
    const fd = this.#fd;
    const isNew = this.#isNew;
    await new Promise<void>((resolve, reject) => {
      this.#directory.fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
    });
    // Synced here rather than when the segment is created, which would delay a starting process's first runs.
    if (!isNew) return;
    await this.#directory.sync();
    this.#isNew = false;
  }
}

function readClock(frame: Frame, bytes: Buffer): number {
  const version = Number(bytes.toString('latin1', frame.body_start, frame.body_end));
  if (version !== VERSION)
    throw refused('EVERSION', `the log has format ${version}, this version reads ${VERSION}`);
  return frame.number;
}
