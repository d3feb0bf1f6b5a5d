import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { transportCode } from '../interrupts/classify.ts';
import { errorBody } from '../lib/errors.ts';
import { hostnameOf } from '../lib/host-name.ts';
import type { Time } from '../lib/time.ts';
import { endToEndHeaders } from '../proxy/upstream/headers.ts';
import {
  type ResponseBody,
  type Transport,
  TransportFailure,
  type TransportResponse,
} from '../proxy/upstream/transport.ts';
import { unreadBody } from '../proxy/upstream/unread-body.ts';
import { errorBodyOn, type Wire } from '../proxy/wires/common/wire.ts';
import { WIRES } from '../proxy/wires/registry.ts';
import { isEventStream, whyUnread } from './answer-form.ts';
import { ClientConnection } from './client-connection.ts';
import { FaultOutcome, type PendingFault } from './fault-outcome.ts';
import { deliverDocument, refuse } from './faulty-document.ts';
import { FaultyStream, TOO_LARGE } from './faulty-stream.ts';
import { addTo, type FaultReport, noTotals, type Totals } from './report.ts';
import { faultOf, type Schedule } from './schedule.ts';
import { TypicalLength } from './typical-length.ts';

const BAD_GATEWAY = 502;
const CONNECTIONS_MAX = 1024;
/** Long enough that idle connections don't close just as a request arrives, which would be an unintended fault. */
const KEPT_ALIVE_MS = 75_000;
const CONNECT_MAX_MS = 30_000;
/** The longest silence before an answer and between its pieces. */
const SILENCE_MAX_MS = 1_800_000;
/** The largest document that can be given a fault. */
const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024;

export interface ChaosOptions {
  /** Its path is the API's base path, which requests repeat. */
  readonly upstream: URL;
  readonly schedule: Schedule;
  readonly transport: Transport;
  readonly time: Time;
  /** Called once per fault: when it has struck, or with the reason why it hasn't. */
  readonly onFault: (report: FaultReport) => void;
}

/**
 * Forwards requests to an upstream and returns its answers unchanged, except for scheduled faults. Bodies are streamed
 * with backpressure; only a document that is to have a fault is buffered.
 */
export class ChaosProxy {
  readonly totals: Totals = noTotals();
  readonly #options: ChaosOptions;
  readonly #server: Server;
  readonly #typical = new TypicalLength();

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.keepAliveTimeout = KEPT_ALIVE_MS;
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  /** Resolves with the URL to use in place of the upstream's. Rejects with the error of `listen`. */
  async listen(host: string, port: number): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    const { address, port: bound } = this.#server.address() as AddressInfo;
    const path = this.#options.upstream.pathname.replace(/\/$/, '');
    return `http://${hostnameOf(address)}:${bound}${path}`;
  }

  /** Breaks off requests in progress. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Never rejects. */
  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const client = new ClientConnection(response);
    const [path = ''] = (request.url ?? '').split('?', 1);
    const wire = request.method === 'POST' ? wireOf(path) : undefined;
    try {
      if (wire) await this.#ask(request, client, wire, path);
      else await pass(await this.#open(request, client), client);
    } catch (error) {
      if (!client.gone.aborted) this.#fail(transportCode(error), client, wire);
    }
  }

  /** Handles a request for an answer, which may be given a fault. */
  async #ask(request: IncomingMessage, client: ClientConnection, wire: Wire, path: string): Promise<void> {
    const number = ++this.totals.requests;
    const fault = faultOf(this.#options.schedule, number);
    const outcome = fault && new FaultOutcome({ request: number, path, fault }, this.#report);
    if (fault?.kind === 'status') {
      request.resume();
      refuse(client, wire, fault.status);
      return outcome?.strike();
    }
    try {
      const answered = await this.#open(request, client, wire);
      const pending = fault && outcome && { fault, outcome };
      const unread = await this.#answer(answered, client, wire, pending);
      outcome?.miss(unread ?? 'its place did not come');
    } catch (error) {
      outcome?.miss(client.gone.aborted ? 'the client left' : `the answer failed (${transportCode(error)})`);
      throw error;
    }
  }

  readonly #report = (report: FaultReport): void => {
    addTo(this.totals, report);
    this.#options.onFault(report);
  };

  /** Asks for uncompressed answers on a wire, because their events are read. */
  #open(request: IncomingMessage, client: ClientConnection, wire?: Wire): Promise<TransportResponse> {
    const { upstream, transport } = this.#options;
    const { host: _host, expect: _expect, ...headers } = endToEndHeaders(request.headers);
    const body = unreadBody(request);
    return transport.open({
      method: request.method ?? '',
      url: upstream.origin,
      verbatim_path: request.url ?? '',
      headers: wire ? { ...headers, 'accept-encoding': 'identity' } : headers,
      ...(body && { body }),
      signal: client.gone,
      connect_ms: CONNECT_MAX_MS,
      silence_ms: SILENCE_MAX_MS,
    });
  }

  /** Resolves when the answer is over, with the reason why it has no place for the fault, if known. */
  async #answer(
    answered: TransportResponse,
    client: ClientConnection,
    wire: Wire,
    pending: PendingFault | undefined,
  ): Promise<string | undefined> {
    const { status, headers, body } = answered;
    const { time } = this.#options;
    const unread = whyUnread(answered);
    if (unread !== undefined || !(pending || isEventStream(answered))) {
      await pass(answered, client);
      return unread;
    }
    if (pending && !isEventStream(answered)) {
      const document = { status, headers: endToEndHeaders(headers), bytes: await wholeBody(body) };
      await deliverDocument(document, { client, wire, pending, time });
      return 'a document has no such place';
    }
    await this.#stream(answered, client, wire, pending);
    return undefined;
  }

  async #stream(
    { status, headers, body }: TransportResponse,
    client: ClientConnection,
    wire: Wire,
    pending: PendingFault | undefined,
  ): Promise<void> {
    const { 'content-length': length, ...sent } = endToEndHeaders(headers);
    client.begin(status, pending || length === undefined ? sent : { ...sent, 'content-length': length });
    const { characters: typical_characters } = this.#typical;
    const { time } = this.#options;
    const stream = new FaultyStream({ client, wire, pending, typical_characters, time });
    await stream.deliver(body);
    if (stream.isFinished) this.#typical.add(stream.characters);
  }

  /** Ends an answer that failed without a scheduled fault. */
  #fail(code: string, client: ClientConnection, wire: Wire | undefined): void {
    if (client.hasBegun) {
      client.breakOff();
      return;
    }
    const body = errorBody('upstream_unreachable', { upstream: this.#options.upstream.host, reason: code });
    client.begin(BAD_GATEWAY, { 'content-type': 'application/json' });
    client.end(errorBodyOn(wire, body));
  }
}

/** The wire whose request path is a suffix of `path`. */
const wireOf = (path: string): Wire | undefined =>
  Object.values(WIRES).find((wire) => path.endsWith(wire.path));

async function pass(
  { status, headers, body }: TransportResponse,
  client: ClientConnection,
): Promise<undefined> {
  client.begin(status, endToEndHeaders(headers));
  await body.consume((piece) => client.write(piece));
  client.end();
}

async function wholeBody(body: ResponseBody): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  await body.consume((piece) => {
    length += piece.length;
    if (length > DOCUMENT_BYTES_MAX) throw new TransportFailure(TOO_LARGE);
    pieces.push(piece);
    return undefined;
  });
  return Buffer.concat(pieces);
}
