import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

const chunk = (delta: object, finish_reason: string | null): string => {
  const choices = [{ index: 0, delta, finish_reason }];
  const event = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'any', choices };
  return `data: ${JSON.stringify(event)}\n\n`;
};

/** Starts a provider that sends the first word of each answer at once, and the last one only after `release`. */
export async function startHeldProvider() {
  const released = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunk({ role: 'assistant', content: 'Kelp ' }, null));
    await released.promise;
    response.end(`${chunk({ content: 'holds.' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, text: 'Kelp holds.', release: () => released.resolve() };
}
