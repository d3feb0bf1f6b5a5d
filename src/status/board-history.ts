import type { Time } from '../lib/time.ts';
import type { RunHistory } from './snapshot.ts';

const SLOT_MS = 30_000;
/** 15 minutes. */
const SLOTS = 30;

const COUNTS = ['begun', 'interrupted', 'rescued', 'failed'] as const;
type Count = (typeof COUNTS)[number];
type Slot = Record<Count, number>;

const emptySlot = (): Slot => ({ begun: 0, interrupted: 0, rescued: 0, failed: 0 });

/** Event counts of the last 15 minutes, in slots of 30 seconds. */
export class BoardHistory {
  readonly #time: Time;
  /** Indexed by slot number modulo their count. */
  readonly #slots = Array.from({ length: SLOTS }, emptySlot);
  /** Number of the latest slot, by the monotonic clock. */
  #latest: number;

  constructor(time: Time) {
    this.#time = time;
    this.#latest = this.#now;
  }

  add(count: Count): void {
    this.#turn();
    const slot = this.#slots[this.#latest % SLOTS];
    if (slot) slot[count]++;
  }

  /** The values of each count, from the oldest slot to the current one. */
  read(): RunHistory {
    this.#turn();
    const slots = Array.from(
      { length: SLOTS },
      (_, index) => this.#slots[(this.#latest + 1 + index) % SLOTS],
    );
    const series = (count: Count) => slots.map((slot) => slot?.[count] ?? 0);
    return {
      slot_ms: SLOT_MS,
      begun: series('begun'),
      interrupted: series('interrupted'),
      rescued: series('rescued'),
      failed: series('failed'),
    };
  }

  get #now(): number {
    return Math.floor(this.#time.now() / SLOT_MS);
  }

  #turn(): void {
    const now = this.#now;
    const passed = Math.min(now - this.#latest, SLOTS);
    for (let number = now - passed + 1; number <= now; number++) this.#slots[number % SLOTS] = emptySlot();
    this.#latest = now;
  }
}
