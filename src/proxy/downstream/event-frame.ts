import type { EpochName } from '../../checkpoint/epoch.ts';
import type { RunId } from '../../checkpoint/store.ts';
import type { Wire } from '../wires/common/wire.ts';

/**
 * A keep-alive comment with a single newline: an empty line would make it an empty event, which crashes some clients.
 */
export const KEEP_ALIVE = ': hb\n';

/**
 * An event id: `<run>.<epoch>.<ordinal>`. The epoch distinguishes an event lost with its log from the one that has its
 * ordinal now.
 */
export const eventId = (run: RunId, epoch: EpochName, seq: number): string => `${run}.${epoch}.${seq}`;

/** A `data:` event as sent. It has an id only on request, because some SDKs fail on ids. */
export function eventFrame(payload: string, wire: Wire, id?: string): string {
  const data = `data: ${payload}\n\n`;
  const named = wire.eventOf ? `event: ${wire.eventOf(payload)}\n${data}` : data;
  return id === undefined ? named : `id: ${id}\n${named}`;
}

/** One of our own events, outside any answer. `payload`: a single line. */
export const namedFrame = (name: string, payload: string, id: string): string =>
  `id: ${id}\nevent: ${name}\ndata: ${payload}\n\n`;

/** Events without ids. `frameOf`: the client's own format, if it has one. */
export const eventFrames = (payloads: readonly string[], wire: Wire, frameOf = eventFrame): string =>
  payloads.map((payload) => frameOf(payload, wire)).join('');
