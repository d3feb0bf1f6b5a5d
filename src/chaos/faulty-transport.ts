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
  /** The first one strikes in the answer to the first request, and so on; later requests have none. */
  readonly faults: readonly Fault[];
  readonly time: Time;
  /** Gets a report for every fault: that it has struck, or why it has not. */
  readonly onFault: (report: FaultReport) => void;
}

/** Gives the answers to the requests of one run the faults that it is to recover from. */
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

  /** The run has ended: reports the faults that were not met. */
  end(): void {
    for (const [index, fault] of this.#options.faults.entries())
      if (index >= this.#requests) this.#outcomeOf(fault, index + 1).miss('the run made no such attempt');
  }

  /** The connections are not its own. */
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

/** Where the work fails, its fault is missed. */
async function missedBy<Result>(outcome: FaultOutcome, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    outcome.miss(`the answer failed (${transportCode(error)})`);
    throw error;
  }
}

/** The side of an attempt that takes the answer. */
class Taker implements AnswerSink {
  readonly gone: AbortSignal;
  isOver: boolean = false;
  readonly #take: TakePiece;
  #failure: TransportFailure | undefined;

  constructor(take: TakePiece, gone: AbortSignal) {
    this.#take = take;
    this.gone = gone;
  }

  /** How the connection ended, where it did not end well. */
  get failure(): TransportFailure | undefined {
    // What had come whole before a stall ends without one.
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
