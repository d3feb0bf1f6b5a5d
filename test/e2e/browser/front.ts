import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * Puts a page and the replicas it talks to behind one origin on 127.0.0.1, like a reverse proxy: `/<name>/…` goes to
 * the replica with that name, everything else to `page`. Closed when the test ends.
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
    // If one side breaks, break the other.
    answer.on('error', () => response.destroy()).pipe(response);
  });
  forwarded.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
  response.on('close', () => forwarded.destroy());
  request.pipe(forwarded);
}
