import type { IncomingMessage } from 'node:http';

/** The request as a stream if it has a body. */
export function unreadBody(request: IncomingMessage): IncomingMessage | undefined {
  const { headers } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return hasBody ? request : undefined;
}
