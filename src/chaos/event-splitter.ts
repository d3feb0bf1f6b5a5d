/** The end of a server-sent event. */
const BLANK_LINE = /\r\n\r\n|\n\n|\r\r/g;
const BLANK_LINE_CHARACTERS = 4;

/** Splits a body into server-sent events without changing a byte. */
export class EventSplitter {
  /** Bytes buffered for the unfinished event. */
  held_bytes = 0;
  #pieces: Buffer[] = [];
  /** The last few bytes as characters, because a blank line may have started there. */
  #tail = '';

  /** Returns the events that this piece completes, each with its blank line. */
  split(piece: Buffer): readonly Buffer[] {
    const { length: known } = this.#tail;
    const text = this.#tail + piece.toString('latin1');
    const events: Buffer[] = [];
    let begin = 0;
    BLANK_LINE.lastIndex = 0;
    while (BLANK_LINE.test(text)) {
      const end = BLANK_LINE.lastIndex - known;
      this.#hold(piece.subarray(begin, end));
      events.push(this.takeRest());
      begin = end;
    }
    this.#hold(piece.subarray(begin));
    const begun = begin === 0 ? 0 : begin + known;
    this.#tail = text.slice(Math.max(begun, text.length - BLANK_LINE_CHARACTERS + 1));
    return events;
  }

  /** Returns the buffered bytes of an unfinished event and clears them. */
  takeRest(): Buffer {
    const rest = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.held_bytes = 0;
    return rest;
  }

  #hold(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.held_bytes += bytes.length;
  }
}
