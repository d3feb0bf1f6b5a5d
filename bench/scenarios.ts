import type { Bench, Figures } from './figures.ts';
import type { Options } from './options.ts';
import { type Arrivals, measurePaced } from './rows/paced.ts';
import { measureSaturation } from './rows/saturation.ts';
import { measureShort } from './rows/short.ts';
import { measureStarts } from './rows/starts.ts';
import type { Row } from './rows.ts';
import type { Target } from './target.ts';

/** A row that is measured in rounds. */
export type StreamingRow = Exclude<Row, 'memory'>;

export interface Scenario {
  readonly row: StreamingRow;
  readonly title: string;
  measure(bench: Bench, target: Target): Promise<Figures>;
  /** A shorter run of the same load. It lets the JIT compilers settle, so that the first round is like the last. */
  warmUp(bench: Bench, target: Target): Promise<Figures>;
}

const SHORT_CONNECTIONS = [16, 200];
const SHORT_EVENTS = 20;
const STARTS = { clients: 200, events_each: 20, interval_us: 20_000 };
const VOLLEY_MS = 1000;
const SATURATION_STREAMS = 16;
/** Makes the fastest target run for about the length of the window. */
const SATURATION_EVENTS_EACH_PER_S = 5000;
const WARM_UP_WINDOW_MS = 1000;
/** Measured: V8 stops compiling the code that starts and ends a run after about 15,000 answers. */
const START_WARM_UP_WINDOW_MS = 12_000;

export function scenariosOf(row: StreamingRow, options: Options): Scenario[] {
  switch (row) {
    case 'short':
      return SHORT_CONNECTIONS.map((connections, index) => short(connections, index === 0, options));
    case 'starts':
      return [starts(options)];
    case 'spread':
    case 'bursts':
      return [paced(row, options)];
    case 'saturation':
      return [saturation(options)];
  }
}

/** `isFirst`: the targets have just been started. */
function short(connections: number, isFirst: boolean, { window_ms }: Options): Scenario {
  const shape = (length_ms: number) => ({
    connections,
    events_each: SHORT_EVENTS,
    warm_up_ms: 800,
    window_ms: length_ms,
  });
  return {
    row: 'short',
    title: `short answers, ${connections} connections`,
    measure: (bench, target) => measureShort(bench, target, shape(window_ms)),
    warmUp: (bench, target) =>
      measureShort(bench, target, shape(isFirst ? START_WARM_UP_WINDOW_MS : WARM_UP_WINDOW_MS)),
  };
}

function starts({ window_ms }: Options): Scenario {
  const shape = (length_ms: number) => ({
    ...STARTS,
    volleys: Math.max(1, Math.round(length_ms / VOLLEY_MS)),
  });
  return {
    row: 'starts',
    title: `${STARTS.clients} starts at once`,
    measure: (bench, target) => measureStarts(bench, target, shape(window_ms)),
    warmUp: (bench, target) => measureStarts(bench, target, shape(WARM_UP_WINDOW_MS)),
  };
}

function paced(arrivals: Arrivals, { streams, events_per_s_each, window_ms }: Options): Scenario {
  const shape = (length_ms: number) => ({
    ...{ arrivals, streams, events_per_s_each },
    ...{ ramp_ms: 500, warm_up_ms: 800, window_ms: length_ms },
  });
  const rate = (streams * events_per_s_each).toLocaleString('en');
  return {
    row: arrivals,
    title: `${streams} streams × ${events_per_s_each} events/s = ${rate} events/s, arrivals: ${arrivals}`,
    measure: (bench, target) => measurePaced(bench, target, shape(window_ms)),
    warmUp: (bench, target) => measurePaced(bench, target, shape(WARM_UP_WINDOW_MS)),
  };
}

function saturation({ window_ms }: Options): Scenario {
  const shape = (length_ms: number) => ({
    streams: SATURATION_STREAMS,
    events_each: Math.ceil((SATURATION_EVENTS_EACH_PER_S * length_ms) / 1000),
  });
  return {
    row: 'saturation',
    title: `as fast as it goes, ${SATURATION_STREAMS} streams`,
    measure: (bench, target) => measureSaturation(bench, target, shape(window_ms)),
    warmUp: (bench, target) => measureSaturation(bench, target, shape(WARM_UP_WINDOW_MS)),
  };
}
