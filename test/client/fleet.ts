import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { onTestFinished } from 'vitest';
import { frameOf } from './answers.ts';

/** One request as a replica saw it. */
export interface Asked {
  readonly replica: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/** The rest of a run for one request, and the response to send it on. */
export interface Telling {
  readonly response: ServerResponse;
  /** The whole body to send: the events after the client's cursor. */
  readonly body: Buffer;
  /** Sends the headers of a stream. */
  open(): void;
}

/** Answers one request, whatever it asks for. */
export type Step = (telling: Telling) => Promise<void> | void;

export interface FleetOptions {
  readonly replicas?: number;
  /** How many events the fleet's store has; the client must bring any events beyond that. Default: all. */
  readonly stored?: number;
  /** Replaces the server's framing of an event. */
  frame?(payload: string, id: string): string;
  /** Sent with every response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers preflights and requests for other paths; the default is a 404. */
  other?(request: IncomingMessage, response: ServerResponse): void;
}

const WIRE_PATH = /^\/v1\/(chat\/completions|completions|messages|responses)$/;
const RUN_PATH = /^\/holdfast\/v1\/runs(\/|$)/;

const frameWithId = (payload: string, id: string) => `id: ${id}\n${frameOf(payload)}`;

/**
 * Replicas on 127.0.0.1 that implement the HTTP contract for resuming, all over the same list of events, and break on
 * demand: each request takes the next step of the script, and is answered in full once the script is empty.
 */
export class Fleet {
  readonly urls: string[] = [];
  readonly asked: Asked[] = [];
  readonly #events: readonly string[];
  readonly #options: FleetOptions;
  readonly #runs = new Map<string, string>();
  /** The requests as received, by run. */
  readonly #requests = new Map<string, { readonly path: string; readonly body: string }>();
  readonly #script: Step[] = [];
  readonly #servers: http.Server[] = [];
  #connections = 0;
  #waiting: (() => void)[] = [];

  private constructor(events: readonly string[], options: FleetOptions) {
    this.#events = events;
    this.#options = options;
  }

  /** Closed when the test ends. */
  static async start(events: readonly string[], options: FleetOptions = {}): Promise<Fleet> {
    const fleet = await Fleet.open(events, options);
    onTestFinished(() => fleet.close());
    return fleet;
  }

