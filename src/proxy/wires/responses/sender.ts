import type { Delta } from '../../../plans/delta.ts';
import type { AnswerSink } from '../common/wire.ts';
import { ClientResponseState } from './client-response-state.ts';
import type { Unnumbered } from './ending.ts';
import type { Json, ResponsesData, ResponsesEvent } from './event.ts';

/** Sends events to a client, numbered in a row, and keeps what the client makes of them. */
export class ResponsesSender {
  readonly shown = new ClientResponseState();
  /** The client was sent what the provider sent, and all of it. */
  isFaithful: boolean = true;
  readonly #sink: AnswerSink;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  get begun(): boolean {
    return this.shown.events > 0;
  }

  /** An event of the provider, with what has to be changed of it. */
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

  /** An event of our own. */
  emit(event: Unnumbered, deltas: readonly Delta[] = []): void {
    this.isFaithful = false;
    this.emitAside(event, deltas);
  }

  /** The same where it changes nothing of the response. */
  emitAside({ type, ...fields }: Unnumbered, deltas: readonly Delta[] = []): void {
    const data: ResponsesData = { type, sequence_number: this.shown.next_sequence, ...fields };
    this.#send(data, JSON.stringify(data), deltas);
  }

  /** Several events begin here, and no client may have some of them while the rest could be lost. */
  storeFirst(): void {
    this.#sink.storeFirst();
  }

  #isInStep({ sequence_number: number }: ResponsesData): boolean {
    // Some servers count from one, and some not at all.
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
