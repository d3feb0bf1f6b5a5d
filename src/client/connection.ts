import { EventTooLargeError, SilenceError } from './errors.ts';
import type { Fetch } from './options.ts';

/** One request to a replica, with its answer. Gives up when a step exceeds its time limit. */
export class Connection {
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #splitter = new EventSplitter();
  #response: Response | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** `signal` also closes it. */
  constructor(signal: AbortSignal) {
    this.#signal = AbortSignal.any([signal, this.#closing.signal]);
  }

  async request(fetch: Fetch, url: string, init: RequestInit, limit_ms: number): Promise<Response> {
    this.#response = await this.within(limit_ms, () => fetch(url, { ...init, signal: this.#signal }));
    return this.#response;
  }

  /** The events that the next bytes of the body complete; undefined at its end. */
  async read(limit_ms: number): Promise<WholeEvents | undefined> {
    this.#reader ??= this.#response?.body?.getReader();
    const bytes = await this.within(limit_ms, async () => (await this.#reader?.read())?.value);
    return bytes && this.#splitter.split(bytes);
  }

  /** Closes the connection, and so ends the work, if the work takes too long. */
  async within<T>(limit_ms: number, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#closing.abort(new SilenceError(limit_ms)), limit_ms);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#closing.abort();
  }
}

const EVENT_CHARACTERS_MAX = 16_777_216;
const LINE_END = /\r\n|\r|\n/;

interface WholeEvents {
  /** The bytes for the caller: events, each with its blank line, and comments. */
  readonly frames: string;
  /** The data of each of these events. */
  readonly payloads: readonly string[];
  /** The id of the last event so far; empty if it has none. */
  readonly id: string;
}

/**
 * Turns the bytes of one response into whole events. Every response needs a new splitter: half an event or half a
 * character of one response must never meet the bytes of the next.
 *
 * `id` and `retry` lines are for this client, which removes them: after an `id`, openai-python treats every further blank
 * line as an event. It also removes blocks without data, which some clients treat as events. Comments pass, as single
 * lines.
 */
export class EventSplitter {
  readonly #decoder = new TextDecoder();
  /** The line that has begun. */
  #line = '';
  /** The lines of the event that has begun. */
  #lines = '';
  #payload: string | undefined;
  /** The ids of the event that has begun, and of the last complete one. */
  #idBegun = '';
  #id = '';
  #isAfterReturn = false;

  /** Throws an {@link EventTooLargeError}. */
  split(bytes: Uint8Array): WholeEvents {
    let frames = '';
    const payloads: string[] = [];
    const ends = this.#decode(bytes).split(LINE_END);
    const begun = ends.pop() ?? '';
    for (const end of ends) {
      const line = this.#line + end;
      this.#line = '';
      if (line.startsWith(':')) frames += `${line}\n`;
      else if (line !== '') this.#addLine(line);
      else {
        if (this.#payload !== undefined) {
          frames += `${this.#lines}\n`;
          payloads.push(this.#payload);
          this.#id = this.#idBegun;
        }
        this.#lines = '';
        this.#payload = undefined;
      }
    }
    this.#line += begun;
    if (this.#line.length + this.#lines.length > EVENT_CHARACTERS_MAX) {
      throw new EventTooLargeError(EVENT_CHARACTERS_MAX);
    }
    return { frames, payloads, id: this.#id };
  }

  #addLine(line: string): void {
    const [, field = line, value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? [];
    if (field === 'id') this.#idBegun = value;
    if (field === 'id' || field === 'retry') return;
    if (field === 'data') this.#payload = this.#payload === undefined ? value : `${this.#payload}\n${value}`;
    this.#lines += `${line}\n`;
  }

  /** A line end of two characters may arrive in two pieces. */
  #decode(bytes: Uint8Array): string {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return text;
    const rest = this.#isAfterReturn && text.startsWith('\n') ? text.slice(1) : text;
    this.#isAfterReturn = text.endsWith('\r');
    return rest;
  }
}
