import { setTimeout as pause } from 'node:timers/promises';
import { assertIntact, type Bench, countWindow, type Figures } from '../figures.ts';
import type { Target } from '../target.ts';

/** `spread`: independent streams, evenly interleaved. `bursts`: all streams send at the same moment. */
export type Arrivals = 'spread' | 'bursts';

export interface PacedShape {
  readonly arrivals: Arrivals;
  readonly streams: number;
  readonly events_per_s_each: number;
  /** Streams are opened evenly over this time. */
  readonly ramp_ms: number;
  readonly warm_up_ms: number;
  readonly window_ms: number;
}

// Streams end this long after the window, so none ends inside it.
const TAIL_MS = 300;

/** Measures relaying alone: no stream begins or ends inside the window. */
export async function measurePaced(bench: Bench, target: Target, shape: PacedShape): Promise<Figures> {
  const { load } = bench;
  const { streams, ramp_ms, warm_up_ms, window_ms } = shape;
  const interval_us = Math.round(1e6 / shape.events_per_s_each);
  // Closes any window left by an earlier measurement.
  await load.mark();
  await load.open(target, {
    connections: streams,
    ramp_ms,
    interval_us,
    arrival_step_us: shape.arrivals === 'spread' ? 1 : interval_us,
    events: Math.ceil(((ramp_ms + warm_up_ms + window_ms + TAIL_MS) * 1000) / interval_us),
  });
  await pause(warm_up_ms);
  const counted = await countWindow(bench, target, () => pause(window_ms));
  assertIntact(target, await load.finish());
  // First tokens come from the previous window, because all streams began before this one.
  const { last, previous } = await load.timings();
  return { ...counted, latency_us: last.latency_us, first_token_us: previous.first_token_us };
}
