/** What the model is told besides what its client sends: the same text on every wire, which knows how to put it. */
export interface Notice {
  /** `instructions`: with those of the client. `tool_results`: after the last tool result. */
  readonly place: 'instructions' | 'tool_results';
  readonly text: string;
}

/**
 * How a notice is put. `added`: as the wire has a place for it. `joined`: as part of something that the client sends,
 * because some chat templates refuse a second system message, and some a user message after a tool result.
 * `left_out`: not at all.
 */
export const FORMS = ['added', 'joined', 'left_out'] as const;
export type Form = (typeof FORMS)[number];
