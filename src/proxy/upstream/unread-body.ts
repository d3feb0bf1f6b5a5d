import type { IncomingMessage } from 'node:http';

/** The body of a request that has one, as it comes. */
export function unreadBody(request: IncomingMessage): IncomingMessage | undefined {
  const { headers } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return hasBody ? request : undefined;
}
