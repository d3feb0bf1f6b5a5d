import type { RunId } from '../checkpoint/store.ts';
import type { Wire } from './wires/wire.ts';

/** The epoch of the ids of a run that was never taken over. */
export const FIRST_EPOCH = 1;

/**
 * Names an event: `<run>.<epoch>.<ordinal>`. The epoch counts the takeovers before it, so that an event which was
 * lost with its log is not taken for the one that has its ordinal now.
 */
export const eventId = (run: RunId, epoch: number, seq: number): string => `${run}.${epoch}.${seq}`;

/** One `data:` event as it goes out; with an id only where ids were asked for, since some SDKs die of them. */
export function eventFrame(payload: string, wire: Wire, id?: string): string {
  const data = `data: ${payload}\n\n`;
  const named = wire.eventOf ? `event: ${wire.eventOf(payload)}\n${data}` : data;
  return id === undefined ? named : `id: ${id}\n${named}`;
}
