interface Waiter {
  readonly seq: number;
  readonly resolve: (stored: boolean) => void;
}

/** Those who wait for events to be stored, in the order in which these were recorded. */
export class StoredWaiters {
  #waiters: Waiter[] = [];

  /** Resolves with true once the event with this ordinal is stored, with false when it is not waited for any longer. */
  wait(seq: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiters.push({ seq, resolve });
    return promise;
  }

  storedUpTo(seq: number): void {
    while (this.#waiters[0] && this.#waiters[0].seq <= seq) this.#waiters.shift()?.resolve(true);
  }

  refuse(): void {
    for (const waiter of this.#waiters) waiter.resolve(false);
    this.#waiters = [];
  }
}