  static async open(events: readonly string[], options: FleetOptions = {}): Promise<Fleet> {
    const fleet = new Fleet(events, options);
    for (let replica = 0; replica < (options.replicas ?? 2); replica += 1) {
      const server = http.createServer((request, response) => void fleet.#answer(replica, request, response));
      server.on('connection', (socket) => {
        fleet.#connections += 1;
        socket.on('error', () => {});
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      fleet.#servers.push(server);
      fleet.urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    }
    return fleet;
  }

  /** Base URL of the first replica. */
  get base(): string {
    return `${this.urls[0]}/v1`;
  }

  get chatUrl(): string {
    return `${this.base}/chat/completions`;
  }

  get connections(): number {
    return this.#connections;
  }

  script(...steps: readonly Step[]): void {
    this.#script.push(...steps);
  }

  /** Resolves once the fleet has received this many requests in total. */
  async requested(count: number): Promise<void> {
    while (this.asked.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  close(): void {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
  }

  async #answer(replica: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const { pathname } = new URL(url, 'http://fleet');
    const isOurs = WIRE_PATH.test(pathname) || RUN_PATH.test(pathname);
    for (const [name, value] of Object.entries(this.#options.headers ?? {})) response.setHeader(name, value);
    if (!isOurs || method === 'OPTIONS') {
      if (this.#options.other) this.#options.other(request, response);
      else fail(response, 404, 'not_found');
      return;
    }
    const sent = await text(request);
    const body = method === 'POST' ? JSON.parse(sent) : sent;
    this.asked.push({ replica, method, path: url, headers, body });
    for (const wake of this.#waiting.splice(0)) wake();

    if (method === 'DELETE') return void response.writeHead(200).end('{}');
    const place = pathname.startsWith('/holdfast')
      ? this.#rest(pathname, body)
      : this.#begin(pathname, headers, sent);
    const step = this.#script.shift() ?? whole;
    if (typeof place === 'number') return fail(response, place, place === 409 ? 'cursor_ahead' : 'refused');
    await step(this.#telling(place, response));
  }

  #begin(path: string, headers: IncomingMessage['headers'], body: string): Place {
    const key = String(headers['idempotency-key']);
    const run = this.#runs.get(key) ?? `run_${String(this.#runs.size).padStart(22, '0')}`;
    this.#runs.set(key, run);
    this.#requests.set(run, { path, body });
    return { run, cursor: 0 };
  }

  /** The place to resume a known run from, or the HTTP status to refuse with. */
  #rest(path: string, body: unknown): Place | number {
    const [, run = ''] = /^\/holdfast\/v1\/runs\/([^/]+)\/resume$/.exec(path) ?? [];
    if (![...this.#runs.values()].includes(run)) return 404;
    const { cursor, tail, request } = body as { cursor: number; tail: string[]; request?: unknown };
    if (request !== undefined && !isDeepStrictEqual(request, this.#requests.get(run))) return 422;
    // The events that a client claims to have must be the events it was sent.
    if (String(tail) !== String(this.#events.slice(cursor - tail.length, cursor))) return 400;
    return cursor - tail.length > (this.#options.stored ?? this.#events.length) ? 409 : { run, cursor };
  }

  #telling({ run, cursor }: Place, response: ServerResponse): Telling {
    const frame = this.#options.frame ?? frameWithId;
    const due = this.#events
      .slice(cursor)
      .map((event, index) => frame(event, `${run}.1.${cursor + index + 1}`));
    return {
      response,
      body: Buffer.from(due.join('')),
      open() {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'holdfast-run-id': run });
        response.flushHeaders();
      },
    };
  }
}

interface Place {
  readonly run: string;
  readonly cursor: number;
}

export function fail(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ error: { code, message: code, type: 'server_error', param: null } }));
}

export const whole: Step = ({ open, response, body }) => {
  open();
  response.end(body);
};

/**
 * Sends this many bytes of the body, then breaks the connection. `reset` and `fin` may overtake the bytes: pass `read`
 * to break only once they have been read.
 */
export const cut =
  (bytes: number, how: 'reset' | 'fin' | 'eof' = 'reset', read: Promise<unknown> = Promise.resolve()): Step =>
  async (telling) => {
    const { response } = telling;
    const begun = telling.body.subarray(0, bytes);
    telling.open();
    if (how === 'eof') return void response.end(begun);
    const { socket } = response;
    // Announce a chunk one byte longer than what is sent.
    const chunk = Buffer.concat([Buffer.from(`${(begun.length + 1).toString(16)}\r\n`), begun]);
    await new Promise((resolve) => socket?.write(chunk, resolve));
    await read;
    if (how === 'fin') socket?.end();
    else socket?.resetAndDestroy();
  };

/** Resets the connection without an answer. */
export const reset: Step = ({ response }) => void response.socket?.resetAndDestroy();

/** Sends this many bytes of the body, then falls silent. Without a number, it doesn't even send the headers. */
export const stall =
  (bytes?: number): Step =>
  (telling) => {
    if (bytes === undefined) return;
    telling.open();
    if (bytes > 0) telling.response.write(telling.body.subarray(0, bytes));
  };

/** Opens the stream and ends it with a Holdfast error with this code. */
export const failing =
  (code: string): Step =>
  ({ open, response }) => {
    open();
    response.end(`: hb\n\ndata: ${JSON.stringify({ error: { code, message: code } })}\n\n`);
  };

export const refuse =
  (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Step =>
  ({ response }) =>
    fail(response, status, code, headers);

/** Sends the body in pieces of at most `size` bytes. */
export const pieces =
  (size: number): Step =>
  async (telling) => {
    telling.open();
    for (let at = 0; at < telling.body.length; at += size) {
      telling.response.write(telling.body.subarray(at, at + size));
      await new Promise((resolve) => setImmediate(resolve));
    }
    telling.response.end();
  };
