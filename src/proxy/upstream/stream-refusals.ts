import type { Owner } from '../../checkpoint/store.ts';
import { isKeyed } from '../../config/configuration.ts';
import { remember } from '../../lib/bounded-map.ts';
import type { Time } from '../../lib/time.ts';
import type { Target } from './target.ts';

/** The permission to stream a model takes a quarter of an hour to become effective, so this need not be longer. */
const REMEMBERED_FOR_MS = 60 * 60 * 1000;
/** Models are named by clients, so the table must not grow with them. */
const ENTRIES_MAX = 10_000;

/**
 * Models that are known to be had without a stream only, per upstream. What one client's key is refused says nothing
 * about another's.
 */
export class StreamRefusals {
  readonly #time: Time;
  /** Until when they are remembered, the oldest first. */
  readonly #until_ms = new Map<string, number>();

  constructor(time: Time) {
    this.#time = time;
  }

  has(target: Target, model: string, owner: Owner): boolean {
    const key = keyOf(target, model, owner);
    const until_ms = this.#until_ms.get(key);
    if (until_ms === undefined) return false;
    if (until_ms > this.#time.now()) return true;
    this.#until_ms.delete(key);
    return false;
  }

  /** `model` may be the name that the client uses. */
  remember(target: Target, model: string, owner: Owner): void {
    const until_ms = this.#time.now() + REMEMBERED_FOR_MS;
    remember(this.#until_ms, keyOf(target, model, owner), until_ms, ENTRIES_MAX);
  }
}

const keyOf = ({ name, upstream, model: own }: Target, model: string, owner: Owner): string =>
  JSON.stringify([name, own ?? model, ...(isKeyed(upstream) ? [] : [owner])]);
