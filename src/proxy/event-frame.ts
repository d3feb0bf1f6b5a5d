import type { RunId } from '../checkpoint/store.ts';

/** The epoch of the ids of a run that was never taken over. */
export const FIRST_EPOCH = 1;

/**
 * Names an event: `<run>.<epoch>.<ordinal>`. The epoch counts the takeovers before it, so that an event which was
 * lost with its log is not taken for the one that has its ordinal now.
 */
export const eventId = (run: RunId, epoch: number, seq: number): string => `${run}.${epoch}.${seq}`;

/** One `data:` event as it goes over the wire; with an id only where ids were asked for, since some SDKs die of them. */
export const eventFrame = (payload: string, id?: string): string =>
  id === undefined ? `data: ${payload}\n\n` : `id: ${id}\ndata: ${payload}\n\n`;
