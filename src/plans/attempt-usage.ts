import type { Usage } from './delta.ts';
import type { Mode } from './seam/mode.ts';

/** What one attempt contributed, for the sum over attempts. */
export interface AttemptUsage {
  /** Unknown for attempts that another replica made. */
  readonly upstream?: string;
  readonly mode: 'first' | Mode;
  /** What the provider said, if it came to that. */
  readonly reported?: Usage;
  /** Deltas that reached the client. */
  readonly text: Count;
  readonly reasoning: Count;
  readonly tools: Count;
  /** Deltas that the client had seen already: echoes, repetitions, regenerated reasoning. */
  readonly swallowed: Count;
  /** Characters of each message that the continuation added to the request. */
  readonly added_messages: readonly number[];
  /** Characters of the reasoning that it was sent back besides. */
  readonly added_reasoning?: number;
}

export interface Count {
  readonly deltas: number;
  readonly characters: number;
}
