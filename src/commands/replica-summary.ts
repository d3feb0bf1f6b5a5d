import type { Outcome } from '../plans/outcome.ts';
import type { Sample } from '../server/service.ts';
import { durationText } from './run-text.ts';

const RESCUED: ReadonlySet<unknown> = new Set<Outcome>(['recovered', 'salvaged']);
const FAILED: ReadonlySet<unknown> = new Set<Outcome>(['failed', 'rejected']);

/**
 * For example, `12 runs, 3 rescued, 1 failed, longest gap at most 500ms`. `runs`: ended runs by `outcome`. `gaps`:
 * histogram buckets of the silences during recoveries, which give only an upper bound for the longest one.
 */
export function summaryText(runs: readonly Sample[], gaps: readonly Sample[]): string {
  const sum = (isMeant: (outcome: unknown) => boolean) =>
    runs.reduce((total, { value, labels }) => total + (isMeant(labels.outcome) ? value : 0), 0);
  const count = sum(() => true);
  const gap = longestGap(gaps);
  return [
    `${count} ${count === 1 ? 'run' : 'runs'}`,
    `${sum((outcome) => RESCUED.has(outcome))} rescued`,
    `${sum((outcome) => FAILED.has(outcome))} failed`,
    ...(gap === undefined ? [] : [`longest gap ${gap}`]),
  ].join(', ');
}

/** Buckets are cumulative, and each upstream has its own. */
function longestGap(gaps: readonly Sample[]): string | undefined {
  const counts = new Map<string | number, number>();
  for (const { labels, value } of gaps)
    if (labels.le !== undefined) counts.set(labels.le, (counts.get(labels.le) ?? 0) + value);
  const buckets = [...counts];
  const [, all = 0] = buckets.at(-1) ?? [];
  if (all === 0) return undefined;
  const place = buckets.findIndex(([, count]) => count === all);
  const bound = (index: number) => durationText(Number(buckets[index]?.[0]) * 1000);
  return place === buckets.length - 1 ? `over ${bound(place - 1)}` : `at most ${bound(place)}`;
}
