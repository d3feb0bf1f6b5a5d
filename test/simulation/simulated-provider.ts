import type { Time } from '../../src/lib/time.ts';
import {
  type ResponseBody,
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../../src/proxy/upstream/transport.ts';
import { answer } from '../provider/answer.ts';
import type { Cut } from '../provider/fault.ts';
import type { CompletionRequest } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import type { Step } from '../provider/steps.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';

const CREATED_S = 1_700_000_000;

/** The error of a real socket for each kind of cut, as measured over loopback by the transport's own tests. */
const FAILURES: Record<Cut, () => TransportFailure> = {
  reset: () => new TransportFailure('ECONNRESET'),
  fin_in_chunk: () => new TransportFailure('UND_ERR_SOCKET'),
  h2_rst: () => new TransportFailure('ERR_HTTP2_STREAM_ERROR'),
  goaway_0_close: () => new TransportFailure('UND_ERR_SOCKET', { goaway: 0 }),
  goaway_error: () => new TransportFailure('ERR_HTTP2_SESSION_ERROR', { goaway: 2 }),
  tls_cut: () => new TransportFailure('UND_ERR_SOCKET'),
};

export interface SimulatedRequest {
  readonly url: string;
  readonly headers: TransportRequest['headers'];
  readonly body: CompletionRequest;
  /** True once the proxy closed the connection before its end. */
  aborted: boolean;
  /** True once the provider has sent its whole answer. */
  over?: boolean;
}

interface Manner {
  /**
   * The size of the body's network chunks, and the pause before each one; by default one chunk per step, without
   * pauses.
   */
  readonly piece_bytes?: number | undefined;
  readonly piece_ms?: number | undefined;
  /** The number of connections refused before each successful one. */
  readonly refused_connections?: readonly number[] | undefined;
}

/** The scripted provider without a network. It performs its steps in virtual time, in pieces of any size. */
export class SimulatedProvider implements Transport {
  readonly requests: SimulatedRequest[] = [];
  /** All requests, including those to resume an answer, which have no body. */
  readonly attempts: (Pick<SimulatedRequest, 'url'> & Partial<SimulatedRequest>)[] = [];
  readonly #plan: (attempt: number) => Plan;
  readonly #time: Time;
  readonly #piece_bytes: number;
  readonly #piece_ms: number;
  readonly #refused_connections: number[];

  /** `plan` may change from one request to the next. */
  constructor(
    plan: Plan | ((attempt: number) => Plan),
    time: Time,
    { piece_bytes = Number.POSITIVE_INFINITY, piece_ms = 0, refused_connections = [] }: Manner = {},
  ) {
    this.#plan = typeof plan === 'function' ? plan : () => plan;
    this.#time = time;
    this.#piece_bytes = piece_bytes;
    this.#piece_ms = piece_ms;
    this.#refused_connections = [...refused_connections];
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const [refused = 0] = this.#refused_connections;
    if (refused === 0) this.#refused_connections.shift();
    else this.#refused_connections[0] = refused - 1;
    // The provider keeps no answers to resume.
    if (request.body === undefined) {
      if (request.method !== 'DELETE') this.attempts.push({ url: request.url });
      if (refused > 0) throw new TransportFailure('ECONNREFUSED');
      return { status: 404, headers: {}, body: bodyOf(nothing()) };
    }
    const { pathname } = new URL(request.url);
    const sent: unknown = JSON.parse(String(request.body));
    const body = PROVIDER_WIRES[wireAt(pathname) ?? 'chat_completions'].request(sent) as CompletionRequest;
    const recorded: SimulatedRequest = { url: request.url, headers: request.headers, body, aborted: false };
    this.attempts.push(recorded);
    if (refused > 0) throw new TransportFailure('ECONNREFUSED');
    this.requests.push(recorded);
    request.signal.addEventListener('abort', () => {
      recorded.aborted = true;
    });
    const steps = answer(this.#plan(this.requests.length), body, {
      attempt: this.requests.length,
      serial: this.requests.length,
      created: CREATED_S + this.requests.length,
      path: pathname,
    });
    const [head, ...rest] = steps;
    if (head?.kind === 'head') {
      return {
        status: head.status,
        headers: head.headers,
        body: bodyOf(this.#perform(rest, recorded, request.signal)),
      };
    }
    for await (const _ of this.#perform(steps, recorded, request.signal));
    throw new TransportFailure('UNKNOWN');
  }

  async close(): Promise<void> {}

  async *#perform(
    steps: readonly Step[],
    recorded: SimulatedRequest,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    try {
      yield* this.#steps(steps, signal);
    } finally {
      recorded.over = true;
    }
  }

  async *#steps(steps: readonly Step[], signal: AbortSignal): AsyncGenerator<Buffer> {
    for (const step of steps) {
      if (signal.aborted) throw new TransportFailure('ABORTED');
      switch (step.kind) {
        case 'send':
          for (let start = 0; start < step.bytes.length; start += this.#piece_bytes) {
            if (this.#piece_ms > 0) await this.#elapse(this.#piece_ms, signal);
            if (signal.aborted) throw new TransportFailure('ABORTED');
            yield step.bytes.subarray(start, Math.min(step.bytes.length, start + this.#piece_bytes));
          }
          break;
        case 'hold':
          yield* this.#hold(step, signal);
          break;
        case 'cut':
          throw FAILURES[step.how]();
        case 'end':
          return;
        case 'head':
        case 'goaway':
          break;
      }
    }
    throw new TransportFailure('UND_ERR_SOCKET');
  }

  async *#hold(step: Extract<Step, { kind: 'hold' }>, signal: AbortSignal): AsyncGenerator<Buffer> {
    const until_ms = this.#time.now() + (step.for_ms ?? Number.POSITIVE_INFINITY);
    while (!signal.aborted && this.#time.now() < until_ms) {
      if (step.sign) yield step.sign;
      const wait_ms = step.sign
        ? Math.min(step.every_ms, until_ms - this.#time.now())
        : until_ms - this.#time.now();
      await this.#elapse(wait_ms, signal);
    }
    if (signal.aborted) throw new TransportFailure('ABORTED');
  }

  #elapse(delay_ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = Number.isFinite(delay_ms) ? this.#time.after(delay_ms, end) : () => {};
      signal.addEventListener('abort', end);
    });
  }
}

async function* nothing(): AsyncGenerator<Buffer> {}

const bodyOf = (pieces: AsyncIterable<Buffer>): ResponseBody => ({
  async consume(take) {
    for await (const piece of pieces) await take(piece);
  },
});
