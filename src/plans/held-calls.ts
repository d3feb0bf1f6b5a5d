/** A call, for a model that has made it. */
export interface NamedCall {
  readonly id: string;
  readonly name: string;
}

/**
 * Calls that had begun and were held when they were noted. A journal has nothing of a call that is held: each of its
 * entries stands for events that the client has, and readers of older versions take one without any for damage.
 */
export interface HeldCalls {
  readonly calls: readonly NamedCall[];
  /** How many calls the journal had by then. Those after them may be these, settled since. */
  readonly settled: number;
}
