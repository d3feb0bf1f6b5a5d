import { slope, spread } from '../statistics.ts';
import type { LiveHeap } from './live-heap.ts';
import type { Sample } from './samples.ts';
import type { StreamCounts } from './streams.ts';

export interface Check {
  readonly verdict: 'pass' | 'FAIL' | 'skip';
  readonly text: string;
}

export interface SoakRecord {
  /** Samples and heaps are taken under full load, after the warm-up. */
  readonly samples: readonly Sample[];
  readonly heaps: readonly LiveHeap[];
  /** Taken before the first stream. */
  readonly before: Sample;
  /** Taken after the last stream, once connections had time to close. */
  readonly after: Sample;
  readonly streams: StreamCounts;
  readonly log: string;
}

/** A single heap is noisy: the number and age of the open streams differ between measurements. */
const HEAPS_MIN = 5;
/**
 * Growth of the live heap over the measured time. At 20,000 streams, 500 at a time, this is about 100 bytes per stream.
 */
const HEAP_GROWTH_LIMIT = 0.05;
const FDS_GROWTH_LIMIT = 0.05;
/** Allows for kept-alive sockets to the provider and for the scrape itself. */
const FDS_LEFT_LIMIT = 16;

export function judge({ samples, heaps, before, after, streams, log }: SoakRecord): Check[] {
  const measured_minutes = (samples.at(-1)?.minutes ?? 0) - (samples[0]?.minutes ?? 0);
  const fds = spread(samples.map(({ open_fds }) => open_fds));
  const fds_slope = slope(samples.map(({ minutes, open_fds }) => [minutes, open_fds]));
  const complaints = log.split('\n').filter((line) => /unhandled|uncaught/i.test(line));
  return [
    check(
      streams.broken.length === 0 && streams.intact > 0,
      `${streams.intact} streams intact, ${streams.broken.length} broken`,
    ),
    check(
      after.interruptions > 0 && after.recoveries > 0,
      `${after.interruptions} interruptions, ${after.recoveries} recoveries`,
    ),
    heapCheck(heaps),
    check(
      (fds_slope * measured_minutes) / fds.median <= FDS_GROWTH_LIMIT,
      `open files ${fds.min}–${fds.max} under load, ${fds_slope.toFixed(1)}/min`,
    ),
    check(
      after.open_fds <= before.open_fds + FDS_LEFT_LIMIT && after.active_runs === 0,
      `open files ${before.open_fds} before, ${after.open_fds} after; runs left: ${after.active_runs}`,
    ),
    check(after.checkpoint_errors === 0, `${after.checkpoint_errors} checkpoint errors`),
    check(
      complaints.length === 0,
      `unhandled rejections and exceptions in the log: ${complaints.length}${complaints.map((line) => `\n    ${line}`).join('')}`,
    ),
  ];
}

function heapCheck(heaps: readonly LiveHeap[]): Check {
  if (heaps.length < HEAPS_MIN) {
    return { verdict: 'skip', text: `heap: needs ${HEAPS_MIN} minutes after the warm-up` };
  }
  const measured_minutes = (heaps.at(-1)?.minutes ?? 0) - (heaps[0]?.minutes ?? 0);
  const { min, median, max } = spread(heaps.map(({ bytes }) => bytes));
  const bytes_per_minute = slope(heaps.map(({ minutes, bytes }) => [minutes, bytes]));
  const growth = (bytes_per_minute * measured_minutes) / median;
  const range = `${megabytes(min)}–${megabytes(max)} MB after ${heaps.length} full collections`;
  const share = `${percent(growth)} over ${measured_minutes.toFixed(1)} min, limit ${percent(HEAP_GROWTH_LIMIT)}`;
  return check(growth <= HEAP_GROWTH_LIMIT, `heap ${range}: grew by ${share}`);
}

const check = (passed: boolean, text: string): Check => ({ verdict: passed ? 'pass' : 'FAIL', text });
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
