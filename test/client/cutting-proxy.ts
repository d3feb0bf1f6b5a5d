import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A proxy in front of a replica that cuts event streams. Closed when the test ends. */
export async function cuttingProxy(api: string) {
  const streams = new Set<ServerResponse>();
  const proxy = {
    url: '',
    /** Cuts each stream after this many events; `undefined` cuts none. */
    cut_after: undefined as number | undefined,
    /** The ids of the events passed on, over all streams. */
    ids: [] as string[],
    /** The `Last-Event-ID` of each stream requested; empty if the request had none. */
    asked: [] as string[],
    /** The number of open streams. */
    get open() {
      return streams.size;
    },
    beginAnew(cut_after: number) {
      Object.assign(proxy, { cut_after, ids: [], asked: [] });
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };

  async function passEvents(request: IncomingMessage, response: ServerResponse, body: ReadableStream) {
    proxy.asked.push(String(request.headers['last-event-id'] ?? ''));
    streams.add(response);
    response.once('close', () => streams.delete(response));
    let rest = '';
    let passed = 0;
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        if (passed === proxy.cut_after) return void response.destroy();
        const [, id] = /^id: (.*)$/m.exec(frame) ?? [];
        // Wait for the write, so that it arrives before the connection ends.
        await new Promise((resolve) => response.write(`${frame}\n\n`, resolve));
        if (id === undefined) continue;
        proxy.ids.push(id);
        passed++;
      }
    }
    if (passed === proxy.cut_after) response.destroy();
    else response.end();
  }

  const server = http.createServer(async (request, response) => {
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    const { method = '', url = '', headers } = request;
    const { host: _, connection: __, ...kept } = headers;
    const body = method === 'GET' ? {} : { body: request, duplex: 'half' as const };
    try {
      const answer = await fetch(`${api}${url}`, {
        method,
        headers: kept as Record<string, string>,
        ...body,
        signal: leaving.signal,
      } as RequestInit);
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
      response.flushHeaders();
      if (url.includes('/events') && answer.ok && answer.body)
        await passEvents(request, response, answer.body);
      else response.end(await answer.text());
    } catch {
      response.destroy();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => proxy.close());
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}
