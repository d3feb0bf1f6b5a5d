/**
 * How a continuation asks for the rest. `resume` comes back to the very answer, which its provider has gone on with.
 * `restart` re-issues the original because nothing is worth keeping (R4).
 */
export const MODES = ['resume', 'prefill', 'nudge', 'replay', 'restart'] as const;
export type Mode = (typeof MODES)[number];
