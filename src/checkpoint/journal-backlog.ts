import type { JournalEvent, JournalRecord, RunHeader } from './journal.ts';

interface Waiter {
  readonly seq: number;
  readonly resolve: (stored: boolean) => void;
}

/** What was recorded of a run and is not known to be stored, and what waits for that. */
export class JournalBacklog {
  #seq: number;
  #stored_seq: number;
  #header: RunHeader | undefined;
  #waiting: JournalEvent[] = [];
  #waiting_units = 0;
  /** Handed to the store and not yet acknowledged; sent again exactly as it is, so that nothing is stored twice. */
  #batch: readonly JournalRecord[] = [];
  /** In the order in which their events were recorded. */
  #waiters: Waiter[] = [];
  #isLost: boolean = false;
  #isOver: boolean = false;

  /** `start`: the header of a new run, or the ordinal of the last event that is stored already. */
  constructor(start: RunHeader | number) {
    this.#header = typeof start === 'number' ? undefined : start;
    this.#seq = typeof start === 'number' ? start : 0;
    this.#stored_seq = this.#seq;
  }

  /** Ordinal of the last event recorded, kept or not. */
  get seq(): number {
    return this.#seq;
  }

  /** Ordinal of the last event known to be stored. */
  get stored_seq(): number {
    return this.#stored_seq;
  }

  /** Some of what was recorded can never be stored. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** How many events wait to become part of a batch. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** What they weigh; see `unitsOf`. */
  get waiting_units(): number {
    return this.#waiting_units;
  }

  /** The batch that {@link next} gave last is not acknowledged. */
  get hasBatch(): boolean {
    return this.#batch.length > 0;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#batch.length === 0;
  }

  /** False when nothing is kept any more. */
  add(event: JournalEvent): boolean {
    this.#seq++;
    if (this.#isLost || this.#isOver) return false;
    this.#waiting.push(event);
    this.#waiting_units += unitsOf(event);
    return true;
  }

  /** The batch to be stored: the last one while that is not acknowledged, otherwise all that waits. `at_ms`: now. */
  next(at_ms: number): readonly JournalRecord[] {
    if (this.hasBatch) return this.#batch;
    const batch: JournalRecord[] = [];
    if (this.#header) batch.push({ seq: 0, at_ms, header: this.#header, events: [] });
    if (this.#waiting.length > 0) batch.push({ seq: this.#seq, at_ms, events: this.#waiting });
    this.#header = undefined;
    this.#batch = batch;
    this.#dropWaiting();
    return batch;
  }

  /** The batch is stored. */
  acknowledge(): void {
    this.#stored_seq = this.#batch.at(-1)?.seq ?? this.#stored_seq;
    this.#batch = [];
    while (this.#waiters[0] && this.#waiters[0].seq <= this.#stored_seq) this.#waiters.shift()?.resolve(true);
  }

  /** Resolves with true once everything recorded so far is stored, with false when it is not waited for any longer. */
  stored(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ seq: this.#seq, resolve });
    return promise;
  }

  /** Nothing waits any longer. */
  refuse(): void {
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters = [];
  }

  /** Once an event is gone, the later ones can never be stored: they would not follow the last one that is. */
  lose(): void {
    this.#isLost = true;
    this.#dropWaiting();
    this.refuse();
  }

  dropBatch(): void {
    this.#batch = [];
  }

  /** Nothing of it is to be stored any more. */
  end(): void {
    this.#isOver = true;
    this.#dropWaiting();
    this.dropBatch();
    this.refuse();
  }

  #dropWaiting(): void {
    this.#waiting = [];
    this.#waiting_units = 0;
  }
}

/** What an event weighs besides its text. */
const OVERHEAD_UNITS = 64;

/** What an event weighs in memory, roughly, in UTF-16 units. */
export function unitsOf(event: JournalEvent): number {
  let units = OVERHEAD_UNITS + (event.payload?.length ?? 0);
  for (const delta of event.deltas) {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
      case 'tool_arguments':
        units += delta.text.length;
        break;
      case 'choice_call':
        units += delta.arguments.length;
    }
  }
  return units;
}
