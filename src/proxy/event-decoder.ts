import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** What is kept of bytes that belong to no event: enough for an error body, bounded for everything else. */
const RESIDUE_CHARACTERS = 16_384;

/** Thrown when one event outgrows its limit. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';
}

/**
 * Bytes of one attempt → server-sent events. A new decoder for every attempt: half a character or half an event
 * of one attempt must never meet the bytes of the next.
 */
export class EventDecoder {
  readonly #text = new TextDecoder('utf-8');
  readonly #parser;
  #events: EventSourceMessage[] = [];
  #residue = '';
  #overflow = false;

  constructor(event_bytes_max: number) {
    this.#parser = createParser({
      maxBufferSize: event_bytes_max,
      onEvent: (event) => this.#events.push(event),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#overflow = true;
      },
    });
  }

  /** The events that these bytes completed. */
  decode(bytes: Uint8Array): readonly EventSourceMessage[] {
    return this.#feed(this.#text.decode(bytes, { stream: true }));
  }

  /** The body ended properly: a last event without its blank line still counts. */
  end(): readonly EventSourceMessage[] {
    return this.#feed(`${this.#text.decode()}\n\n`, false);
  }

  /** Text after the last event that no parser of events would see: some providers put an error there. */
  get residue(): string {
    return this.#residue.trim();
  }

  #feed(text: string, isBody = true): readonly EventSourceMessage[] {
    this.#events = [];
    this.#parser.feed(text);
    if (this.#overflow) throw new EventTooLargeError();
    if (isBody) this.#keepResidue(text);
    return this.#events;
  }

  #keepResidue(text: string): void {
    if (this.#events.length === 0) {
      if (this.#residue.length < RESIDUE_CHARACTERS) this.#residue += text.slice(0, RESIDUE_CHARACTERS);
      return;
    }
    if (text.endsWith('\n\n')) {
      this.#residue = '';
      return;
    }
    const lastBlankLine = Math.max(
      text.lastIndexOf('\n\n'),
      text.lastIndexOf('\r\n\r\n'),
      text.lastIndexOf('\r\r'),
    );
    this.#residue = text.slice(lastBlankLine).slice(0, RESIDUE_CHARACTERS);
  }
}
