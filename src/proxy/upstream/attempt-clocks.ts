import { type Deadline, type Limits, nextDeadline, type Readings } from '../../interrupts/clocks.ts';
import type { Clock } from '../../interrupts/interruption.ts';
import type { Time } from '../../lib/time.ts';

/** What the clocks of one attempt run from; the attempt sets it as it hears of its provider. */
export interface AttemptTimes extends Readings {
  byte_ms: number | undefined;
  progress_ms: number | undefined;
  reasoning: boolean;
  thought: boolean;
  /** The answer is whole, and what may still follow it is waited for until then. */
  finish_at_ms: number | undefined;
}

export const timesFrom = (started_ms: number): AttemptTimes => ({
  started_ms,
  byte_ms: undefined,
  progress_ms: undefined,
  reasoning: false,
  thought: false,
  finish_at_ms: undefined,
});

/** As if the last `pause_ms` had not been. */
export function shiftTimes(times: AttemptTimes, pause_ms: number): void {
  if (times.byte_ms !== undefined) times.byte_ms += pause_ms;
  if (times.progress_ms !== undefined) times.progress_ms += pause_ms;
  if (times.finish_at_ms !== undefined) times.finish_at_ms += pause_ms;
}

/**
 * Calls back once when the provider has been silent, or has got nowhere, for too long. Returns a function that cancels
 * that; to be called anew when a deadline comes nearer, which only `finish_at_ms`, the response and the end of reasoning do.
 */
export function watchClocks(
  times: AttemptTimes,
  limits: Limits,
  time: Time,
  onExpired: (clock: Clock) => void,
): () => void {
  const arm = () =>
    time.after(Math.max(0, deadlineOf(times, limits).at_ms - time.now()), () => {
      // Not re-armed with every byte: the deadline is looked up when the timer fires.
      const { clock, at_ms } = deadlineOf(times, limits);
      if (time.now() >= at_ms) onExpired(clock);
      else cancel = arm();
    });
  let cancel = arm();
  return () => cancel();
}

const deadlineOf = (times: AttemptTimes, limits: Limits): Deadline =>
  times.finish_at_ms === undefined
    ? nextDeadline(times, limits)
    : { clock: 'progress', at_ms: times.finish_at_ms };
