import type { Owner } from '../../checkpoint/store.ts';
import { isKeyed } from '../../config/configuration.ts';
import { remember } from '../../lib/bounded-map.ts';
import type { Time } from '../../lib/time.ts';
import type { Target } from './target.ts';

/**
 * A new permission to stream a model takes a quarter of an hour to become effective, so there is no need to remember
 * longer.
 */
const REMEMBERED_FOR_MS = 60 * 60 * 1000;
/** Clients name models, so the table must be bounded. */
const ENTRIES_MAX = 10_000;

/**
 * Models known to work only without a stream, per upstream. A refusal for one client's key says nothing about other
 * keys.
 */
export class StreamRefusals {
  readonly #time: Time;
  /** Expiry times, oldest first. */
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

  /** `model`: may be the client's name for it. */
  remember(target: Target, model: string, owner: Owner): void {
    const until_ms = this.#time.now() + REMEMBERED_FOR_MS;
    remember(this.#until_ms, keyOf(target, model, owner), until_ms, ENTRIES_MAX);
  }
}

const keyOf = ({ name, upstream, model: own }: Target, model: string, owner: Owner): string =>
  JSON.stringify([name, own ?? model, ...(isKeyed(upstream) ? [] : [owner])]);
