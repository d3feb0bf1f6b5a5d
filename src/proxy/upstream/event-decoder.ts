import { isAscii } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** What is kept of bytes that belong to no event: enough for an error body, bounded for everything else. */
const RESIDUE_CHARACTERS = 16_384;

const NO_EVENTS: EventSourceMessage[] = [];

/** Thrown when one event outgrows its limit. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';
}

/**
 * Bytes of one attempt → server-sent events. A new decoder for every attempt: half a character or half an event
 * of one attempt must never meet the bytes of the next.
 */
export class EventDecoder {
  /** Made when it is needed first: many streams are ASCII from end to end. */
  #text: TextDecoder | undefined;
  readonly #parser;
  #events = NO_EVENTS;
  /** The last bytes may have been the beginning of a character. */
  #isWithinCharacter = false;
  /** What came last; looked into only when the body has ended. */
  #tail = '';
  #overflow = false;

  constructor(event_bytes_max: number) {
    this.#parser = createParser({
      maxBufferSize: event_bytes_max,
      onEvent: (event) => {
        // Pieces of one event are the rule, and an empty array would grow to many times what one event needs.
        if (this.#events === NO_EVENTS) this.#events = [event];
        else this.#events.push(event);
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#overflow = true;
      },
    });
  }

  /** The events that these bytes completed. */
  decode(bytes: Buffer): readonly EventSourceMessage[] {
    // Nearly all events are ASCII, which is its own Latin-1; only a character begun before it needs the decoder.
    if (!this.#isWithinCharacter && isAscii(bytes)) return this.#feed(bytes.toString('latin1'));
    this.#isWithinCharacter = (bytes.at(-1) ?? 0) > 0x7f;
    this.#text ??= new TextDecoder('utf-8');
    return this.#feed(this.#text.decode(bytes, { stream: true }));
  }

  /** The body ended properly: a last event without its blank line still counts. */
  end(): readonly EventSourceMessage[] {
    return this.#feed(`${this.#text?.decode() ?? ''}\n\n`);
  }

  /** A JSON document at the very end that no parser of events would see: some providers put an error there. */
  get residue(): string {
    const text = this.#tail.trimEnd();
    const lastBlankLine = Math.max(
      text.lastIndexOf('\n\n'),
      text.lastIndexOf('\r\n\r\n'),
      text.lastIndexOf('\r\r'),
    );
    const block = text.slice(lastBlankLine + 1).trim();
    return /^[{[]/.test(block) ? block : '';
  }

  #feed(text: string): readonly EventSourceMessage[] {
    this.#parser.feed(text);
    if (this.#overflow) throw new EventTooLargeError();
    const events = this.#events;
    // Not held until the next ones come: they are slices of all that came with them.
    this.#events = NO_EVENTS;
    this.#tail = events.length > 0 ? text : (this.#tail + text).slice(-RESIDUE_CHARACTERS);
    return events;
  }
}
