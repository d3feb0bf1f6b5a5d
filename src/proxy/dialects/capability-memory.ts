import type { Time } from '../../time.ts';

/** Long enough to spare a day's recoveries the probe, short enough to notice a provider's upgrade. */
const REMEMBERED_FOR_MS = 24 * 60 * 60 * 1000;
/** Models are named by clients, so the table must not grow with them. */
const ENTRIES_MAX = 10_000;

/** What was learnt about assistant prefill, per upstream and model. */
export class CapabilityMemory {
  readonly #time: Time;
  readonly #entries = new Map<string, { readonly prefill: boolean; readonly until_ms: number }>();

  constructor(time: Time) {
    this.#time = time;
  }

  /** `undefined` while nothing is known. */
  prefill(upstream: string, model: string): boolean | undefined {
    const key = keyOf(upstream, model);
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (entry.until_ms > this.#time.now()) return entry.prefill;
    this.#entries.delete(key);
    return undefined;
  }

  rememberPrefill(upstream: string, model: string, prefill: boolean): void {
    const key = keyOf(upstream, model);
    // What is learnt anew is the youngest again.
    this.#entries.delete(key);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= ENTRIES_MAX && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(key, { prefill, until_ms: this.#time.now() + REMEMBERED_FOR_MS });
  }
}

const keyOf = (upstream: string, model: string) => JSON.stringify([upstream, model]);
