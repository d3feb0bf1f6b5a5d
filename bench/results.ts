import type { Quantiles } from './client-messages.ts';
import type { Figures } from './figures.ts';
import type { MemoryFigures } from './rows/memory.ts';
import type { StreamingRow } from './scenarios.ts';
import { type Spread, spread } from './statistics.ts';
import { BEFORE } from './target.ts';

/** Figures of each round, keyed by target name. */
export type Rounds = Readonly<Record<string, readonly Figures[]>>;

/** All measurements, as stored in `results/latest.json`. */
export interface Results {
  readonly measured_at: string;
  readonly machine: Readonly<Record<string, string | number>>;
  /** Names of the Holdfast targets, one per store. The budgets apply to the first. */
  readonly holdfasts: readonly string[];
  /** Skipped targets and the reason for each. */
  readonly skipped: Readonly<Record<string, string>>;
  readonly scenarios: readonly ScenarioResult[];
  /** Empty if memory wasn't measured. */
  readonly memory: readonly MemoryFigures[];
}

export interface ScenarioResult {
  readonly row: StreamingRow;
  readonly title: string;
  readonly rounds: Rounds;
}

/** One target's rounds, each compared with the other targets in the same round. */
export interface Summary {
  readonly streams_per_s: Spread;
  readonly events_per_s: Spread;
  readonly cpu_us_per_stream: Spread;
  readonly cpu_us_per_event: Spread;
  readonly cpu_ratio: Readonly<Record<string, Spread>>;
  readonly first_token_us: Readonly<Record<'p50' | 'p99', Spread>>;
  /** Ratio of the 99th percentiles. */
  readonly first_token_ratio: Readonly<Record<string, Spread>>;
  readonly stored_per_delivered: Spread | undefined;
  /** Latency beyond the direct connection's in the same round. For the direct connection: its own latency. */
  readonly added_latency_us: Readonly<Record<keyof Quantiles, Spread>>;
  /** Median beyond the direct connection's in the same round. */
  readonly added_first_token_us: Spread;
  readonly busy_percent: Figures['busy_percent'];
}

/** Holdfast with the memory store, which costs next to nothing, shows what another store adds. */
const BASELINES = ['pipe', 'nginx', 'holdfast-memory', BEFORE];

export function summarise(rounds: Rounds, name: string): Summary {
  const own = rounds[name] ?? [];
  const each = (pick: (figures: Figures, round: number) => number) => spread(own.map(pick));
  const added = (pick: (figures: Figures) => number) =>
    each((figures, round) => {
      const direct = rounds.direct?.[round];
      return pick(figures) - (name === 'direct' || direct === undefined ? 0 : pick(direct));
    });
  const ratios = (pick: (figures: Figures) => number) =>
    Object.fromEntries(
      BASELINES.filter((baseline) => rounds[baseline] !== undefined).map((baseline) => [
        baseline,
        each((figures, round) => {
          const other = rounds[baseline]?.[round];
          return other === undefined ? Number.NaN : pick(figures) / pick(other);
        }),
      ]),
    );
  const busy = (of: keyof Figures['busy_percent']) => each((figures) => figures.busy_percent[of]).median;
  return {
    streams_per_s: each((figures) => figures.streams_per_s),
    events_per_s: each((figures) => figures.events_per_s),
    cpu_us_per_stream: each((figures) => figures.cpu_us_per_stream ?? Number.NaN),
    cpu_us_per_event: each((figures) => figures.cpu_us_per_event ?? Number.NaN),
    cpu_ratio: ratios((figures) => figures.cpu_us_per_event ?? Number.NaN),
    first_token_us: {
      p50: each((figures) => figures.first_token_us.p50),
      p99: each((figures) => figures.first_token_us.p99),
    },
    first_token_ratio: ratios((figures) => figures.first_token_us.p99),
    stored_per_delivered: own.some((figures) => figures.stored_per_delivered !== undefined)
      ? each((figures) => figures.stored_per_delivered ?? Number.NaN)
      : undefined,
    added_latency_us: {
      p50: added((figures) => figures.latency_us.p50),
      p99: added((figures) => figures.latency_us.p99),
      p999: added((figures) => figures.latency_us.p999),
    },
    added_first_token_us: added((figures) => figures.first_token_us.p50),
    busy_percent: {
      proxy: busy('proxy'),
      client: busy('client'),
      provider: busy('provider'),
      other: busy('other'),
    },
  };
}
