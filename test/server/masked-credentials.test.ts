import type { IncomingMessage, ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { startProvider } from '../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../replica.ts';

const KEY = 'sk-of-the-operator-0123456789';
const OWN = 'sk-of-the-client-0123456789';
const CHAT = '/v1/chat/completions';
const STARS = (credential: string) => '*'.repeat(credential.length);

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** A replica in front of a provider that repeats the credential it received, in the way that `listener` implements. */
async function deploy(
  listener: Listener,
  upstream: Record<string, unknown> = { api_key: KEY },
): Promise<Replica> {
  const root = await startProvider((request, response) => {
    request.resume();
    request.on('end', () => listener(request, response));
  });
  return startReplica(
    { ...upstreamsAt(`${root}/v1`, upstream), recovery: { max_attempts: 1 }, log: { level: 'trace' } },
    { relay },
  );
}

const sentIn = ({ headers }: IncomingMessage): string => String(headers.authorization).replace('Bearer ', '');
const refusal = (credential: string) =>
  JSON.stringify({
    error: {
      message: `Incorrect API key provided: ${credential}. You can find yours at the provider.`,
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_api_key',
    },
  });

const chat = ({ api }: Replica, more: object = { stream: true }) =>
  fetch(api + CHAT, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${OWN}` },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }], ...more }),
  });

/** The kinds of requests a client can make; the last two are passed through. */
const ASKS: readonly (readonly [string, (replica: Replica) => Promise<Response>])[] = [
  ['a stream', (replica) => chat(replica)],
  ['a document', (replica) => chat(replica, {})],
  ['what is passed through with its body', (replica) => chat(replica, { stream: 'odd' })],
  [
    'what is passed through',
    ({ api }) => fetch(`${api}/v1/models`, { headers: { authorization: `Bearer ${OWN}` } }),
  ],
];
const PASSED = ASKS.slice(2);

describe.each([
  ["the operator's key", KEY, { api_key: KEY }],
  ["the client's own", OWN, {}],
])('%s, repeated by its provider', (_, credential, upstream) => {
  it.each(ASKS)('is hidden in the error that answers %s, and in the log', async (_name, ask) => {
    const replica = await deploy((request, response) => {
      const body = refusal(sentIn(request));
      response.writeHead(401, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'www-authenticate': `Bearer error="${sentIn(request)}"`,
      });
      response.end(body);
    }, upstream);
    const response = await ask(replica);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe(refusal(STARS(credential)));
    expect(response.headers.get('www-authenticate')).toBe(`Bearer error="${STARS(credential)}"`);
    expect(await replica.log()).not.toContain(credential);
  });

  it('is hidden in an error in the middle of a stream, and in the run that is kept', async () => {
    const replica = await deploy((request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
      const choices = [{ index: 0, delta: { role: 'assistant', content: 'kelp' }, finish_reason: null }];
      response.write(`data: ${JSON.stringify({ ...chunk, choices })}\n\n`);
      response.end(`data: ${refusal(sentIn(request))}\n\n`);
    }, upstream);
    const response = await chat(replica);
    const text = await response.text();
    expect(text).toContain('kelp');
    expect(text).toContain(`Incorrect API key provided: ${STARS(credential)}. You`);
    expect(text).not.toContain(credential);
    const run = `${replica.api}/holdfast/v1/runs/${response.headers.get('holdfast-run-id')}`;
    const kept = await fetch(run, { headers: { authorization: `Bearer ${OWN}` } });
    expect(await kept.text()).not.toContain(credential);
    expect(await replica.log()).not.toContain(credential);
  });

  it('is hidden in an error that comes as a stream, before the first token', async () => {
    const replica = await deploy((request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`event: error\ndata: ${refusal(sentIn(request))}`);
    }, upstream);
    expect(await (await chat(replica)).text()).not.toContain(credential);
    expect(await replica.log()).not.toContain(credential);
  });
});

const ENCODINGS: readonly (readonly [string, (body: string) => Buffer])[] = [
  ['gzip', (body) => gzipSync(body)],
  ['x-gzip', (body) => gzipSync(body)],
  ['deflate', (body) => deflateSync(body)],
  ['br', (body) => brotliCompressSync(body)],
  ['zstd', (body) => zstdCompressSync(Buffer.from(body))],
];

describe('an error that is compressed', () => {
  it.each(ENCODINGS)('is opened to hide a credential: %s', async (encoding, compress) => {
    const replica = await deploy((request, response) => {
      response.writeHead(401, { 'content-type': 'application/json', 'content-encoding': encoding });
      response.end(compress(refusal(sentIn(request))));
    });
    for (const [, ask] of ASKS) {
      const response = await ask(replica);
      expect([response.status, response.headers.get('content-encoding')]).toEqual([401, null]);
      expect(await response.text()).toBe(refusal(STARS(KEY)));
    }
  });

  it('stays as it is if there is none in it, or if it cannot be opened', async () => {
    for (const body of [gzipSync(refusal('another')), Buffer.from('not really gzip'), Buffer.alloc(0)]) {
      const replica = await deploy((_request, response) => {
        response.writeHead(404, {
          'content-type': 'application/json',
          'x-encoding': 'gzip',
          'content-encoding': 'gzip',
        });
        response.end(body);
      });
      for (const [, ask] of PASSED) {
        const response = await ask(replica);
        expect([response.status, response.headers.get('content-encoding')]).toEqual([404, 'gzip']);
        await response.arrayBuffer().catch(() => undefined);
      }
    }
  });
});

it('an answer that is no error is not looked into', async () => {
  const replica = await deploy((request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ sent: sentIn(request) }));
  });
  for (const [, ask] of PASSED) expect(await (await ask(replica)).json()).toEqual({ sent: KEY });
});
