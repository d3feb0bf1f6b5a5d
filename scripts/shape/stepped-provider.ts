import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { answer } from '../../test/provider/answer.ts';
import { completionRequest } from '../../test/provider/request.ts';
import type { Plan } from '../../test/provider/script.ts';
import type { Step } from '../../test/provider/steps.ts';

/** Sends events only on request, so that a measurement can enclose exactly one of them. */
export class SteppedProvider {
  readonly #server: Server;
  readonly #answers = new EventEmitter();
  /** Other programs may still send requests to a server that had this port before, but they don't know this path. */
  readonly #path = `/${randomUUID()}/v1`;

  private constructor(plan: Plan) {
    let serial = 0;
    this.#server = createServer(async (request, response) => {
      if (!request.url?.startsWith(this.#path)) {
        response.writeHead(404).end();
        return;
      }
      serial += 1;
      this.#answers.emit('answer', new SteppedAnswer(response, await stepsFor(plan, request, serial)));
    });
  }

  static async start(plan: Plan): Promise<SteppedProvider> {
    const provider = new SteppedProvider(plan);
    await once(provider.#server.listen(0, '127.0.0.1'), 'listening');
    return provider;
  }

  /** The base URL, ending in `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#path}`;
  }

  /** The answer to the next request; none of it has been sent yet. */
  async next(): Promise<SteppedAnswer> {
    const [next] = (await once(this.#answers, 'answer')) as [SteppedAnswer];
    return next;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

async function stepsFor(plan: Plan, incoming: IncomingMessage, serial: number): Promise<readonly Step[]> {
  const request = completionRequest(await json(incoming));
  if (!request) throw new Error('the provider was asked for something other than a chat completion');
  return answer(plan, request, { attempt: 1, serial, created: 0 });
}

/** The answer to one request. */
export class SteppedAnswer {
  readonly #response: ServerResponse;
  readonly #events: readonly Buffer[];
  #sent = 0;

  constructor(response: ServerResponse, steps: readonly Step[]) {
    this.#response = response;
    this.#events = steps.flatMap((step) => (step.kind === 'send' ? [step.bytes] : []));
    const head = steps.find((step) => step.kind === 'head');
    if (head?.status !== 200) throw new Error('the provider refuses what Holdfast asks of it');
    response.writeHead(head.status, head.headers);
  }

  /** Sends the next events, each in its own write. Throws if too few are left. */
  send(count = 1): void {
    const next = this.#events.slice(this.#sent, this.#sent + count);
    if (next.length < count) throw new Error(`the provider has only ${this.#events.length} events to send`);
    for (const event of next) this.#response.write(event);
    this.#sent += count;
  }

  /** TCP RST. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}
