import type { EventSourceMessage } from 'eventsource-parser';
import type { ProviderError } from '../../../interrupts/provider-error.ts';
import { isEmpty } from '../../../lib/json.ts';

/** Line breaks inside a JSON document are white space, and clients take only one line per event. */
export const dataOf = ({ data }: EventSourceMessage): string =>
  data.includes('\n') ? data.replaceAll('\n', ' ') : data;

/** Names of events by which gateways keep a connection open, whatever is in them. */
export const SIGNS_OF_LIFE: ReadonlySet<string> = new Set(['keepalive', 'keep-alive', 'heartbeat', 'ping']);

export const MALFORMED = { kind: 'malformed' } as const;
export const NOTHING = { kind: 'nothing' } as const;

type Unreadable =
  | typeof MALFORMED
  | typeof NOTHING
  | { readonly kind: 'error_event'; readonly error: ProviderError };

/** What an event is whose data is no JSON, or nests too deep: it may have carried a token unless it provably did not. */
export function unparsedEvent(data: string, name: string | undefined): Unreadable {
  if (name === 'error') return { kind: 'error_event', error: { words: [], message: data } };
  const isSignOfLife = name !== undefined && SIGNS_OF_LIFE.has(name);
  return isSignOfLife || data.trim() === '' ? NOTHING : MALFORMED;
}

/** The same for data that parses to a value which is no event of the wire. */
export const strayValue = (value: unknown): Unreadable => (isEmpty(value) ? NOTHING : MALFORMED);

/** A field that should be text is something else, and not empty: what it says cannot be read. */
export const isUnreadableText = (value: unknown): boolean =>
  value !== undefined && typeof value !== 'string' && !isEmpty(value);
