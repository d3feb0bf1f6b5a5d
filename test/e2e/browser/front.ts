import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * One origin on 127.0.0.1 for a page and for the replicas that it asks: `/<name>/…` goes to the replica of that name,
 * as it would through a reverse proxy, and everything else to `page`. Closed when the test ends.
 */
export async function openFront(
  replicas: Readonly<Record<string, string>>,
  page: RequestListener,
): Promise<string> {
  const server = http.createServer((request, response) => {
    const [, name = '', path = ''] = /^\/(\w+)(\/.*)$/.exec(request.url ?? '') ?? [];
    const replica = Object.hasOwn(replicas, name) ? replicas[name] : undefined;
    if (replica === undefined) page(request, response);
    else forward(request, response, new URL(path, replica));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function forward(request: IncomingMessage, response: ServerResponse, url: URL): void {
  const { method, headers } = request;
  const forwarded = http.request(url, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
    // What breaks on one side breaks on the other.
    answer.on('error', () => response.destroy()).pipe(response);
  });
  forwarded.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
}
