import { slope, spread } from '../statistics.ts';
import { heapFloor, type Sample } from './samples.ts';
import type { StreamCounts } from './streams.ts';

export interface Check {
  readonly verdict: 'pass' | 'FAIL' | 'skip';
  readonly text: string;
}

export interface SoakRecord {
  /** Taken under full load, the warm-up left out. */
  readonly samples: readonly Sample[];
  /** Before the first stream. */
  readonly before: Sample;
  /** After the last stream, once connections had time to close. */
  readonly after: Sample;
  readonly streams: StreamCounts;
  readonly log: string;
}

/** Wide enough for a full garbage collection in each: at 500 streams there is one every two to three minutes. */
const FLOOR_WIDTH_MINUTES = 3;
const HEAP_MINUTES_MIN = 7;
/** Over the whole measured time. A leak of 1 KB per stream shows as more within ten minutes. */
const HEAP_GROWTH_LIMIT = 0.1;
const FDS_GROWTH_LIMIT = 0.05;
/** Sockets kept alive to the provider, the scrape itself. */
const FDS_LEFT_LIMIT = 16;

export function judge({ samples, before, after, streams, log }: SoakRecord): Check[] {
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
    heapCheck(samples, measured_minutes),
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

function heapCheck(samples: readonly Sample[], measured_minutes: number): Check {
  if (measured_minutes < HEAP_MINUTES_MIN) {
    return { verdict: 'skip', text: `heap: needs ${HEAP_MINUTES_MIN} minutes after the warm-up` };
  }
  const floor = heapFloor(samples, FLOOR_WIDTH_MINUTES);
  const bytes_per_minute = slope(floor);
  const growth = (bytes_per_minute * measured_minutes) / spread(floor.map(([, bytes]) => bytes)).median;
  const rate = `${(bytes_per_minute / 1e6).toFixed(2)} MB/min`;
  const share = `${percent(growth)} over ${measured_minutes.toFixed(1)} min, limit ${percent(HEAP_GROWTH_LIMIT)}`;
  return check(growth <= HEAP_GROWTH_LIMIT, `heap after collection grew by ${rate} (${share})`);
}

const check = (passed: boolean, text: string): Check => ({ verdict: passed ? 'pass' : 'FAIL', text });
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
