import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startProvider } from '../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../replica.ts';

const APP = 'https://app.example.com';
const CHAT = '/v1/chat/completions';
const BODY = JSON.stringify({ model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'hi' }] });

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A replica with its own key, in front of a provider that allows every origin. */
async function deploy(listen: Record<string, unknown> = {}) {
  const asked: (string | undefined)[] = [];
  const url = await startProvider(({ method }, response) => {
    asked.push(method);
    response.writeHead(200, {
      'content-type': 'application/json',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
    });
    response.end('{"object":"list"}');
  });
  const replica = await startReplica({
    ...upstreamsAt(`${url}/v1`, { api_key: 'of the operator' }),
    listen: { port: 0, admin_port: 0, ...listen },
  });
  return { replica, asked };
}

/** Sends headers that browsers set but `fetch` doesn't let a test set. */
const ask = (
  { api }: Replica,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(api + path, { method, headers }, async (response) => {
      const { statusCode, headers } = response;
      resolve({ status: statusCode, headers, body: await text(response) });
    });
    request.on('error', reject).end(body);
  });

const corsOf = ({ headers }: Answer) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-')));

const json = { 'content-type': 'application/json' };

describe('a page of another origin', () => {
  const requests: readonly (readonly [string, string, Record<string, string>, string])[] = [
    ['POST', CHAT, json, BODY],
    // Requests that a page may send without a preflight.
    ['POST', CHAT, { 'content-type': 'text/plain' }, BODY],
    ['GET', '/v1/models', {}, ''],
    ['GET', '/holdfast/v1/runs', { authorization: 'Bearer of the client' }, ''],
    ['DELETE', '/v1/files/one', {}, ''],
    ['OPTIONS', CHAT, { 'access-control-request-method': 'POST' }, ''],
  ];

  it.each(requests)(
    'can neither spend a configured key nor read anything: %s %s %j',
    async (method, path, headers, body) => {
      const { replica, asked } = await deploy();
      for (const origin of [APP, 'http://127.0.0.1:1', 'http://localhost', 'null', 'x', '']) {
        const answer = await ask(replica, method, path, { ...headers, origin }, body);
        expect([origin, answer.status]).toEqual([origin, 403]);
        expect(JSON.parse(answer.body).error.code).toBe('origin_not_allowed');
        expect(corsOf(answer)).toEqual({});
      }
      expect(asked).toEqual([]);
    },
  );

  it('can spend none either where its browser does not say which one it is', async () => {
    const { replica, asked } = await deploy();
    for (const site of ['cross-site', 'same-site']) {
      const answer = await ask(replica, 'GET', '/v1/models', { 'sec-fetch-site': site });
      expect(answer.status).toBe(403);
    }
    expect(asked).toEqual([]);
    const typed = await ask(replica, 'GET', '/v1/models', { 'sec-fetch-site': 'none' });
    expect(typed.status).toBe(200);
  });

  it('can do what any client can if it is named', async () => {
    const { replica, asked } = await deploy({ cors_origins: ['http://other.example', APP] });
    const preflight = await ask(replica, 'OPTIONS', CHAT, {
      origin: APP,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,holdfast-resume,x-stainless-os',
      'access-control-request-private-network': 'true',
    });
    expect(preflight.status).toBe(204);
    expect(corsOf(preflight)).toEqual({
      'access-control-allow-origin': APP,
      'access-control-expose-headers': '*',
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'authorization,holdfast-resume,x-stainless-os',
      'access-control-allow-private-network': 'true',
      'access-control-max-age': '7200',
    });
    const readable = { 'access-control-allow-origin': APP, 'access-control-expose-headers': '*' };
    const stream = await ask(replica, 'POST', CHAT, { ...json, origin: APP }, BODY);
    expect(stream).toMatchObject({ status: 200, body: 'data: [DONE]\n\n' });
    const passed = await ask(replica, 'GET', '/v1/models', { origin: APP });
    const refused = await ask(replica, 'GET', '/holdfast/v1/runs/run_x/stream', { origin: APP });
    expect(refused.status).toBe(404);
    for (const answer of [stream, passed, refused]) {
      expect(corsOf(answer)).toEqual(readable);
      expect(answer.headers.vary).toBe('origin');
    }
    expect(asked).toEqual(['GET']);
  });
});

it.each(['127.0.0.1:8080', 'localhost:8080', '[::1]:8080', 'holdfast.internal', 'llm.svc'])(
  'a page that a reverse proxy serves under the same address (%s) is the own one',
  async (host) => {
    const { replica } = await deploy();
    const answer = await ask(replica, 'POST', CHAT, { ...json, host, origin: `http://${host}` }, BODY);
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual({});
  },
);

describe('a name that a page could point at the API', () => {
  const host = 'attacker.example:8080';

  it('is refused on the loopback address, with an origin and without', async () => {
    const { replica, asked } = await deploy();
    for (const headers of [{ host }, { host, origin: `http://${host}` }]) {
      const answer = await ask(replica, 'GET', '/v1/models', headers);
      expect(answer.status).toBe(421);
      expect(JSON.parse(answer.body).error).toMatchObject({
        code: 'host_not_allowed',
        message: expect.stringContaining('add its origin to listen.cors_origins'),
      });
    }
    expect(asked).toEqual([]);
  });

  it('is the name of a gateway elsewhere: only pages are refused', async () => {
    const { replica, asked } = await deploy({ host: '0.0.0.0', admin_host: '127.0.0.1' });
    expect((await ask(replica, 'GET', '/v1/models', { host })).status).toBe(200);
    const page = await ask(replica, 'GET', '/v1/models', { host, origin: `http://${host}` });
    expect(page.status).toBe(403);
    expect(asked).toEqual(['GET']);
  });

  it('is known where its origin is', async () => {
    const { replica } = await deploy({ cors_origins: ['https://llm.example.com'] });
    expect((await ask(replica, 'GET', '/v1/models', { host: 'llm.example.com' })).status).toBe(200);
  });
});

it('OPTIONS is answered here, whatever it asks for', async () => {
  const { replica, asked } = await deploy();
  for (const path of ['/v1/models', CHAT, '/holdfast/v1/runs', '/elsewhere']) {
    const answer = await ask(replica, 'OPTIONS', path, {});
    expect(answer).toMatchObject({ status: 204, headers: { allow: expect.stringContaining('POST') } });
  }
  expect(asked).toEqual([]);
});
