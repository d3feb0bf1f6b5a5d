import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/**
 * Total size of both halves. Measured with short answers on a busy server: at 32 MB an answer costs 6 to 10 % more CPU,
 * at 8 MB 18 to 25 %. A collection copies what the runs in progress hold, whatever the size of the space, so a larger space
 * is collected less often at the same price.
 */
export const YOUNG_GENERATION_MAX_BYTES = 64 * 2 ** 20;
/** Below this share of the time, fewer collections would save less than the memory is worth. */
const COSTLY_SHARE = 0.03;
/** Longer than many streams take to begin: what they allocate then survives, however large the space is. */
const AVERAGED_OVER_MS = 5000;

/** Node's types lack it. */
interface CollectionEntry extends PerformanceEntry {
  readonly detail: { readonly kind: number };
}

/**
 * Lets the space for short-lived objects grow, up to {@link YOUNG_GENERATION_MAX_BYTES}, only while its collections
 * take much of the process's time. V8 itself doubles it, up to 128 MB, whenever much of it survives a collection, as
 * when many streams begin, although streams need little of it once they run. V8 reads the flag whenever it is about to
 * grow the space, so it may be set at any time, and shrinks the space only when little is allocated. A collection is
 * only reported after the turn of the event loop that it interrupted, so the size can exceed the limit within one turn.
 */
export function boundYoungGeneration(): void {
  let factor = 0;
  const setFactor = (right: number) => {
    if (right === factor) return;
    factor = right;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  setFactor(1);
  let share = 0;
  let counted_ms = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration, detail } of list.getEntries() as CollectionEntry[]) {
      if (detail.kind !== constants.NODE_PERFORMANCE_GC_MINOR) continue;
      share *= Math.exp((counted_ms - startTime) / AVERAGED_OVER_MS);
      share += duration / AVERAGED_OVER_MS;
      counted_ms = startTime;
    }
    setFactor(share > COSTLY_SHARE && 2 * youngGenerationBytes() <= YOUNG_GENERATION_MAX_BYTES ? 2 : 1);
  });
  observer.observe({ entryTypes: ['gc'] });
}

export const youngGenerationBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
