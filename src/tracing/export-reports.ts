import type { Logger } from 'pino';
import type { Time } from '../lib/time.ts';

/** A receiver that fails now and then is told of no more often. */
const QUIET_MS = 60_000;

/** Tells the operator when traces begin to be lost and when they no longer are: once per outage, not per batch. */
export class ExportReports {
  readonly #log: Logger;
  readonly #time: Time;
  #since_ms: number | undefined;
  #lost = 0;
  /** When an outage was told last, and whether the present one was. */
  #told_ms = Number.NEGATIVE_INFINITY;
  #isTold = false;

  constructor(log: Logger, time: Time) {
    this.#log = log;
    this.#time = time;
  }

  succeeded(): void {
    if (this.#since_ms === undefined) return;
    const outage_ms = Math.round(this.#time.now() - this.#since_ms);
    if (this.#isTold) this.#log.info({ outage_ms, lost_spans: this.#lost }, 'traces are exported again');
    this.#since_ms = undefined;
    this.#isTold = false;
    this.#lost = 0;
  }

  failed(error: Error | undefined, spans: number): void {
    this.#lost += spans;
    this.#since_ms ??= this.#time.now();
    const now_ms = this.#time.now();
    if (this.#isTold || now_ms - this.#told_ms < QUIET_MS) return;
    this.#isTold = true;
    this.#told_ms = now_ms;
    this.#log.warn({ err: error }, 'traces cannot be exported: they are lost until they can');
  }
}
