import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { startProvider } from '../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../replica.ts';

const MB = 1_048_576;
const LIMITS = { memory_bytes: 16 * MB };
const REQUEST = { model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'hi' }] };
/** A body of about `bytes` bytes. The replica holds three times as many for it. */
const bodyOf = (bytes: number): string => JSON.stringify({ ...REQUEST, user: 'u'.repeat(bytes) });

const chunk = (text: string) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o', choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
const FINISH = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;

/** A replica in front of a provider that says one word, and ends its answers on demand. */
async function deploy(limits: Record<string, unknown> = {}) {
  const end = Promise.withResolvers<void>();
  const provider = await startProvider(async (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunk('Kelp '));
    await end.promise;
    response.end(chunk('grips.') + FINISH);
  });
  const replica = await startReplica(
    { ...upstreamsAt(`${provider}/v1`), limits: { ...LIMITS, ...limits } },
    { relay },
  );
  return { replica, endAnswers: end.resolve };
}

const post = ({ api }: Replica, body: string, headers: Record<string, string> = {}) =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });

/**
 * Sends the body in pieces, without a length. Resolves with the answer, which may come before the last piece is sent.
 */
const postInPieces = ({ api }: Replica, body: string, pieces: number) =>
  new Promise<{ readonly status: number | undefined; readonly body: string }>((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const request = httpRequest(`${api}/v1/chat/completions`, { method: 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode, body: text }));
    });
    request.on('error', reject);
    const size = Math.ceil(body.length / pieces);
    for (let start = 0; start < body.length; start += size) request.write(body.slice(start, start + size));
    request.end();
  });

/** Sends the whole body before it reads anything. Rejects if a reset cuts off the body or the answer. */
const sendThenRead = ({ api }: Replica, body: Buffer) =>
  new Promise<string>((resolve, reject) => {
    const { hostname, port } = new URL(api);
    const socket = connect(Number(port), hostname).on('error', reject).pause();
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'host: replica',
      'connection: close',
      'content-type: application/json',
      `content-length: ${body.length}`,
    ];
    let answer = '';
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    // The replica has refused the request by then.
    setTimeout(() => {
      socket.write(body, () => {
        socket.on('data', (piece) => {
          answer += piece;
        });
        socket.on('end', () => resolve(answer)).resume();
      });
    }, 100);
  });

const heldBy = ({ metrics }: Replica) => expect.poll(() => metrics.memory.held_bytes, { timeout: 5_000 });

async function expectExhausted(answer: Response): Promise<void> {
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.json()).toMatchObject({ error: { type: 'server_error', code: 'memory_exhausted' } });
}

describe('when memory is used up', () => {
  it('refuses what is new, and brings what is under way to its end', async () => {
    const { replica, endAnswers } = await deploy();
    const first = await post(replica, bodyOf(5 * MB));
    expect(first.status).toBe(200);
    await expectExhausted(await post(replica, bodyOf(MB)));
    const pieces = await postInPieces(replica, bodyOf(2 * MB), 100);
    expect([pieces.status, pieces.body]).toEqual([503, expect.stringContaining('memory_exhausted')]);
    // There is still room for small requests.
    const small = await post(replica, bodyOf(10));
    expect(small.status).toBe(200);
    const { body } = await fetch(`${replica.admin}/metrics`).then(async (answer) => ({
      body: await answer.text(),
    }));
    expect(body).toContain('holdfast_memory_refusals_total 2');
    endAnswers();
    for (const answer of [first, small]) expect(await answer.text()).toMatch(/Kelp .*grips\..*\[DONE\]/s);
    await heldBy(replica).toBe(0);
    const next = await post(replica, bodyOf(MB));
    expect(next.status).toBe(200);
    await next.text();
    await heldBy(replica).toBe(0);
  });

  it('refuses runs and readers, whatever they bring', async () => {
    const { replica, endAnswers } = await deploy();
    const first = await post(replica, bodyOf(10), { 'holdfast-resume': '1' });
    const run = first.headers.get('holdfast-run-id');
    const second = await post(replica, bodyOf(Math.floor(5.26 * MB)));
    expect([first.status, second.status]).toEqual([200, 200]);
    await expectExhausted(await fetch(`${replica.api}/holdfast/v1/runs/${run}/stream`));
    // The status of a run takes no memory.
    expect((await fetch(`${replica.api}/holdfast/v1/runs/${run}`)).status).toBe(200);
    await expectExhausted(await post(replica, bodyOf(10)));
    endAnswers();
    await Promise.all([first.text(), second.text()]);
    await heldBy(replica).toBe(0);
    const again = await fetch(`${replica.api}/holdfast/v1/runs/${run}/stream`);
    expect(await again.text()).toContain('grips.');
    await heldBy(replica).toBe(0);
  });
});

