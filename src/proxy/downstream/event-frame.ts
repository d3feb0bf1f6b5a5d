import type { EpochName } from '../../checkpoint/epoch.ts';
import type { RunId } from '../../checkpoint/store.ts';
import type { Wire } from '../wires/common/wire.ts';

/** Keeps a connection alive. A single newline: an empty line after a comment is an empty event, which crashes some clients. */
export const KEEP_ALIVE = ': hb\n';

/**
 * Names an event: `<run>.<epoch>.<ordinal>`. By the epoch, an event which was
 * lost with its log is distinguished from the one that has its ordinal now.
 */
export const eventId = (run: RunId, epoch: EpochName, seq: number): string => `${run}.${epoch}.${seq}`;

/** One `data:` event as it goes out; with an id only where ids were asked for, since some SDKs die of them. */
export function eventFrame(payload: string, wire: Wire, id?: string): string {
  const data = `data: ${payload}\n\n`;
  const named = wire.eventOf ? `event: ${wire.eventOf(payload)}\n${data}` : data;
  return id === undefined ? named : `id: ${id}\n${named}`;
}

/** An event of ours that is part of no answer. `payload`: on one line. */
export const namedFrame = (name: string, payload: string, id: string): string =>
  `id: ${id}\nevent: ${name}\ndata: ${payload}\n\n`;

/** Events without ids. `frameOf`: where the client has one of its own. */
export const eventFrames = (payloads: readonly string[], wire: Wire, frameOf = eventFrame): string =>
  payloads.map((payload) => frameOf(payload, wire)).join('');
