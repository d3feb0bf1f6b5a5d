import { ARRIVALS } from './measurements.ts';
import { type Results, summarise } from './results.ts';
import type { Spread } from './statistics.ts';

export interface BudgetResult {
  readonly figure: string;
  readonly unit: string;
  /** The median decides. Undefined where it could not be measured. */
  readonly measured: Spread | undefined;
  readonly limit: number;
  readonly met: boolean;
}

export function checkBudgets(results: Results): BudgetResult[] {
  const streaming = ARRIVALS.flatMap((arrivals) => {
    const rounds = results.paced[arrivals];
    if (rounds === undefined) return [];
    const redis = rounds['holdfast-redis'] && summarise(rounds, 'holdfast-redis');
    const own = rounds.holdfast === undefined ? undefined : summarise(rounds, 'holdfast');
    return [
      budget(`CPU per event, holdfast / pipe (${arrivals})`, '×', own?.cpu_ratio.pipe, 1.15),
      ...(rounds.nginx === undefined
        ? []
        : [budget(`CPU per event, holdfast / nginx (${arrivals})`, '×', own?.cpu_ratio.nginx, 2.6)]),
      ...(redis?.cpu_ratio['holdfast-memory'] === undefined
        ? []
        : [
            budget(
              `CPU per event, redis / memory (${arrivals})`,
              '×',
              redis.cpu_ratio['holdfast-memory'],
              1.3,
            ),
          ]),
      budget(
        `added latency per event, p50 (${arrivals})`,
        'ms',
        inMilliseconds(own?.added_latency_us.p50),
        0.2,
      ),
    ];
  });
  const bytes = results.memory.find(({ target }) => target === 'holdfast')?.bytes_per_stream;
  const kilobytes = bytes === undefined ? undefined : bytes / 1000;
  const memory = kilobytes === undefined ? undefined : { median: kilobytes, min: kilobytes, max: kilobytes };
  return [...streaming, budget('memory per open stream', 'KB', memory, 100)];
}

function budget(figure: string, unit: string, measured: Spread | undefined, limit: number): BudgetResult {
  return { figure, unit, measured, limit, met: measured !== undefined && measured.median <= limit };
}

function inMilliseconds(microseconds: Spread | undefined): Spread | undefined {
  if (microseconds === undefined) return undefined;
  const { median, min, max } = microseconds;
  return { median: median / 1000, min: min / 1000, max: max / 1000 };
}
