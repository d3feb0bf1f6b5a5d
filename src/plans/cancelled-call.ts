import type { Delta } from './delta.ts';

/** Why a call is cancelled that says what a settled one has said. */
export const REPEATED = 'repeated';

/** Gives a call up. That an interruption has cut it need not be said, for then the answer shows it. */
export const cancelDelta = (index: number, reason: string): Delta =>
  reason === REPEATED ? { kind: 'tool_cancel', index, reason } : { kind: 'tool_cancel', index };
