import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ExportedTraces, type ReceivedSpan, spansIn } from './otlp.ts';

/** `silent`: accepts everything and never answers. `dripping`: sends an answer that never ends. */
export type Manner = 'taking' | 'unavailable' | 'refusing' | 'silent' | 'dripping';

const STATUS: Readonly<Partial<Record<Manner, number>>> = { unavailable: 503, refusing: 400 };
const DRIP_MS = 20;

/** A defective receiver of traces. */
export class PoorReceiver {
  manner: Manner;
  /** From all requests, answered or not. */
  readonly spans: ReceivedSpan[] = [];
  requests = 0;
  readonly #server: Server;
  readonly #arrivals = new EventEmitter();

  private constructor(manner: Manner) {
    this.manner = manner;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(manner: Manner): Promise<PoorReceiver> {
    const receiver = new PoorReceiver(manner);
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves once this many requests have arrived. */
  async asked(count: number): Promise<void> {
    while (this.requests < count) await once(this.#arrivals, 'request');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.spans.push(...spansIn(JSON.parse(await text(request)) as ExportedTraces));
    this.requests++;
    this.#arrivals.emit('request');
    if (this.manner === 'silent') return;
    response.writeHead(STATUS[this.manner] ?? 200, { 'content-type': 'application/json' });
    if (this.manner !== 'dripping') return void response.end('{}');
    const drip = setInterval(() => response.write(' '), DRIP_MS);
    response.once('close', () => clearInterval(drip));
  }
}
