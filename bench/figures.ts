import type { Outcome, Quantiles } from './client-messages.ts';
import type { Load } from './load.ts';
import { cpuMilliseconds, machineBusyMilliseconds, type Running } from './processes.ts';
import type { Target } from './target.ts';

/** The processes that every measurement uses. */
export interface Bench {
  readonly load: Load;
  readonly provider: Running;
}

/** Results of one target in one round. */
export interface Figures extends Counted {
  /** From the provider's write to the client's read. */
  readonly latency_us: Quantiles;
  /** From the request to the first content. */
  readonly first_token_us: Quantiles;
}

/** Counts from one time window. */
export interface Counted {
  readonly streams_per_s: number;
  readonly events_per_s: number;
  /**
   * User and system time of all the proxy's processes and threads. Undefined for the direct connection, which has none.
   */
  readonly cpu_us_per_event: number | undefined;
  /** Also undefined if no stream ended within the window. */
  readonly cpu_us_per_stream: number | undefined;
  /** Bytes sent to the store per delivered byte, if known. */
  readonly stored_per_delivered?: number;
  /** Per cent of one core. `other` is everything on the machine outside the benchmark. */
  readonly busy_percent: Record<'proxy' | 'client' | 'provider' | 'other', number>;
}

/** `untilWindowEnds` resolves when the window is over. */
export async function countWindow(
  bench: Bench,
  target: Target,
  untilWindowEnds: () => Promise<void>,
): Promise<Counted> {
  const { load } = bench;
  await load.mark();
  const before = cpuTimes(bench, target);
  const stored_before = await target.storedBytes?.();
  await untilWindowEnds();
  const { events, streams, bytes, duration_us } = await load.mark();
  const after = cpuTimes(bench, target);
  const stored_after = await target.storedBytes?.();
  const spent_ms = (name: keyof typeof after) => after[name] - before[name];
  const percent = (milliseconds: number) => (milliseconds * 100_000) / duration_us;
  const ours_ms = spent_ms('proxy') + spent_ms('client') + spent_ms('provider') + spent_ms('orchestrator');
  const cpu_us_per = (count: number) =>
    target.pid === undefined || count === 0 ? undefined : (spent_ms('proxy') * 1000) / count;
  return {
    streams_per_s: (streams * 1e6) / duration_us,
    events_per_s: (events * 1e6) / duration_us,
    cpu_us_per_event: cpu_us_per(events),
    cpu_us_per_stream: cpu_us_per(streams),
    ...(stored_before !== undefined &&
      stored_after !== undefined && { stored_per_delivered: (stored_after - stored_before) / bytes }),
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

/** Throws an `Error` naming the first broken streams: figures for an incomplete answer are worthless. */
export function assertIntact(target: Target, { streams, broken }: Outcome): void {
  if (broken.length === 0) return;
  const examples = broken.slice(0, 5).join('\n  ');
  throw new Error(
    `${target.name}: ${broken.length} of ${streams} streams did not arrive intact\n  ${examples}`,
  );
}
