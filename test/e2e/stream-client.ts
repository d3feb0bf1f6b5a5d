import { EventEmitter, once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { chunksOf } from '../provider/reading.ts';

/** One whole `data:` event as it arrived. */
export interface ReceivedEvent {
  readonly data: string;
  /** On the `performance.now()` clock. */
  readonly at_ms: number;
}

/** Sends a request on a connection of its own; destroying the request closes the connection. */
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

/** A client that keeps whatever reaches it, however the connection ends, and reads only on demand. */
export class StreamClient {
  readonly events: ReceivedEvent[] = [];
  readonly #response: IncomingMessage;
  readonly #ended: Promise<unknown>;
  readonly #arrivals = new EventEmitter();
  #rest = '';
  #isDone = false;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    // An error ends the response as well.
    response.on('error', () => {});
    this.#ended = new Promise((resolve) => response.once('close', resolve));
  }

  /** Resolves once the headers have arrived. Nothing is read before {@link read}. */
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

  /** The payloads of the events. */
  get payloads(): string[] {
    return this.events.map(({ data }) => payloadOf(data));
  }

  /** Whether `[DONE]` has arrived; it isn't one of the {@link events}. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Resolves with the first piece. */
  async read(): Promise<void> {
    this.#response.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    await once(this.#response, 'data');
  }

  /** Resolves once this many events have arrived. Rejects if the response ends first. */
  async received(count: number): Promise<void> {
    while (this.events.length < count) {
      if (this.#response.closed) throw new Error(`only ${this.events.length} events of ${count} have come`);
      await Promise.race([once(this.#arrivals, 'event'), this.#ended]);
    }
  }

  /** Resolves once the response is over, properly or not. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  /** Closes the connection, like a client that has lost interest. */
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

/** The payload of one event, which may have an id, and comments before it. */
const payloadOf = (event: string): string => /^data: (.*)$/m.exec(event)?.[1] ?? '';

/** The payloads of the whole events in a stream, `[DONE]` included. */
export const payloadsOf = (body: string): string[] => body.split('\n\n').slice(0, -1).map(payloadOf);
