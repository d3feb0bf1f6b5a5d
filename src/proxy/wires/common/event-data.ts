import type { EventSourceMessage } from 'eventsource-parser';
import type { ProviderError } from '../../../interrupts/provider-error.ts';
import { isEmpty } from '../../../lib/json.ts';

/** Line breaks within a JSON document are white space, and clients accept one line per event. */
export const dataOf = ({ data }: EventSourceMessage): string =>
  data.includes('\n') ? data.replaceAll('\n', ' ') : data;

/** Names of events by which gateways keep connections alive, regardless of content. */
export const SIGNS_OF_LIFE: ReadonlySet<string> = new Set(['keepalive', 'keep-alive', 'heartbeat', 'ping']);

export const MALFORMED = { kind: 'malformed' } as const;
export const NOTHING = { kind: 'nothing' } as const;

type Unreadable =
  | typeof MALFORMED
  | typeof NOTHING
  | { readonly kind: 'error_event'; readonly error: ProviderError };

/**
 * Classifies an event whose data is no valid JSON or nests too deep. It may have carried a token, unless that can be
 * excluded.
 */
export function unparsedEvent(data: string, name: string | undefined): Unreadable {
  if (name === 'error') return { kind: 'error_event', error: { words: [], message: data } };
  const isSignOfLife = name !== undefined && SIGNS_OF_LIFE.has(name);
  return isSignOfLife || data.trim() === '' ? NOTHING : MALFORMED;
}

/** Classifies valid JSON that is no event of the wire. */
export const strayValue = (value: unknown): Unreadable => (isEmpty(value) ? NOTHING : MALFORMED);

/** Whether a text field has another type and isn't empty, so its content is unreadable. */
export const isUnreadableText = (value: unknown): boolean =>
  value !== undefined && typeof value !== 'string' && !isEmpty(value);
