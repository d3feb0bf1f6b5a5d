import type { TransportResponse } from '../proxy/upstream/transport.ts';

export const isEventStream = ({ headers }: Pick<TransportResponse, 'headers'>): boolean =>
  /^text\/event-stream\b/i.test(String(headers['content-type']));

/** Why the answer's events can't be read; undefined if they can. */
export function whyUnread({ status, headers }: TransportResponse): string | undefined {
  if (status < 200 || status > 299) return `the upstream answered with status ${status}`;
  const { 'content-encoding': encoding = 'identity' } = headers;
  return encoding === 'identity' ? undefined : 'the answer is compressed';
}
