/** Lets one thing happen at a time, in the order in which it was asked for. */
export class Turns {
  #taken: boolean = false;
  readonly #waiting: (() => void)[] = [];

  /** Calls `start` when its turn has come, at once if nobody else has it. Whoever started must call {@link end}. */
  take(start: () => void): void {
    if (this.#taken) {
      this.#waiting.push(start);
      return;
    }
    this.#taken = true;
    start();
  }

  end(): void {
    this.#taken = false;
    const next = this.#waiting.shift();
    if (next) this.take(next);
  }
}
