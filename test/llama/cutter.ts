import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Where a response breaks off: after so many bytes of its body, or after so many events that bring something to show. */
export type Cut = { readonly bytes: number } | { readonly events: number };

/** How a response breaks off: its connection is closed in the middle of the body, or reset. */
export type CutManner = 'close' | 'reset';

export interface PassedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** A cut ahead. */
interface Plan {
  readonly cut: Cut;
  readonly manner: CutManner;
}

/** The paths at which llama.cpp gives back an answer that it keeps. */
const KEPT_ANSWERS = '/v1/stream';
const CONVERSATION_HEADER = 'x-conversation-id';

/**
 * A proxy in front of a server, which cuts the responses that it is told to cut, in the order in which they are asked
 * for. Nothing after a cut reaches the client, so how fast the server is makes no difference.
 */
export class Cutter {
  /** What was asked for since {@link cutNext}, requests to stop left out. */
  readonly requests: PassedRequest[] = [];
  readonly #server: http.Server;
  readonly #upstream_port: number;
  readonly #keepsAnswers: boolean;
  readonly #plans: Plan[] = [];
  /** Cuts that lay beyond the end of their response. */
  #missed = 0;

  private constructor(upstream_port: number, keepsAnswers: boolean) {
    this.#upstream_port = upstream_port;
    this.#keepsAnswers = keepsAnswers;
    this.#server = http.createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
  }

  /** `keepsAnswers`: false makes the server look like one from before llama.cpp kept answers. */
  static async start(upstream_port: number, keepsAnswers: boolean): Promise<Cutter> {
    const cutter = new Cutter(upstream_port, keepsAnswers);
    cutter.#server.listen(0, '127.0.0.1');
    await once(cutter.#server, 'listening');
    return cutter;
  }

  /** The base URL of the server behind it. */
  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }

  /** Cuts the next streamed responses, one after the other, and forgets what was asked for before. */
  cutNext(cuts: readonly Cut[], manner: CutManner = 'close'): void {
    this.requests.length = 0;
    this.#missed = 0;
    this.#plans.splice(0, this.#plans.length, ...cuts.map((cut) => ({ cut, manner })));
  }

  /** How many of the cuts that were asked for have not been made. */
  get missed(): number {
    return this.#missed + this.#plans.length;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    const body = Buffer.concat(await request.toArray());
    if (!this.#keepsAnswers && path.startsWith(KEPT_ANSWERS)) {
      response.writeHead(404).end();
      return;
    }
    if (method !== 'DELETE')
      this.requests.push({ method, path, body: body.length > 0 ? JSON.parse(body.toString()) : {} });
    const { [CONVERSATION_HEADER]: conversation, ...others } = headers;
    const upstream = http.request({
      host: '127.0.0.1',
      port: this.#upstream_port,
      method,
      path,
      headers: this.#keepsAnswers && conversation !== undefined ? headers : others,
      agent: false,
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    upstream.end(body);
    const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
    answer.on('error', () => response.destroy());
    response.writeHead(answer.statusCode ?? 500, headersOf(answer));
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream') ?? false;
    const plan = isStream ? this.#plans.shift() : undefined;
    if (plan) await this.#passUntil(plan, answer, response);
    else answer.pipe(response);
  }

  async #passUntil({ cut, manner }: Plan, answer: IncomingMessage, response: ServerResponse): Promise<void> {
    let passed = Buffer.alloc(0);
    for await (const bytes of answer) {
      const all = Buffer.concat([passed, bytes as Buffer]);
      const end = endOf(all, cut);
      response.write(all.subarray(passed.length, end));
      passed = all;
      if (end === undefined) continue;
      const { socket } = response;
      if (manner === 'reset') socket?.resetAndDestroy();
      // What was written is delivered, and the last chunk of the body is missing.
      else socket?.end();
      answer.destroy();
      return;
    }
    this.#missed++;
    response.end();
  }
}

/** Where the body is to end, if that many bytes or events have come. */
function endOf(body: Buffer, cut: Cut): number | undefined {
  if ('bytes' in cut) return body.length >= cut.bytes ? cut.bytes : undefined;
  let seen = 0;
  let end = 0;
  for (;;) {
    const next = body.indexOf('\n\n', end);
    if (next === -1) return undefined;
    if (shows(body.toString('utf8', end, next))) seen++;
    end = next + 2;
    if (seen >= cut.events) return end;
  }
}

/** Whether the event brings text, or something of a call. */
function shows(event: string): boolean {
  const data = /^data: (\{.*)$/m.exec(event)?.[1];
  if (data === undefined) return false;
  const [choice] = (JSON.parse(data) as { choices?: { delta?: Delta; text?: string }[] }).choices ?? [];
  return Boolean(choice?.text || choice?.delta?.content || choice?.delta?.tool_calls);
}

interface Delta {
  readonly content?: string | null;
  readonly tool_calls?: readonly unknown[];
}

/** Without those that concern the connection. */
function headersOf({ headers }: IncomingMessage): http.OutgoingHttpHeaders {
  const { connection, 'keep-alive': keepAlive, 'transfer-encoding': encoding, ...rest } = headers;
  return rest;
}
