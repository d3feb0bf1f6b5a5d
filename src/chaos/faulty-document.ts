import { sleep, type Time } from '../lib/time.ts';
import type { Headers } from '../proxy/upstream/headers.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Place, Status } from './fault.ts';
import type { PendingFault } from './fault-outcome.ts';
import { refusalBody, statusOf } from './provider-errors.ts';

/** An answer that isn't streamed. */
export interface WholeDocument {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

interface DocumentOptions {
  readonly client: ClientConnection;
  readonly wire: Wire;
  readonly pending: PendingFault;
  readonly time: Time;
}

/** Sends a document with its fault, or unchanged if a document has no such place. */
export async function deliverDocument(
  { status, headers, bytes }: WholeDocument,
  { client, wire, pending: { fault, outcome }, time }: DocumentOptions,
): Promise<void> {
  const { kind, place } = fault;
  if (kind === 'error') {
    refuse(client, wire, statusOf(wire.name, fault.error));
    return outcome.strike();
  }
  const count = byteAt(place, bytes.length);
  const isCut = kind === 'cut' && count !== undefined;
  const { 'content-length': length, ...others } = headers;
  const isKnown = length !== undefined && !(isCut && fault.cut !== 'reset');
  client.begin(status, isKnown ? headers : others);
  if (count !== undefined) {
    await client.write(bytes.subarray(0, count));
    outcome.strike({ unit: 'bytes', count });
    if (isCut) return fault.cut === 'reset' ? client.reset() : client.end();
    if (kind === 'stall') await sleep(time, fault.duration_ms, client.gone);
  }
  await client.write(bytes.subarray(count ?? 0));
  client.end();
}

/** Answers like a provider that rejects the request. */
export function refuse(client: ClientConnection, wire: Wire, status: Status): void {
  client.begin(status, { 'content-type': 'application/json' });
  client.end(refusalBody(wire.name, status));
}

/** A document has no events, so places are counted in bytes. The place `tool` can't be located. */
function byteAt(place: Place, length: number): number | undefined {
  const last = Math.max(0, length - 1);
  switch (place.kind) {
    case 'start':
      return 0;
    case 'tool':
      return undefined;
    case 'end':
      return last;
    case 'percent':
      return Math.min(last, Math.floor((length * place.percent) / 100));
    case 'characters':
      return Math.min(last, place.characters);
  }
}
