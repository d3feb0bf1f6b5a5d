import { setTimeout as pause } from 'node:timers/promises';
import { assertIntact, type Bench } from '../figures.ts';
import { residentBytes } from '../processes.ts';
import type { Target } from '../target.ts';

export interface MemoryShape {
  readonly streams: number;
  readonly ramp_ms: number;
  readonly hold_ms: number;
}

export interface MemoryFigures {
  readonly target: string;
  readonly streams: number;
  readonly baseline_bytes: number;
  readonly open_bytes: number;
  readonly bytes_per_stream: number;
}

const WARM_UP_STREAMS = 20;
// Streams stay open for this long after their memory is read.
const TAIL_MS = 300;

/**
 * Measures the memory of many mostly idle streams. Needs a freshly started proxy, because a grown heap hides the cost.
 */
export async function measureMemory(
  bench: Bench,
  target: Target & { readonly pid: number },
  { streams, ramp_ms, hold_ms }: MemoryShape,
): Promise<MemoryFigures> {
  const { load } = bench;
  // The first streams load code and fill caches, a cost that later streams don't repeat.
  await load.open(target, { connections: WARM_UP_STREAMS, events: 5, interval_us: 50_000 });
  assertIntact(target, await load.finish());
  const baseline_bytes = residentBytes(target.pid);

  const events = Math.ceil((ramp_ms + hold_ms + TAIL_MS) / 1000) + 1;
  await load.open(target, { connections: streams, ramp_ms, events, interval_us: 1_000_000 });
  await pause(hold_ms);
  const open_bytes = residentBytes(target.pid);
  assertIntact(target, await load.finish());
  return {
    target: target.name,
    streams,
    baseline_bytes,
    open_bytes,
    bytes_per_stream: (open_bytes - baseline_bytes) / streams,
  };
}
