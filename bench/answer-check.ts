import { ResponseReader } from './response-reader.ts';
import { FIRST_CONTENT, LAST_CONTENT, sentAt, sequenceAt } from './script.ts';

const CONTENT = '"content":"';

/** Reads one answer of the scripted provider and checks that it came whole and in order, to the last byte. */
export class AnswerCheck {
  readonly #reader: ResponseReader;
  readonly #events: number;
  #received = 0;
  #total = -1;
  #ending = '';

  /**
   * `events`: how many events the provider was asked for. `onContent` receives the provider's send time of each event.
   */
  constructor(events: number, onContent: (sequence: number, sent_us: number) => void) {
    this.#events = events;
    this.#reader = new ResponseReader((event) => {
      const content = event.indexOf(CONTENT) + CONTENT.length;
      if (event.startsWith(FIRST_CONTENT, content)) {
        const sequence = sequenceAt(event, content);
        if (sequence !== this.#received) {
          throw new Error(`event ${this.#received} is missing, came ${event.slice(content)}`);
        }
        this.#received += 1;
        onContent(sequence, sentAt(event, content));
      } else if (event.startsWith(LAST_CONTENT, content)) {
        this.#total = Number.parseInt(event.slice(content + LAST_CONTENT.length), 10);
      } else if (event.includes('"finish_reason":"stop"')) {
        this.#ending += 'finish ';
      } else if (event.includes('data: [DONE]')) {
        this.#ending += 'done';
      }
    });
  }

  /** The terminating chunk has arrived, so the connection is free for the next answer. */
  get complete(): boolean {
    return this.#reader.complete;
  }

  /** Throws an `Error` at the first byte that can't be part of the answer. */
  feed(bytes: Buffer): void {
    this.#reader.feed(bytes);
  }

  /** What is missing or wrong; undefined if the answer is whole. */
  fault(): string | undefined {
    const whole =
      this.complete &&
      this.#total === this.#received &&
      this.#total === this.#events &&
      this.#ending === 'finish done';
    if (whole) return undefined;
    return `${this.#received} events, total ${this.#total}, ending "${this.#ending}", complete ${this.complete}`;
  }
}
