import { isAscii } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** How many trailing characters outside events are kept: enough for an error body. */
const RESIDUE_CHARACTERS = 16_384;

const NO_EVENTS: EventSourceMessage[] = [];

/** Thrown if one event exceeds its limit. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';
}

/**
 * Decodes the bytes of one attempt into server-sent events. Use a new decoder per attempt, so that a partial character
 * or event never meets the next attempt's bytes.
 */
export class EventDecoder {
  /** Created on first need: many streams are pure ASCII. */
  #text: TextDecoder | undefined;
  readonly #parser;
  #events = NO_EVENTS;
  /** The last bytes may be the beginning of a character. */
  #isWithinCharacter = false;
  /** The last characters; examined only once the body has ended. */
  #tail = '';
  #overflow = false;

  constructor(event_bytes_max: number) {
    this.#parser = createParser({
      maxBufferSize: event_bytes_max,
      onEvent: (event) => {
        // A batch usually has one event, and pushing to an empty array would allocate room for many.
        if (this.#events === NO_EVENTS) this.#events = [event];
        else this.#events.push(event);
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#overflow = true;
      },
    });
  }

  /** The events completed by these bytes. */
  decode(bytes: Buffer): readonly EventSourceMessage[] {
    // Nearly all events are ASCII, which Latin-1 decodes faster. A character begun earlier needs the full decoder.
    if (!this.#isWithinCharacter && isAscii(bytes)) return this.#feed(bytes.toString('latin1'));
    this.#isWithinCharacter = (bytes.at(-1) ?? 0) > 0x7f;
    this.#text ??= new TextDecoder('utf-8');
    return this.#feed(this.#text.decode(bytes, { stream: true }));
  }

  /** The body ended cleanly: a last event without its blank line still counts. */
  end(): readonly EventSourceMessage[] {
    return this.#feed(`${this.#text?.decode() ?? ''}\n\n`);
  }

  /** A JSON document at the very end, outside any event, where some providers put an error. */
  get residue(): string {
    const text = this.#tail.trimEnd();
    // Nearly all bodies have no carriage return, and a search that finds nothing reads the whole text.
    const lastBlankLine = text.includes('\r')
      ? Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'), text.lastIndexOf('\r\r'))
      : text.lastIndexOf('\n\n');
    const block = text.slice(lastBlankLine + 1).trim();
    return /^[{[]/.test(block) ? block : '';
  }

  #feed(text: string): readonly EventSourceMessage[] {
    this.#parser.feed(text);
    if (this.#overflow) throw new EventTooLargeError();
    const events = this.#events;
    // Released at once, because events are slices of the text they arrived in.
    this.#events = NO_EVENTS;
    this.#tail = events.length > 0 ? text : (this.#tail + text).slice(-RESIDUE_CHARACTERS);
    return events;
  }
}
