import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/**
 * Total size of both halves. Measured with short answers on a busy server: at V8's initial 1 MB, an answer causes six
 * times as many collections and costs 8 to 20 % more CPU. From 8 MB on, nothing more is saved, but memory is used.
 */
export const YOUNG_GENERATION_BYTES = 4 * 2 ** 20;

/**
 * Limits the space for short-lived objects to {@link YOUNG_GENERATION_BYTES}. V8 doubles it, up to 128 MB, whenever
 * much of it survives a collection, as when many streams begin, and hardly ever shrinks it, although running streams
 * need little. V8 reads the flag whenever it is about to grow the space, so it may be set at any time. The size is only
 * known after a collection, so it can exceed the limit within one turn of the event loop.
 */
export function boundYoungGeneration(): void {
  let factor = 0;
  const adjust = () => {
    const right = youngGenerationBytes() < YOUNG_GENERATION_BYTES ? 2 : 1;
    if (right === factor) return;
    factor = right;
    setFlagsFromString(`--semi-space-growth-factor=${factor}`);
  };
  adjust();
  new PerformanceObserver(adjust).observe({ entryTypes: ['gc'] });
}

export const youngGenerationBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
