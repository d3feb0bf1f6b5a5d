import { wireAt } from './wires.ts';

/** Where to ask Holdfast about a request's results, and the headers that identify their owner. */
export interface Place {
  readonly root: string;
  readonly headers: Headers;
}

/** Headers that belong to one request only, and not to others with the same credential. */
const OF_ONE_REQUEST = /^(?:content-|accept|transfer-|holdfast-|idempotency-key|last-event-id)/;

/** Holdfast's place, derived from a request on one of the wires; undefined for every other request. */
export function placeOf(address: string, given: Headers): Place | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const at = wireAt(url.pathname);
  if (!at) return undefined;
  const headers = new Headers(given);
  for (const name of [...headers.keys()]) if (OF_ONE_REQUEST.test(name)) headers.delete(name);
  return { root: url.origin + at.prefix, headers };
}
