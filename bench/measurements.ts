import { setTimeout as pause } from 'node:timers/promises';
import type { Outcome, Quantiles } from './client-messages.ts';
import type { Load } from './load.ts';
import { cpuMilliseconds, machineBusyMilliseconds, type Running, residentBytes } from './processes.ts';
import type { Target } from './target.ts';

/** The processes every measurement runs against. */
export interface Bench {
  readonly load: Load;
  readonly provider: Running;
}

export interface StreamingFigures {
  readonly events_per_s: number;
  /** User and system time of the proxy's processes; the direct way has none. */
  readonly cpu_us_per_event: number | undefined;
  /** Bytes sent to the store for each byte that was delivered, where that can be told. */
  readonly stored_per_delivered?: number;
  readonly latency_us: Quantiles;
  readonly first_token_us: Quantiles;
  /** Per cent of one core. `other` is everything on the machine that is no part of the benchmark. */
  readonly busy_percent: Record<'proxy' | 'client' | 'provider' | 'other', number>;
}

export const ARRIVALS = ['spread', 'bursts'] as const;

/** `spread`: independent streams, evenly interleaved. `bursts`: the events of each millisecond come at once. */
export type Arrivals = (typeof ARRIVALS)[number];

const ARRIVAL_STEP_US: Record<Arrivals, number> = { spread: 1, bursts: 1000 };

export interface PacedShape {
  readonly streams: number;
  readonly events_per_s_each: number;
  /** The streams are opened evenly over this time. */
  readonly ramp_ms: number;
  readonly warm_up_ms: number;
  readonly window_ms: number;
}

// Streams end this long after the window, so that none ends within it.
const TAIL_MS = 300;

export function measurePaced(
  bench: Bench,
  target: Target,
  arrivals: Arrivals,
  shape: PacedShape,
): Promise<StreamingFigures> {
  const { streams, ramp_ms, warm_up_ms, window_ms } = shape;
  const interval_us = Math.round(1e6 / shape.events_per_s_each);
  const events = Math.ceil(((ramp_ms + warm_up_ms + window_ms + TAIL_MS) * 1000) / interval_us);
  const arrival_step_us = ARRIVAL_STEP_US[arrivals];
  const begin = async () => {
    await bench.load.open({ port: target.port, streams, ramp_ms, interval_us, arrival_step_us, events });
    await pause(warm_up_ms);
  };
  return measureStreaming(bench, target, begin, () => pause(window_ms));
}

export interface SaturationShape {
  readonly streams: number;
  readonly events_each: number;
}

/** The window is the life of the streams: how long a fixed number of events takes is the result. */
export function measureSaturation(
  bench: Bench,
  target: Target,
  { streams, events_each }: SaturationShape,
): Promise<StreamingFigures> {
  const unpaced = { ramp_ms: 1, interval_us: 0, arrival_step_us: 1 };
  const window = async () => {
    await bench.load.open({ port: target.port, streams, events: events_each, ...unpaced });
    await bench.load.finish();
  };
  return measureStreaming(bench, target, () => Promise.resolve(), window);
}

async function measureStreaming(
  bench: Bench,
  target: Target,
  begin: () => Promise<void>,
  untilWindowEnds: () => Promise<void>,
): Promise<StreamingFigures> {
  const { load } = bench;
  await begin();
  await load.mark();
  const before = cpuTimes(bench, target);
  const stored_before = await target.storedBytes?.();
  await untilWindowEnds();
  const { events, bytes, duration_us } = await load.mark();
  const after = cpuTimes(bench, target);
  const stored_after = await target.storedBytes?.();
  const outcome = await load.finish();
  assertIntact(target, outcome);
  const spent_ms = (name: keyof typeof after) => after[name] - before[name];
  const percent = (milliseconds: number) => (milliseconds * 100_000) / duration_us;
  const ours_ms = spent_ms('proxy') + spent_ms('client') + spent_ms('provider') + spent_ms('orchestrator');
  return {
    events_per_s: (events * 1e6) / duration_us,
    cpu_us_per_event: target.pid === undefined ? undefined : (spent_ms('proxy') * 1000) / events,
    ...(stored_before !== undefined &&
      stored_after !== undefined && { stored_per_delivered: (stored_after - stored_before) / bytes }),
    latency_us: outcome.latency_us,
    first_token_us: outcome.first_token_us,
    busy_percent: {
      proxy: percent(spent_ms('proxy')),
      client: percent(spent_ms('client')),
      provider: percent(spent_ms('provider')),
      other: Math.max(0, percent(spent_ms('machine') - ours_ms)),
    },
  };
}

function cpuTimes({ load, provider }: Bench, target: Target) {
  return {
    proxy: target.pid === undefined ? 0 : cpuMilliseconds(target.pid),
    client: cpuMilliseconds(load.pid),
    provider: cpuMilliseconds(provider.pid),
    orchestrator: process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000,
    machine: machineBusyMilliseconds(),
  };
}

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

/** What many mostly idle streams cost. Wants a proxy that has just been started: a heap that has grown hides it. */
export async function measureMemory(
  bench: Bench,
  target: Target & { readonly pid: number },
  { streams, ramp_ms, hold_ms }: MemoryShape,
): Promise<MemoryFigures> {
  const { load } = bench;
  const { port, pid } = target;
  // The first streams load code and fill caches, which no further stream pays again.
  await load.open({
    port,
    streams: WARM_UP_STREAMS,
    ramp_ms: 1,
    events: 5,
    interval_us: 50_000,
    arrival_step_us: 1,
  });
  assertIntact(target, await load.finish());
  const baseline_bytes = residentBytes(pid);

  const interval_us = 1_000_000;
  const events = Math.ceil((ramp_ms + hold_ms + TAIL_MS) / 1000) + 1;
  await load.open({ port, streams, ramp_ms, interval_us, events, arrival_step_us: 1 });
  await pause(hold_ms);
  const open_bytes = residentBytes(pid);
  assertIntact(target, await load.finish());
  return {
    target: target.name,
    streams,
    baseline_bytes,
    open_bytes,
    bytes_per_stream: (open_bytes - baseline_bytes) / streams,
  };
}

/** Figures about an answer that lost something are no figures. */
function assertIntact(target: Target, { streams, broken }: Outcome): void {
  if (broken.length === 0) return;
  const examples = broken.slice(0, 5).join('\n  ');
  throw new Error(
    `${target.name}: ${broken.length} of ${streams} streams did not arrive intact\n  ${examples}`,
  );
}
