import type { ClockLimits, HedgeConfiguration } from '../config/configuration.ts';
import type { Clock } from './interruption.ts';

/** The limits for one attempt, in milliseconds: `clocks.*` from the configuration, adapted to the circumstances. */
export interface Limits {
  readonly first_byte_ms: number;
  readonly first_token_ms: number;
  readonly idle_ms: number;
  /** Replaces `idle_ms` once the model has produced reasoning. */
  readonly idle_thinking_ms: number;
  readonly progress_ms: number;
  readonly progress_reasoning_ms: number;
  readonly attempt_ms: number;
  /** How long the target may stay silent before a hedge. Absent: no hedging. */
  readonly hedge?: HedgeWaits | undefined;
}

/** Before the first token, and after it. An unset field disables hedging in that phase. */
export type HedgeWaits = Pick<HedgeConfiguration, 'after_ms' | 'stall_ms'>;

export interface Circumstances {
  /** Another target can replace one that stays silent. */
  readonly hasStandIn: boolean;
  /** The model has produced reasoning before. */
  readonly thinks: boolean;
  /** The client receives the answer only once it is complete. */
  readonly unstreamed: boolean;
  /** Time left until the run's deadline; infinite without one. */
  readonly left_ms: number;
}

/** The circumstances of a request without a stand-in, a deadline or known reasoning. */
export const UNAIDED: Circumstances = {
  hasStandIn: false,
  thinks: false,
  unstreamed: false,
  left_ms: Number.POSITIVE_INFINITY,
};

type Waits = Pick<Limits, 'first_byte_ms' | 'first_token_ms' | 'idle_ms'>;

const ALONE: Waits = { first_byte_ms: 120_000, first_token_ms: 120_000, idle_ms: 90_000 };
const WITH_STAND_IN: Waits = { first_byte_ms: 30_000, first_token_ms: 30_000, idle_ms: 30_000 };

/**
 * The limits for one attempt. Configured values take precedence, but the waits until the first token end at the run's
 * deadline.
 */
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

/** The readings that an attempt's clocks are based on, in milliseconds of one monotonic clock. */
export interface Readings {
  readonly started_ms: number;
  /** When the last byte of the response arrived, headers included; `undefined` before the headers. */
  byte_ms: number | undefined;
  /** When the last delta with content arrived. Pings and comments don't count. */
  progress_ms: number | undefined;
  /** The model is reasoning and has not begun to answer, so the longer limit applies. */
  reasoning: boolean;
  /** The model has produced reasoning, and may reason again without sending it. */
  thought: boolean;
  /** A hedge has started since the last delta. */
  hedged: boolean;
  /** Set once the answer is complete: how long to wait for trailing events. */
  finish_at_ms?: number;
}

/** Excludes the last `pause_ms` from the clocks. */
export function shiftReadings(readings: Readings, pause_ms: number): void {
  if (readings.byte_ms !== undefined) readings.byte_ms += pause_ms;
  if (readings.progress_ms !== undefined) readings.progress_ms += pause_ms;
  if (readings.finish_at_ms !== undefined) readings.finish_at_ms += pause_ms;
}

export interface Deadline {
  readonly clock: Clock;
  readonly at_ms: number;
}

export function nextDeadline(readings: Readings, limits: Limits): Deadline {
  const { started_ms, byte_ms, progress_ms, reasoning, thought, hedged, finish_at_ms } = readings;
  if (finish_at_ms !== undefined) return { clock: 'progress', at_ms: finish_at_ms };
  const idle_ms = thought ? limits.idle_thinking_ms : limits.idle_ms;
  // If two expire together, the first in this order is reported: the more specific clock.
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
