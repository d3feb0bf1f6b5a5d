/** A call, for a model that has made it. */
export interface NamedCall {
  readonly id: string;
  readonly name: string;
}

/** A settled tool call. Never cut short: it is work that was done. */
export interface SettledCall extends NamedCall {
  readonly arguments: string;
}

/** A tool call as far as the model has made it. */
export interface ToolCall extends NamedCall {
  readonly index: number;
  readonly arguments: string;
  /** `cancelled` calls were cut by an interruption; they are kept to tell the model about. */
  readonly state: 'open' | 'closed' | 'cancelled';
  /** What began after it, if anything. */
  readonly followed: 'text' | 'call' | undefined;
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
