import type { ClockLimits, HedgeConfiguration } from '../config/configuration.ts';
import type { Clock } from './interruption.ts';

/** The limits that an attempt is held to, in milliseconds: `clocks.*` of the configuration, under its circumstances. */
export interface Limits {
  readonly first_byte_ms: number;
  readonly first_token_ms: number;
  readonly idle_ms: number;
  /** Used instead of `idle_ms` once the model was seen to think. */
  readonly idle_thinking_ms: number;
  readonly progress_ms: number;
  readonly progress_reasoning_ms: number;
  readonly attempt_ms: number;
  /** After which silence another target is asked as well; none is, without it. */
  readonly hedge?: HedgeWaits | undefined;
}

/** Before the first token, and after it; unset where none is asked then. */
export type HedgeWaits = Pick<HedgeConfiguration, 'after_ms' | 'stall_ms'>;

export interface Circumstances {
  /** Another target can be asked in place of one that is silent. */
  readonly hasStandIn: boolean;
  /** The model was seen to think before. */
  readonly thinks: boolean;
  /** The client sees nothing of the answer before it is whole. */
  readonly unstreamed: boolean;
  /** Until the deadline of the run; infinite without one. */
  readonly left_ms: number;
}

/** A request that nothing can stand in for. */
export const UNAIDED: Circumstances = {
  hasStandIn: false,
  thinks: false,
  unstreamed: false,
  left_ms: Number.POSITIVE_INFINITY,
};

type Waits = Pick<Limits, 'first_byte_ms' | 'first_token_ms' | 'idle_ms'>;

const ALONE: Waits = { first_byte_ms: 120_000, first_token_ms: 120_000, idle_ms: 90_000 };
const WITH_STAND_IN: Waits = { first_byte_ms: 30_000, first_token_ms: 30_000, idle_ms: 30_000 };

/** The limits of one attempt. What is configured stands, but nothing is waited for beyond the deadline of the run. */
export function limitsFor(
  { first_byte_ms, first_token_ms, idle_ms, ...configured }: ClockLimits,
  { hasStandIn, thinks, unstreamed, left_ms }: Circumstances,
): Limits & Pick<ClockLimits, 'connect_ms'> {
  const { progress_reasoning_ms: thought_ms } = configured;
  const slow: Waits = unstreamed
    ? { first_byte_ms: thought_ms, first_token_ms: thought_ms, idle_ms: thought_ms }
    : ALONE;
  const waits = hasStandIn && !thinks ? WITH_STAND_IN : slow;
  const untilDeadline = (limit_ms: number) => Math.max(1, Math.min(limit_ms, left_ms));
  return {
    ...configured,
    connect_ms: untilDeadline(configured.connect_ms),
    first_byte_ms: untilDeadline(first_byte_ms ?? waits.first_byte_ms),
    first_token_ms: untilDeadline(first_token_ms ?? waits.first_token_ms),
    idle_ms: idle_ms ?? waits.idle_ms,
    idle_thinking_ms: idle_ms ?? slow.idle_ms,
  };
}

/** What an attempt's clocks run from; times in milliseconds of one monotonic clock. */
export interface Readings {
  readonly started_ms: number;
  /** The last byte of the response, headers included; `undefined` before them. */
  byte_ms: number | undefined;
  /** The last delta that said something: pings and comments are no progress. */
  progress_ms: number | undefined;
  /** The model is thinking and has not begun to answer: it may take longer. */
  reasoning: boolean;
  /** It was seen to think, and may do so again, unheard. */
  thought: boolean;
  /** Another target was asked as well since it last said something. */
  hedged: boolean;
  /** The answer is whole, and what may still follow it is waited for until then. */
  finish_at_ms?: number;
}

/** As if the last `pause_ms` had not been. */
export function shiftReadings(readings: Readings, pause_ms: number): void {
  if (readings.byte_ms !== undefined) readings.byte_ms += pause_ms;
  if (readings.progress_ms !== undefined) readings.progress_ms += pause_ms;
  if (readings.finish_at_ms !== undefined) readings.finish_at_ms += pause_ms;
}

/** A clock, and when it runs out. */
export interface Deadline {
  readonly clock: Clock;
  readonly at_ms: number;
}

/** The clock that runs out first. */
export function nextDeadline(readings: Readings, limits: Limits): Deadline {
  const { started_ms, byte_ms, progress_ms, reasoning, thought, hedged, finish_at_ms } = readings;
  if (finish_at_ms !== undefined) return { clock: 'progress', at_ms: finish_at_ms };
  const idle_ms = thought ? limits.idle_thinking_ms : limits.idle_ms;
  // In the order in which they are named when two are due at once: the more telling first.
  const deadlines: Deadline[] = [];
  if (byte_ms === undefined)
    deadlines.push({ clock: 'first_byte', at_ms: started_ms + limits.first_byte_ms });
  else deadlines.push({ clock: 'idle', at_ms: byte_ms + idle_ms });
  if (progress_ms === undefined) {
    deadlines.push({ clock: 'first_token', at_ms: started_ms + limits.first_token_ms });
  } else {
    const limit = reasoning ? limits.progress_reasoning_ms : limits.progress_ms;
    deadlines.push({ clock: 'progress', at_ms: progress_ms + limit });
  }
  deadlines.push({ clock: 'attempt', at_ms: started_ms + limits.attempt_ms });
  const hedge_ms = progress_ms === undefined ? limits.hedge?.after_ms : limits.hedge?.stall_ms;
  if (hedge_ms !== undefined && !hedged)
    deadlines.push({ clock: 'hedge', at_ms: (progress_ms ?? started_ms) + hedge_ms });
  return deadlines.reduce((first, other) => (other.at_ms < first.at_ms ? other : first));
}
