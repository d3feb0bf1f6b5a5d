import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Where to cut a response: after this many bytes of its body, or after this many events with content. */
export type Cut = { readonly bytes: number } | { readonly events: number };

/** How to cut a response: close its connection in the middle of the body, or reset it. */
export type CutManner = 'close' | 'reset';

export interface PassedRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** A cut still to be made. */
interface Plan {
  readonly cut: Cut;
  readonly manner: CutManner;
}

/** The path prefix at which llama.cpp returns the answers that it keeps. */
const KEPT_ANSWERS = '/v1/stream';
const CONVERSATION_HEADER = 'x-conversation-id';

/**
 * A proxy in front of a server that cuts responses on demand, in the order of their requests. Nothing after a cut
 * reaches the client, so the server's speed makes no difference.
 */
export class Cutter {
  /** The requests since {@link cutNext}, except those to stop an answer. */
  readonly requests: PassedRequest[] = [];
  readonly #server: http.Server;
  readonly #upstream_port: number;
  readonly #keepsAnswers: boolean;
  readonly #plans: Plan[] = [];
  /** The number of cuts beyond the end of their response. */
  #missed = 0;

  private constructor(upstream_port: number, keepsAnswers: boolean) {
    this.#upstream_port = upstream_port;
    this.#keepsAnswers = keepsAnswers;
    this.#server = http.createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
  }

  /** `keepsAnswers`: false hides that the server keeps answers, as llama.cpp did not in older versions. */
  static async start(upstream_port: number, keepsAnswers: boolean): Promise<Cutter> {
    const cutter = new Cutter(upstream_port, keepsAnswers);
    cutter.#server.listen(0, '127.0.0.1');
    await once(cutter.#server, 'listening');
    return cutter;
  }

  /** The base URL of the cutter, ending in `/v1`. */
  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }

  /** Cuts the next streamed responses, one after the other, and clears `requests`. */
  cutNext(cuts: readonly Cut[], manner: CutManner = 'close'): void {
    this.requests.length = 0;
    this.#missed = 0;
    this.#plans.splice(0, this.#plans.length, ...cuts.map((cut) => ({ cut, manner })));
  }

  /** The number of requested cuts that have not been made. */
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
      // Everything written is delivered; only the terminating chunk of the body is missing.
      else socket?.end();
      answer.destroy();
      return;
    }
    this.#missed++;
    response.end();
  }
}

/** Where the body has to end, or undefined until the cut is reached. */
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

/** Whether the event contains text or part of a call. */
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

/** Without hop-by-hop headers. */
function headersOf({ headers }: IncomingMessage): http.OutgoingHttpHeaders {
  const { connection, 'keep-alive': keepAlive, 'transfer-encoding': encoding, ...rest } = headers;
  return rest;
}
