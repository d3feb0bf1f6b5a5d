import type { Clock } from './interruption.ts';

/** Limits in milliseconds; `clocks.*` in the configuration. */
export interface Limits {
  readonly first_byte_ms: number;
  readonly first_token_ms: number;
  readonly idle_ms: number;
  readonly progress_ms: number;
  readonly progress_reasoning_ms: number;
  readonly attempt_ms: number;
}

/** For an answer that nobody sees before it is whole: a model that thinks unheard is waited for like one that thinks aloud. */
export function patient<Clocks extends Limits>(limits: Clocks): Clocks {
  const { first_byte_ms, first_token_ms, idle_ms, progress_reasoning_ms: thought_ms } = limits;
  return {
    ...limits,
    first_byte_ms: Math.max(first_byte_ms, thought_ms),
    first_token_ms: Math.max(first_token_ms, thought_ms),
    idle_ms: Math.max(idle_ms, thought_ms),
  };
}

/** What an attempt's clocks run from; times in milliseconds of one monotonic clock. */
export interface Readings {
  readonly started_ms: number;
  /** The last byte of the response, headers included; `undefined` before them. */
  readonly byte_ms: number | undefined;
  /** The last delta that said something: pings and comments are no progress. */
  readonly progress_ms: number | undefined;
  /** The model is thinking and has not begun to answer: it may take longer. */
  readonly reasoning: boolean;
}

/** A clock, and when it runs out. */
export interface Deadline {
  readonly clock: Clock;
  readonly at_ms: number;
}

/** The clock that runs out first. */
export function nextDeadline(readings: Readings, limits: Limits): Deadline {
  const { started_ms, byte_ms, progress_ms, reasoning } = readings;
  // In the order in which they are named when two are due at once: the more telling first.
  const deadlines: Deadline[] = [];
  if (byte_ms === undefined)
    deadlines.push({ clock: 'first_byte', at_ms: started_ms + limits.first_byte_ms });
  else deadlines.push({ clock: 'idle', at_ms: byte_ms + limits.idle_ms });
  if (progress_ms === undefined) {
    deadlines.push({ clock: 'first_token', at_ms: started_ms + limits.first_token_ms });
  } else {
    const limit = reasoning ? limits.progress_reasoning_ms : limits.progress_ms;
    deadlines.push({ clock: 'progress', at_ms: progress_ms + limit });
  }
  deadlines.push({ clock: 'attempt', at_ms: started_ms + limits.attempt_ms });
  return deadlines.reduce((first, other) => (other.at_ms < first.at_ms ? other : first));
}
