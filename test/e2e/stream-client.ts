import { EventEmitter, once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { chunksOf } from '../provider/reading.ts';

/** One whole `data:` event as it arrived. */
export interface ReceivedEvent {
  readonly data: string;
  /** By `performance.now()`. */
  readonly at_ms: number;
}

/** A request on a connection of its own, which destroying it closes. */
export function sendRequest(
  url: string,
  body: object,
  more: Readonly<Record<string, string>> = {},
): ClientRequest {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer client-key', ...more };
  const request = http.request(`${url}/chat/completions`, { method: 'POST', headers, agent: false });
  request.end(JSON.stringify(body));
  return request;
}

/**
 * A client that keeps whatever reached it, however the connection ends, and that reads only when it is told to.
 */
export class StreamClient {
  readonly events: ReceivedEvent[] = [];
  readonly #response: IncomingMessage;
  readonly #ended: Promise<unknown>;
  readonly #arrivals = new EventEmitter();
  #rest = '';
  #isDone = false;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    // Cut off, it is no less the end.
    response.on('error', () => {});
    this.#ended = new Promise((resolve) => response.once('close', resolve));
  }

  /** Resolves when the headers have come. Nothing is read before {@link read}. */
  static async open(
    url: string,
    body: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<StreamClient> {
    const request = sendRequest(url, body, headers);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.on('error', () => {});
    return new StreamClient(response);
  }

  get run(): string {
    return String(this.#response.headers['holdfast-run-id']);
  }

  /** What the events said, without their `data:`. */
  get payloads(): string[] {
    return this.events.map(({ data }) => payloadOf(data));
  }

  /** `[DONE]` has come, which is none of the {@link events}. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Resolves with the first piece. */
  async read(): Promise<void> {
    this.#response.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    await once(this.#response, 'data');
  }

  /** Resolves when that many events have come. Rejects when the response is over before. */
  async received(count: number): Promise<void> {
    while (this.events.length < count) {
      if (this.#response.closed) throw new Error(`only ${this.events.length} events of ${count} have come`);
      await Promise.race([once(this.#arrivals, 'event'), this.#ended]);
    }
  }

  /** Resolves when the response is over, properly or not. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  /** Closes the connection, as a client does that has lost interest. */
  leave(): void {
    this.#response.destroy();
  }

  #take(text: string): void {
    const at_ms = performance.now();
    const pieces = (this.#rest + text).split('\n\n');
    this.#rest = pieces.pop() ?? '';
    for (const data of pieces) {
      if (chunksOf(data).length > 0) this.events.push({ data, at_ms });
      this.#isDone ||= payloadOf(data) === '[DONE]';
    }
    this.#arrivals.emit('event');
  }
}

/** Of one event, which may have an id, and comments before it. */
const payloadOf = (event: string): string => /^data: (.*)$/m.exec(event)?.[1] ?? '';

/** What the whole events of a stream said, `[DONE]` included. */
export const payloadsOf = (body: string): string[] => body.split('\n\n').slice(0, -1).map(payloadOf);
