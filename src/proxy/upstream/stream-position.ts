const LF = 0x0a;
const CR = 0x0d;

/** The unit of a position in an answer. */
export type PositionUnit = 'bytes' | 'events';

/**
 * The position up to which an answer was read: the end of its last complete event, across connections. A cut event
 * doesn't count, because it comes again.
 */
export interface StreamPosition {
  /** Whether the answer was ever requested. */
  readonly isBegun: boolean;
  /** The position to continue from; `undefined` if uncertain. */
  readonly value: number | undefined;
  /** Starts a connection, which begins with a complete event. */
  begin(): void;
  /** Advances by a piece of the body. `events`: how many it completed. */
  advance(piece: Buffer, events: number): void;
  /** Counts an event at the end of the body without a blank line. */
  takeRest(): void;
}

export const newPosition = (unit: PositionUnit): StreamPosition =>
  unit === 'bytes' ? new BytePosition() : new EventPosition();

/** Counts bytes of the body, which is identical on every connection, up to the end of a blank line. */
class BytePosition implements StreamPosition {
  isBegun = false;
  value = 0;
  #received = 0;
  /** The last two bytes before the piece; line ends at the start of a connection. */
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

  /** Length of the piece's complete events; usually the whole piece. */
  #endOfLastEvent(piece: Buffer): number {
    let end = piece.length;
    while (end > 0 && !this.#isBlankLine(piece, end - 1)) end--;
    return end;
  }

  /** Whether this byte ends a blank line: it is a line end and follows one. */
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
 * Counts events like providers that store them: blocks between blank lines. If blocks and events differ, e.g. because
 * of comments, the provider's count is unknown.
 */
class EventPosition implements StreamPosition {
  isBegun = false;
  #events = 0;
  #blocks = 0;
  /** The last byte ended a line, but not a block. */
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
