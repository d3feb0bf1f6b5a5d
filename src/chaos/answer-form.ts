import type { TransportResponse } from '../proxy/upstream/transport.ts';

export const isEventStream = ({ headers }: Pick<TransportResponse, 'headers'>): boolean =>
  /^text\/event-stream\b/i.test(String(headers['content-type']));

/** Why nothing can be found in an answer, where that is so. */
export function whyUnread({ status, headers }: TransportResponse): string | undefined {
  if (status < 200 || status > 299) return `the upstream answered with status ${status}`;
  const { 'content-encoding': encoding = 'identity' } = headers;
  return encoding === 'identity' ? undefined : 'the answer is compressed';
}
