import { sleep, type Time } from '../lib/time.ts';
import { type ResponseBody, TransportFailure } from '../proxy/upstream/transport.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import type { AnswerSink } from './answer-sink.ts';
import { StepReader } from './answer-step.ts';
import { EventSplitter } from './event-splitter.ts';
import type { PlacedFault } from './fault.ts';
import type { PendingFault } from './fault-outcome.ts';
import { PlaceFinder } from './place-finder.ts';
import { errorEvents } from './provider-errors.ts';

/** Limit for one server-sent event. */
const EVENT_BYTES_MAX = 16 * 1024 * 1024;
/** Error code for an answer that exceeds a limit. */
export const TOO_LARGE = 'ANSWER_TOO_LARGE';

export interface FaultyStreamOptions {
  readonly client: AnswerSink;
  readonly wire: Wire;
  /** Undefined for an answer without a fault. */
  readonly pending: PendingFault | undefined;
  /** The length that percentages refer to. */
  readonly typical_characters: number;
  readonly time: Time;
}

/** One streamed answer on its way to the client, with at most one fault. */
export class FaultyStream {
  /** Characters of content sent to the client. */
  characters = 0;
  /** The answer reached its finish. */
  isFinished: boolean = false;
  readonly #options: FaultyStreamOptions;
  readonly #splitter = new EventSplitter();
  readonly #steps: StepReader;
  readonly #place: PlaceFinder | undefined;
  /** The first and last events, not counting comments. */
  #first: Buffer | undefined;
  #last: Buffer | undefined;

  constructor(options: FaultyStreamOptions) {
    const { wire, pending, typical_characters } = options;
    this.#options = options;
    this.#steps = new StepReader(wire, EVENT_BYTES_MAX);
    this.#place = pending && new PlaceFinder(pending.fault.place, typical_characters);
  }

  /** Resolves when the answer was sent or its fault ended it. Rejects if the body does. */
  async deliver(body: ResponseBody): Promise<void> {
    const { client } = this.#options;
    try {
      await body.consume((piece) => this.#take(piece));
    } catch (error) {
      if (!client.isOver) throw error;
    }
    await client.write(this.#splitter.takeRest());
    client.end();
  }

  async #take(piece: Buffer): Promise<void> {
    const { client } = this.#options;
    for (const event of this.#splitter.split(piece)) {
      if (event.length > EVENT_BYTES_MAX) throw new TransportFailure(TOO_LARGE);
      await this.#pass(event);
      if (client.isOver) throw new AnswerOver();
    }
    if (this.#splitter.held_bytes > EVENT_BYTES_MAX) throw new TransportFailure(TOO_LARGE);
  }

  async #pass(event: Buffer): Promise<void> {
    const { client, pending } = this.#options;
    const step = this.#steps.read(event);
    if (pending && !pending.outcome.isSettled && this.#place?.isBefore(step)) {
      pending.outcome.strike({ unit: 'characters', count: this.characters });
      await this.#strike(pending.fault, event);
      if (client.isOver) return;
    }
    if (event.includes('data:')) {
      this.#first ??= event;
      this.#last = event;
    }
    this.characters += step.characters;
    this.isFinished ||= step.isFinish;
    await client.write(event);
  }

  async #strike(fault: PlacedFault, event: Buffer): Promise<void> {
    const { client, wire, time } = this.#options;
    switch (fault.kind) {
      case 'stall':
        return sleep(time, fault.duration_ms, client.gone);
      case 'error': {
        const [first, last] = [this.#first?.toString(), this.#last?.toString()];
        await client.write(errorEvents(wire.name, fault.error, { first, last }));
        return client.end();
      }
      case 'cut':
        if (fault.cut === 'reset') return client.reset();
        if (fault.cut === 'truncate') await client.write(event.subarray(0, Math.ceil(event.length / 2)));
        return client.end();
    }
  }
}

/** Stops reading the body once the answer is over. */
class AnswerOver extends Error {
  override readonly name = 'AnswerOver';
}
