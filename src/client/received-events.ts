import type { Wire } from './wires.ts';

const TAIL_EVENTS_MAX = 4_096;
const TAIL_CHARACTERS_MAX = 1_048_576;

/** The events of a run that the caller has: their number, and the last ones, for a replica whose checkpoint lags behind. */
export class ReceivedEvents {
  /** The id of the last event; empty if it has none. */
  id = '';
  #cursor = 0;
  #characters = 0;
  #isComplete = false;
  readonly #tail: string[] = [];
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** How many events the caller has. */
  get cursor(): number {
    return this.#cursor;
  }

  /** The data of the last events, oldest first. */
  get tail(): readonly string[] {
    return this.#tail;
  }

  /** Whether the tail has all events. */
  get isWhole(): boolean {
    return this.#tail.length === this.#cursor;
  }

  /** Whether the last event ended the answer, in whichever way: nothing after it is missing. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  add(payload: string): void {
    this.#cursor += 1;
    this.#isComplete ||= this.#wire.isLast(payload);
    this.#characters += payload.length;
    this.#tail.push(payload);
    while (
      this.#tail.length > 1 &&
      (this.#tail.length > TAIL_EVENTS_MAX || this.#characters > TAIL_CHARACTERS_MAX)
    ) {
      this.#characters -= this.#tail.shift()?.length ?? 0;
    }
  }
}
