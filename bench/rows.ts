/** The rows that can be measured separately, each with its description. */
export const ROWS = {
  memory: 'bytes per open stream, of 1000 that are mostly idle',
  short: 'answers of 20 events, as fast as they come, one after the other on 16 and on 200 connections',
  starts: '200 clients that connect and ask at the same moment: time to the first token',
  spread: 'long streams, their events evenly interleaved',
  bursts: 'the same streams, the events of all of them at the same moment',
  saturation: '16 streams with as many events as can be relayed',
} as const;

export type Row = keyof typeof ROWS;

export const ROW_NAMES = Object.keys(ROWS) as readonly Row[];

export function isRow(name: string): name is Row {
  return Object.hasOwn(ROWS, name);
}
