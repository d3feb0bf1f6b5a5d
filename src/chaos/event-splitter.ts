/** What ends a server-sent event. */
const BLANK_LINE = /\r\n\r\n|\n\n|\r\r/g;
const BLANK_LINE_CHARACTERS = 4;

/** Divides a body into server-sent events without changing a byte. */
export class EventSplitter {
  #held: Buffer = Buffer.alloc(0);

  /** What of the body so far belongs to no whole event. */
  get rest(): Buffer {
    return this.#held;
  }

  /** The events that this piece completes, each with the blank line after it. */
  split(piece: Buffer): readonly Buffer[] {
    const known = this.#held.length;
    const bytes = known === 0 ? piece : Buffer.concat([this.#held, piece]);
    // One character per byte.
    const text = bytes.toString('latin1');
    const events: Buffer[] = [];
    let begin = 0;
    BLANK_LINE.lastIndex = Math.max(0, known - BLANK_LINE_CHARACTERS + 1);
    while (BLANK_LINE.test(text)) {
      events.push(bytes.subarray(begin, BLANK_LINE.lastIndex));
      begin = BLANK_LINE.lastIndex;
    }
    this.#held = bytes.subarray(begin);
    return events;
  }
}
