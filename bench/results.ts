import type {
  Arrivals,
  MemoryFigures,
  PacedShape,
  SaturationShape,
  StreamingFigures,
} from './measurements.ts';
import { type Spread, spread } from './statistics.ts';

/** The figures of each round, by the name of the target. */
export type Rounds<Figures> = Readonly<Record<string, readonly Figures[]>>;

/** Everything that was measured, as `results/latest.json` holds it. */
export interface Results {
  readonly measured_at: string;
  readonly machine: Readonly<Record<string, string | number>>;
  /** Of the targets called holdfast; the first is the one the budgets are about. */
  readonly stores: readonly string[];
  readonly shapes: { readonly paced: PacedShape; readonly saturation: SaturationShape };
  /** Names of targets left out, with the reason. */
  readonly skipped: Readonly<Record<string, string>>;
  readonly paced: Partial<Record<Arrivals, Rounds<StreamingFigures>>>;
  readonly saturation: Rounds<StreamingFigures>;
  readonly memory: readonly MemoryFigures[];
}

/** The rounds of one target, each compared with what the others did in the same round. */
export interface Summary {
  readonly events_per_s: Spread;
  readonly cpu_us_per_event: Spread;
  readonly cpu_ratio: Readonly<Record<string, Spread>>;
  readonly stored_per_delivered: Spread | undefined;
  /** Over the direct way in the same round; of the direct way itself, its own latency. */
  readonly added_latency_us: { readonly p50: Spread; readonly p99: Spread; readonly p999: Spread };
  readonly added_first_token_us: { readonly p50: Spread; readonly p99: Spread };
  readonly busy_percent: StreamingFigures['busy_percent'];
}

/** The last one is Holdfast with a store that costs next to nothing: what another store adds. */
const BASELINES = ['pipe', 'nginx', 'holdfast-memory'];

export function summarise(rounds: Rounds<StreamingFigures>, name: string): Summary {
  const own = rounds[name] ?? [];
  const cpu = (figures: StreamingFigures | undefined) => figures?.cpu_us_per_event ?? Number.NaN;
  const each = (pick: (figures: StreamingFigures, round: number) => number) => spread(own.map(pick));
  const added = (pick: (figures: StreamingFigures) => number) =>
    each((figures, round) => {
      const direct = rounds.direct?.[round];
      return pick(figures) - (name === 'direct' || direct === undefined ? 0 : pick(direct));
    });
  const busy = (of: keyof StreamingFigures['busy_percent']) =>
    each((figures) => figures.busy_percent[of]).median;
  const baselines = BASELINES.filter((baseline) => rounds[baseline] !== undefined);
  return {
    events_per_s: each((figures) => figures.events_per_s),
    cpu_us_per_event: each(cpu),
    cpu_ratio: Object.fromEntries(
      baselines.map((baseline) => [
        baseline,
        each((figures, round) => cpu(figures) / cpu(rounds[baseline]?.[round])),
      ]),
    ),
    stored_per_delivered: own.some((figures) => figures.stored_per_delivered !== undefined)
      ? each((figures) => figures.stored_per_delivered ?? Number.NaN)
      : undefined,
    added_latency_us: {
      p50: added((figures) => figures.latency_us.p50),
      p99: added((figures) => figures.latency_us.p99),
      p999: added((figures) => figures.latency_us.p999),
    },
    added_first_token_us: {
      p50: added((figures) => figures.first_token_us.p50),
      p99: added((figures) => figures.first_token_us.p99),
    },
    busy_percent: {
      proxy: busy('proxy'),
      client: busy('client'),
      provider: busy('provider'),
      other: busy('other'),
    },
  };
}
