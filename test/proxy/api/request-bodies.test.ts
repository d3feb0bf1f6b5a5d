import { hash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { MemoryBudget } from '../../../src/lib/memory-budget.ts';
import { takeBody, takeJsonBodies } from '../../../src/proxy/api/request-bodies.ts';

const MB = 1_048_576;

/** A server that responds with the digest of the request body. */
async function start() {
  const budget = new MemoryBudget();
  const server = fastify({ bodyLimit: 32 * MB });
  takeJsonBodies(server, budget);
  server.post('/', async (request) => hash('sha256', takeBody(request) ?? ''));
  onTestFinished(() => server.close());
  return { budget, url: await server.listen({ host: '127.0.0.1', port: 0 }) };
}

/** `headers`: with or without the length of the body. */
const post = (url: string, body: Buffer, headers: Record<string, string | number>) =>
  new Promise<string>((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', ...headers },
    });
    request.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve(text));
    });
    for (let start = 0; start < body.length; start += 300_007)
      request.write(body.subarray(start, start + 300_007));
    request.end();
  });

const largeBody = (seed: number): Buffer =>
  Buffer.from(Array.from({ length: 500_000 }, (_, index) => `"${seed}:${index}",`).join(''));

test.each([
  ['with its length', (body: Buffer) => ({ 'content-length': body.length })],
  ['in chunks', () => ({})],
])('large bodies that come at once, each %s, arrive as they were sent', async (_, headersFor) => {
  const { url } = await start();
  const bodies = Array.from({ length: 8 }, (_, seed) => largeBody(seed));
  const digests = await Promise.all(bodies.map((body) => post(url, body, headersFor(body))));
  expect(digests).toEqual(bodies.map((body) => hash('sha256', body)));
});

test('a body whose bytes are all there already leaves the others their turns of the event loop', async () => {
  const { budget, url } = await start();
  let isDone = false;
  const body = Buffer.alloc(24 * MB, 'a');
  const answered = post(url, body, { 'content-length': body.length }).finally(() => {
    isDone = true;
  });
  let most_bytes = 0;
  for (let before = 0; !isDone; before = budget.held_bytes) {
    await turn();
    most_bytes = Math.max(most_bytes, budget.held_bytes - before);
  }
  expect(await answered).toBe(hash('sha256', body));
  // Three bytes are held per byte of the body. The last piece read, of 64 KB, may exceed the limit of a turn.
  expect(most_bytes).toBeLessThanOrEqual(3 * (131_072 + 65_536));
});
