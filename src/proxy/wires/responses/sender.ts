import type { Delta } from '../../../plans/delta.ts';
import type { AnswerSink } from '../common/wire.ts';
import { ClientResponseState } from './client-response-state.ts';
import type { Unnumbered } from './ending.ts';
import type { Json, ResponsesData, ResponsesEvent } from './event.ts';

/** Sends numbered events to a client, and tracks the client's view of them. */
export class ResponsesSender {
  readonly shown = new ClientResponseState();
  /** The client received exactly what the provider sent. */
  isFaithful: boolean = true;
  readonly #sink: AnswerSink;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  get begun(): boolean {
    return this.shown.events > 0;
  }

  /** Sends an event of the provider, with changes if necessary. */
  pass(event: ResponsesEvent, changes?: Json, deltas: readonly Delta[] = event.deltas): void {
    const { data, payload } = event;
    const isChanged = changes !== undefined && Object.keys(changes).length > 0;
    if (isChanged) this.isFaithful = false;
    if (this.#isInStep(data) && !isChanged) this.#send(data, payload, deltas);
    else {
      const { next_sequence: sequence_number } = this.shown;
      const isNumbered = data.sequence_number !== undefined;
      const changed: ResponsesData = { ...data, ...(isNumbered && { sequence_number }), ...changes };
      this.#send(changed, JSON.stringify(changed), deltas);
    }
  }

  /** Sends an event of our own. */
  emit(event: Unnumbered, deltas: readonly Delta[] = []): void {
    this.isFaithful = false;
    this.emitAside(event, deltas);
  }

  /** Sends an event of our own that doesn't change the response. */
  emitAside({ type, ...fields }: Unnumbered, deltas: readonly Delta[] = []): void {
    const data: ResponsesData = { type, sequence_number: this.shown.next_sequence, ...fields };
    this.#send(data, JSON.stringify(data), deltas);
  }

  /** Several events begin here, which must not be sent while some could still be lost. */
  storeFirst(): void {
    this.#sink.storeFirst();
  }

  #isInStep({ sequence_number: number }: ResponsesData): boolean {
    // Some servers start at one, others don't number events.
    if (!this.begun && number === 1) return true;
    return number === undefined || number === this.shown.next_sequence;
  }

  #send(data: ResponsesData, payload: string, deltas: readonly Delta[]): void {
    const isText = deltas.length === 1 && deltas[0]?.kind === 'text';
    const isRebuilt = isText && this.shown.rebuilds(data);
    this.shown.add(data);
    this.#sink.send(payload, deltas, !isRebuilt);
  }
}
