import { once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { chunksOf } from '../provider/reading.ts';

/** One whole `data:` event as it arrived. */
export interface ReceivedEvent {
  readonly data: string;
  /** By `performance.now()`. */
  readonly at_ms: number;
}

/** A request on a connection of its own, which destroying it closes. */
export function sendRequest(url: string, body: object): ClientRequest {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer client-key' };
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
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    // Cut off, it is no less the end.
    response.on('error', () => {});
    this.#ended = new Promise((resolve) => response.once('close', resolve));
  }

  /** Resolves when the headers have come. Nothing is read before {@link read}. */
  static async open(url: string, body: object): Promise<StreamClient> {
    const request = sendRequest(url, body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.on('error', () => {});
    return new StreamClient(response);
  }

  get run(): string {
    return String(this.#response.headers['holdfast-run-id']);
  }

  /** Resolves with the first piece. */
  async read(): Promise<void> {
    this.#response.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    await once(this.#response, 'data');
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
    for (const data of pieces) if (chunksOf(data).length > 0) this.events.push({ data, at_ms });
  }
}
