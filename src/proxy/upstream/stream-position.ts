const LF = 0x0a;
const CR = 0x0d;

/** What a place in an answer is counted in. */
export type PositionUnit = 'bytes' | 'events';

/**
 * How far an answer was read: up to the end of the last whole event, on whatever connections. What came of an event
 * that was cut is not counted, because it comes again.
 */
export interface StreamPosition {
  /** Whether the answer was ever asked for. */
  readonly isBegun: boolean;
  /** The place to continue from; `undefined` where it is not certain. */
  readonly value: number | undefined;
  /** A connection begins, with a whole event. */
  begin(): void;
  /** Takes a piece of the body. `events`: how many it completed. */
  advance(piece: Buffer, events: number): void;
  /** The body ended with an event that was taken although it has no blank line. */
  takeRest(): void;
}

export const newPosition = (unit: PositionUnit): StreamPosition =>
  unit === 'bytes' ? new BytePosition() : new EventPosition();

/** Bytes of the body, which is the same on every connection, up to the end of a blank line. */
class BytePosition implements StreamPosition {
  isBegun = false;
  value = 0;
  #received = 0;
  /** The last two bytes before the piece: a line ended there when a connection begins. */
  #last = LF;
  #last_but_one = LF;

  begin(): void {
    this.isBegun = true;
    this.#received = this.value;
    this.#last = LF;
    this.#last_but_one = LF;
  }

  advance(piece: Buffer): void {
    const end = this.#endOfLastEvent(piece);
    if (end > 0) this.value = this.#received + end;
    this.#received += piece.length;
    this.#last_but_one = this.#byteAt(piece, piece.length - 2);
    this.#last = this.#byteAt(piece, piece.length - 1);
  }

  takeRest(): void {
    this.value = this.#received;
  }

  /** How much of the piece belongs to whole events; nearly always all of it. */
  #endOfLastEvent(piece: Buffer): number {
    let end = piece.length;
    while (end > 0 && !this.#isBlankLine(piece, end - 1)) end--;
    return end;
  }

  /** A blank line ends with this byte: it ends a line, and so does what is before it. */
  #isBlankLine(piece: Buffer, index: number): boolean {
    const byte = piece[index];
    if (byte !== LF && byte !== CR) return false;
    const before = this.#byteAt(piece, index - 1);
    if (byte === LF && before === CR) return isLineEnd(this.#byteAt(piece, index - 2));
    return isLineEnd(before);
  }

  #byteAt(piece: Buffer, index: number): number {
    const byte = index >= 0 ? piece[index] : index === -1 ? this.#last : this.#last_but_one;
    return byte as number;
  }
}

/**
 * Events as providers count them that keep whole ones: what is between two blank lines. Where that is not what was read,
 * because of comments for example, it is unknown what they would count.
 */
class EventPosition implements StreamPosition {
  isBegun = false;
  #events = 0;
  #blocks = 0;
  /** The last byte ended a line, and not a block. */
  #isAfterLine = false;

  get value(): number | undefined {
    return this.#events === this.#blocks ? this.#events : undefined;
  }

  begin(): void {
    this.isBegun = true;
    this.#isAfterLine = false;
  }

  advance(piece: Buffer, events: number): void {
    this.#events += events;
    let end = this.#isAfterLine ? -1 : Number.NaN;
    for (let line = piece.indexOf(LF); line !== -1; line = piece.indexOf(LF, line + 1)) {
      const isBlank = line === end + 1;
      if (isBlank) this.#blocks++;
      end = isBlank ? Number.NaN : line;
    }
    this.#isAfterLine = end === piece.length - 1;
  }

  takeRest(): void {
    this.#events++;
    this.#blocks++;
  }
}

const isLineEnd = (byte: number): boolean => byte === LF || byte === CR;
