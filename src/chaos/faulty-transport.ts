import { transportCode } from '../interrupts/classify.ts';
import type { Time } from '../lib/time.ts';
import {
  bodyOf,
  type ResponseBody,
  type TakePiece,
  type Transport,
  TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from '../proxy/upstream/transport.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import { isEventStream, whyUnread } from './answer-form.ts';
import type { AnswerSink } from './answer-sink.ts';
import type { Fault } from './fault.ts';
import { FaultOutcome, type PendingFault } from './fault-outcome.ts';
import { FaultyStream } from './faulty-stream.ts';
import { refusalBody } from './provider-errors.ts';
import type { FaultReport } from './report.ts';
import { ASSUMED_CHARACTERS } from './typical-length.ts';

export interface FaultyTransportOptions {
  readonly wire: Wire;
  /** The fault at index n strikes in the answer to request n + 1; later requests have none. */
  readonly faults: readonly Fault[];
  readonly time: Time;
  /** Called once per fault: when it has struck, or with the reason why it hasn't. */
  readonly onFault: (report: FaultReport) => void;
}

/** Injects faults into the answers to one run's requests. */
export class FaultyTransport implements Transport {
  readonly #transport: Transport;
  readonly #options: FaultyTransportOptions;
  #requests = 0;

  constructor(transport: Transport, options: FaultyTransportOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  get bare(): Transport {
    return this.#transport.bare ?? this.#transport;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const { wire, faults } = this.#options;
    const fault = faults[this.#requests++];
    if (!fault) return this.#transport.open(request);
    const outcome = this.#outcomeOf(fault, this.#requests);
    if (fault.kind === 'status') {
      outcome.strike();
      const body = bodyOf(Buffer.from(refusalBody(wire.name, fault.status)));
      return { status: fault.status, headers: { 'content-type': 'application/json' }, body };
    }
    const response = await missedBy(outcome, this.#transport.open(request));
    const unread = whyUnread(response) ?? (isEventStream(response) ? undefined : 'the answer is no stream');
    if (unread === undefined)
      return { ...response, body: this.#faulty(response.body, { fault, outcome }, request.signal) };
    outcome.miss(unread);
    return response;
  }

  /** Reports the remaining faults as missed when the run ends. */
  end(): void {
    for (const [index, fault] of this.#options.faults.entries())
      if (index >= this.#requests) this.#outcomeOf(fault, index + 1).miss('the run made no such attempt');
  }

  /** The wrapped transport owns the connections. */
  async close(): Promise<void> {}

  #outcomeOf(fault: Fault, request: number): FaultOutcome {
    const { wire, onFault } = this.#options;
    return new FaultOutcome({ request, path: wire.path, fault }, onFault);
  }

  #faulty(body: ResponseBody, pending: PendingFault, signal: AbortSignal): ResponseBody {
    const { wire, time } = this.#options;
    return {
      async consume(take) {
        const client = new Taker(take, signal);
        const stream = new FaultyStream({
          client,
          wire,
          pending,
          typical_characters: ASSUMED_CHARACTERS,
          time,
        });
        await missedBy(pending.outcome, stream.deliver(body));
        pending.outcome.miss('its place did not come');
        if (client.failure) throw client.failure;
      },
    };
  }
}

/** If the work fails, the fault counts as missed. */
async function missedBy<Result>(outcome: FaultOutcome, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    outcome.miss(`the answer failed (${transportCode(error)})`);
    throw error;
  }
}

/** Passes the answer on to the attempt. */
class Taker implements AnswerSink {
  readonly gone: AbortSignal;
  isOver: boolean = false;
  readonly #take: TakePiece;
  #failure: TransportFailure | undefined;

  constructor(take: TakePiece, gone: AbortSignal) {
    this.#take = take;
    this.gone = gone;
  }

  /** How the connection failed; undefined if it ended well. */
  get failure(): TransportFailure | undefined {
    // If the body arrived whole before a stall, it ends without a failure of its own even though the attempt was
    // aborted.
    return this.#failure ?? (this.gone.aborted ? new TransportFailure('UND_ERR_ABORTED') : undefined);
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    if (bytes.length === 0 || this.isOver || this.gone.aborted) return;
    await this.#take(Buffer.from(bytes as Uint8Array));
  }

  end(): void {
    this.isOver = true;
  }

  async reset(): Promise<void> {
    this.isOver = true;
    this.#failure = new TransportFailure('ECONNRESET');
  }
}