it('ends an answer that takes more than others may, and no other', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const provider = await startProvider(async (request, response) => {
    let asked = '';
    for await (const piece of request) asked += piece;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunk('Kelp '));
    if (asked.includes('flood')) {
      for (let count = 0; count < 600 && !response.destroyed; count++) {
        if (!response.write(chunk('flood '.repeat(2_000)))) await once(response, 'drain').catch(() => {});
      }
    }
    await ended;
    response.end(chunk('grips.') + FINISH);
  });
  const replica = await startReplica({ ...upstreamsAt(`${provider}/v1`), limits: LIMITS }, { relay });
  const honest = await post(replica, bodyOf(10));
  const flood = await post(replica, JSON.stringify({ ...REQUEST, user: 'flood' }));
  const flooded = await flood.text();
  expect(flooded.slice(flooded.lastIndexOf('data: {"error"'), -1)).toContain('"code":"memory_exhausted"');
  expect(flooded).not.toContain('[DONE]');
  end();
  expect(await honest.text()).toMatch(/Kelp .*grips\..*\[DONE\]/s);
  await heldBy(replica).toBe(0);
});

describe('memory is given back', () => {
  it.each<[string, string, number, Record<string, string>?]>([
    ['what is no JSON', `{"user":"${'u'.repeat(MB)}"`, 400],
    ['a field that is wrong', JSON.stringify({ ...REQUEST, messages: [], user: 'u'.repeat(MB) }), 400],
    ['too large a body', bodyOf(3 * MB), 413],
    ['a body that is encoded', bodyOf(MB), 415, { 'content-encoding': 'gzip' }],
    ['another type', bodyOf(MB), 415, { 'content-type': 'text/plain' }],
    ['a run that there is not', bodyOf(MB), 404, { 'holdfast-run-id': 'run_doesnotexist00000000aa' }],
    ['two credentials', bodyOf(MB), 400, { authorization: 'Bearer a', 'x-api-key': 'b' }],
  ])('by a request that is refused: %s', async (_, body, status, headers) => {
    const { replica } = await deploy({ body_bytes: 2 * MB });
    const answer = await post(replica, body, headers);
    expect(answer.status).toBe(status);
    await answer.text();
    await heldBy(replica).toBe(0);
  });

  it('by a client that goes in the middle of its body', async () => {
    const { replica } = await deploy();
    const headers = { 'content-type': 'application/json', 'content-length': 2 * MB };
    const request = httpRequest(`${replica.api}/v1/chat/completions`, { method: 'POST', headers });
    request.on('error', () => {});
    request.write('u'.repeat(MB));
    // Only bytes that have arrived count, not those announced.
    await heldBy(replica).toBe(3 * MB);
    request.destroy();
    await heldBy(replica).toBe(0);
  });

  it('by a client that goes in the middle of its answer', async () => {
    const { replica } = await deploy();
    const leaving = new AbortController();
    const answer = await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: bodyOf(MB),
      signal: leaving.signal,
    });
    expect(answer.status).toBe(200);
    await heldBy(replica).toBeGreaterThan(3 * MB);
    leaving.abort();
    await heldBy(replica).toBe(0);
  });

  it('by a run without a client only when it has ended', async () => {
    const { replica, endAnswers } = await deploy();
    const leaving = new AbortController();
    await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'holdfast-resume': '1' },
      body: bodyOf(MB),
      signal: leaving.signal,
    });
    leaving.abort();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(replica.metrics.memory.held_bytes).toBeGreaterThan(3 * MB);
    endAnswers();
    await heldBy(replica).toBe(0);
  });

  it('by an answer that is passed through', async () => {
    const { replica, endAnswers } = await deploy();
    endAnswers();
    const answer = await post(replica, JSON.stringify({ ...REQUEST, stream: false, n: 2 }));
    await answer.text();
    await heldBy(replica).toBe(0);
  });

  it('by a provider that is not there', async () => {
    const replica = await startReplica(
      { ...upstreamsAt('http://127.0.0.1:9/v1'), recovery: { max_attempts: 1 }, limits: LIMITS },
      { relay },
    );
    const answer = await post(replica, bodyOf(MB));
    expect(answer.status).toBeGreaterThanOrEqual(500);
    await answer.text();
    await heldBy(replica).toBe(0);
  });
});

it.each([
  ['memory is used up', 30 * MB, 503, 'memory_exhausted'],
  ['it is too large', 40 * MB, 413, 'body_too_large'],
])(
  'a client whose body is refused because %s reads the answer when it has sent all, and then its connection ends',
  async (_why, bytes, status, code) => {
    const { replica } = await deploy();
    const answer = await sendThenRead(replica, Buffer.from(bodyOf(bytes)));
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    expect(answer).toContain(code);
  },
);

it('a body that comes byte by byte is held in one piece', async () => {
  const { replica, endAnswers } = await deploy();
  endAnswers();
  const body = bodyOf(20_000);
  const answer = await postInPieces(replica, body, body.length);
  expect(answer.status).toBe(200);
  await heldBy(replica).toBe(0);
});
