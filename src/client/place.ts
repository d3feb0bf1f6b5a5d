import { wireAt } from './wires.ts';

/** Where Holdfast is asked about what a request has led to, and the headers that show whose it is. */
export interface Place {
  readonly root: string;
  readonly headers: Headers;
}

/** What of a request is for it alone, and not for others with the same credential. */
const OF_ONE_REQUEST = /^(?:content-|accept|transfer-|holdfast-|idempotency-key|last-event-id)/;

/** Where Holdfast is, as a request on one of the wires shows; undefined for every other request. */
export function placeOf(address: string, given: Headers): Place | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const at = wireAt(url.pathname);
  if (!at) return undefined;
  const headers = new Headers(given);
  for (const name of [...headers.keys()]) if (OF_ONE_REQUEST.test(name)) headers.delete(name);
  return { root: url.origin + at.prefix, headers };
}
