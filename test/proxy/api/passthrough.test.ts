import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../../cli-process.ts';
import { connect, providerRequests, receivedUntil, startProvider } from '../../http-peer.ts';
import { certificate } from '../../provider/certificate.ts';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../../replica.ts';

async function startBoth(more: Record<string, unknown> = {}, upstream: Record<string, unknown> = {}) {
  const provider = providerRequests();
  const root = await startProvider(provider.listener);
  const replica = await startReplica({ ...upstreamsAt(`${root}/v1`, upstream), ...more });
  return { provider, replica };
}

function send(replica: Replica, path: string, options: http.RequestOptions = {}) {
  const request = http.request(`${replica.api}${path}`, options);
  const response = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
  });
  response.catch(() => {});
  return { request, response };
}

describe('requests go up as they came', () => {
  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY'])('%s with a body', async (method) => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/files/a%20b?limit=2&q=%C3%A9', {
      method,
      headers: { 'content-type': 'application/x-strange', 'content-length': 4 },
    });
    request.end(Buffer.from([0, 1, 254, 255]));
    const up = await provider.next();
    expect(up.request.method).toBe(method);
    expect(up.request.url).toBe('/v1/files/a%20b?limit=2&q=%C3%A9');
    expect(up.request.headers).toMatchObject({
      'content-type': 'application/x-strange',
      'content-length': '4',
    });
    expect(await buffer(up.request)).toEqual(Buffer.from([0, 1, 254, 255]));
    up.response.writeHead(207, { 'x-request-id': 'req_1', 'set-cookie': ['a=1', 'b=2'] }).end('done');
    const down = await response;
    expect(down.statusCode).toBe(207);
    expect(down.headers).toMatchObject({ 'x-request-id': 'req_1', 'set-cookie': ['a=1', 'b=2'] });
    expect(await text(down)).toBe('done');
  });

  it('HEAD keeps the length of the body it does not have', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/models', { method: 'HEAD' });
    request.end();
    const up = await provider.next();
    up.response.writeHead(200, { 'content-length': 1234 }).end();
    expect((await response).headers['content-length']).toBe('1234');
  });

  it('a GET without a body gets none', async () => {
    const { provider, replica } = await startBoth();
    const { request } = send(replica, '/v1/models');
    request.end();
    const up = await provider.next();
    expect(up.request.headers).not.toHaveProperty('transfer-encoding');
    expect(up.request.headers).not.toHaveProperty('content-length');
  });

  it('a path keeps its spelling, and no header but via is added', async () => {
    const { provider, replica } = await startBoth();
    const socket = await connect(replica.api);
    socket.write('GET /v1/files/a|b"c?q=[^1]{} HTTP/1.1\r\nhost: x\r\nx-own: 1\r\n\r\n');
    const up = await provider.next();
    expect(up.request.url).toBe('/v1/files/a|b"c?q=[^1]{}');
    expect(up.request.headers).toEqual({
      host: expect.any(String),
      connection: 'keep-alive',
      via: expect.stringMatching(/^1\.1 holdfast-/),
      'x-own': '1',
    });
  });

  it('listing stored completions is no completion', async () => {
    const { provider, replica } = await startBoth();
    send(replica, '/v1/chat/completions?limit=1').request.end();
    expect((await provider.next()).request).toMatchObject({
      method: 'GET',
      url: '/v1/chat/completions?limit=1',
    });
  });

  it('a client that expects 100-continue may send its body', async () => {
    const { provider, replica } = await startBoth();
    const { request } = send(replica, '/v1/files', { method: 'POST', headers: { expect: '100-continue' } });
    request.flushHeaders();
    await once(request, 'continue');
    request.end('now');
    const up = await provider.next();
    expect(up.request.headers).not.toHaveProperty('expect');
    expect(await text(up.request)).toBe('now');
  });

  it('a completion that is passed through keeps its body byte for byte', async () => {
    const { provider, replica } = await startBoth();
    const body = ' {"model":"gpt-4o", "n":2, "messages":[],"seed":12345678901234567890,"stream":false}\n';
    const { request, response } = send(replica, '/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.end(body);
    const up = await provider.next();
    expect(await text(up.request)).toBe(body);
    up.response.writeHead(400, { 'content-type': 'text/html' }).end('<b>no</b>');
    const down = await response;
    expect([down.statusCode, down.headers['content-type'], await text(down)]).toEqual([
      400,
      'text/html',
      '<b>no</b>',
    ]);
  });

  it("a completion routed to another model asks for that route's model", async () => {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const replica = await startReplica({
      upstreams: { first: { base_url: NO_UPSTREAM_URL }, second: { base_url: `${root}/api/v3/` } },
      routes: [{ model: 'gpt-*', targets: [{ upstream: 'second', model: 'llama-4' }] }],
    });
    const { request } = send(replica, '/v1/chat/completions?x=1', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.end('{"model":"gpt-4o","messages":[1]}');
    const up = await provider.next();
    expect(up.request.url).toBe('/api/v3/chat/completions?x=1');
    expect(JSON.parse(await text(up.request))).toEqual({ model: 'llama-4', messages: [1] });
  });
});

describe('both directions stream', () => {
  it('a piece of the body goes up before the next one came', async () => {
    const { provider, replica } = await startBoth();
    const { request } = send(replica, '/v1/audio', { method: 'POST' });
    request.write('first');
    const up = await provider.next();
    const [first] = (await once(up.request, 'data')) as [Buffer];
    expect(first.toString()).toBe('first');
    request.end('second');
    const [second] = (await once(up.request, 'data')) as [Buffer];
    expect(second.toString()).toBe('second');
  });

  it('a piece of the answer comes down before the next one was made', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/audio/speech', { method: 'POST' });
    request.end();
    const up = await provider.next();
    up.response.writeHead(200, { 'content-type': 'text/event-stream' });
    up.response.write('data: 1\n\n');
    const down = await response;
    const [first] = (await once(down, 'data')) as [Buffer];
    expect(first.toString()).toBe('data: 1\n\n');
    up.response.end('data: 2\n\n');
    expect(await text(down)).toBe('data: 2\n\n');
  });

  it('an answer may come before the body was sent', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/files', { method: 'POST' });
    request.write('the first of many');
    const up = await provider.next();
    up.response.writeHead(403).end('no');
    expect((await response).statusCode).toBe(403);
    request.destroy();
  });

  it('a compressed answer stays compressed', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/models', { headers: { 'accept-encoding': 'gzip' } });
    request.end();
    const up = await provider.next();
    expect(up.request.headers['accept-encoding']).toBe('gzip');
    up.response.writeHead(200, { 'content-encoding': 'gzip' }).end('not really gzip');
    const down = await response;
    expect([down.headers['content-encoding'], await text(down)]).toEqual(['gzip', 'not really gzip']);
  });
});

describe('when one side goes, the other is told', () => {
  it('the upstream request is closed when the client leaves before the answer', async () => {
    const { provider, replica } = await startBoth();
    const { request } = send(replica, '/v1/models');
    request.end();
    const up = await provider.next();
    request.destroy();
    await once(up.response, 'close');
    expect(up.response.writableFinished).toBe(false);
  });

  it('the upstream request is closed when the client leaves during the answer', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/models');
    request.end();
    const up = await provider.next();
    up.response.write('some');
    await response;
    request.destroy();
    await once(up.response, 'close');
    expect(up.response.writableFinished).toBe(false);
  });

  it('the upstream request is closed when the client leaves while it is sending', async () => {
    const { provider, replica } = await startBoth();
    const { request } = send(replica, '/v1/files', { method: 'POST' });
    request.write('some');
    const up = await provider.next();
    up.request.on('error', () => {}).resume();
    request.destroy();
    await new Promise((resolve) => up.request.once('close', resolve));
    expect(up.request.complete).toBe(false);
  });

  it('an answer that breaks off does not look complete', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/models');
    request.end();
    const up = await provider.next();
    up.response.write('{"data":[');
    const down = await response;
    await once(down, 'data');
    up.response.destroy();
    await expect(text(down)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('a client that takes nothing holds the upstream back, and is cut off in the end', async () => {
    const { provider, replica } = await startBoth({ limits: { client_stall_ms: 100 } });
    const socket = await connect(replica.api);
    socket.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n');
    const up = await provider.next();
    const piece = Buffer.alloc(65536);
    while (up.response.write(piece)) await new Promise(setImmediate);
    const closed = once(up.response, 'close');
    let drained = false;
    up.response.on('drain', () => {
      drained = up.response.write(piece);
    });
    await closed;
    expect(drained).toBe(false);
    expect(up.response.writableFinished).toBe(false);
  });
});

describe('failures of the upstream', () => {
  const failure = async (response: Promise<http.IncomingMessage>) => {
    const down = await response;
    return { status: down.statusCode, ...JSON.parse(await text(down)).error };
  };

  it('unreachable', async () => {
    const replica = await startReplica(upstreamsAt(NO_UPSTREAM_URL));
    const { request, response } = send(replica, '/v1/models');
    request.end();
    expect(await failure(response)).toEqual({
      status: 502,
      code: 'upstream_unreachable',
      type: 'upstream_error',
      param: null,
      message: "Holdfast can't reach the upstream 'provider': ECONNREFUSED.",
    });
  });

  it('unreachable while the client sends a large body', async () => {
    const replica = await startReplica(upstreamsAt(NO_UPSTREAM_URL));
    const { request, response } = send(replica, '/v1/files', { method: 'POST' });
    request.end(Buffer.alloc(10_000_000));
    expect(await failure(response)).toMatchObject({ status: 502, code: 'upstream_unreachable' });
  });

  it('closed without an answer', async () => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, '/v1/models');
    request.end();
    (await provider.next()).request.socket.destroy();
    expect(await failure(response)).toMatchObject({ status: 502, code: 'upstream_unreachable' });
  });

  it('silent for too long', async () => {
    const { replica } = await startBoth({}, { clocks: { attempt_ms: 50 } });
    const { request, response } = send(replica, '/v1/models');
    request.end();
    expect(await failure(response)).toMatchObject({ status: 504, code: 'upstream_timeout' });
  });
});

it.each([
  '/v1/../admin',
  '/v1/files/%2e%2E/x',
  '/v1/..%2fadmin',
  '/v1/.%5c..',
  '/v1/a\\..\\..\\b',
  // As read by servers that strip parameters from each segment, decode twice, or end a string at a zero byte.
  '/v1/..;/admin',
  '/v1/files/..;x=1/..;/admin',
  '/v1/%2e%2e%3b/admin',
  '/v1/%252e%252e/admin',
  '/v1/%25252e%25252e%25252fadmin',
  '/v1/..%252fadmin',
  '/v1/files/x%00/y',
  '/v1/files/x%2500',
])('the path %s does not leave the API of the upstream', async (path) => {
  const { replica } = await startBoth();
  const socket = await connect(replica.api);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  expect(await receivedUntil(socket, '}}')).toMatch(/^HTTP\/1.1 404 [\s\S]*"code":"not_found"/);
});

it.each(['/v1/files/a..b', '/v1/files/...', '/v1/files/100%25', '/v1/files/a;b/c', '/v1/models/x%2Fy'])(
  'the path %s is passed on as it came',
  async (path) => {
    const { provider, replica } = await startBoth();
    const { request, response } = send(replica, path);
    request.end();
    const up = await provider.next();
    expect(up.request.url).toBe(path);
    up.response.end('{}');
    expect((await response).statusCode).toBe(200);
  },
);

it.each(['600', '999'])('the status %s, which is none, is not passed on', async (status) => {
  const { provider, replica } = await startBoth();
  const { request, response } = send(replica, '/v1/models');
  request.end();
  const { socket } = (await provider.next()).request;
  socket.end(`HTTP/1.1 ${status} Odd\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`);
  const down = await response;
  expect(down.statusCode).toBe(502);
  expect(JSON.parse(await text(down)).error).toMatchObject({
    code: 'upstream_unreachable',
    message: expect.stringContaining('HPE_INVALID_STATUS'),
  });
});

it.each(['http://127.0.0.1:9/v1/models', '//127.0.0.1:9/v1/models', '/%76%31/models'])(
  'the request target %s chooses no host',
  async (target) => {
    const { replica } = await startBoth();
    const socket = await connect(replica.api);
    socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(await receivedUntil(socket, '}}')).toMatch(/^HTTP\/1.1 404 /);
  },
);

it('an upstream that speaks HTTP/2 under an authority of its own is passed through to as well', async () => {
  const { key, cert } = await certificate();
  const ca_file = join(temporaryDirectory(), 'ca.pem');
  writeFileSync(ca_file, cert);
  const server = http2.createSecureServer({ key, cert }, async (request, response) => {
    const body = await text(request);
    response.writeHead(200, { 'x-version': request.httpVersion });
    response.end(`${request.method} ${request.url} ${body}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const base_url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const replica = await startReplica(upstreamsAt(base_url, { ca_file }));
  const response = await fetch(`${replica.api}/v1/embeddings?a=1`, { method: 'POST', body: 'input' });
  expect(response.headers.get('x-version')).toBe('2.0');
  expect(await response.text()).toBe('POST /v1/embeddings?a=1 input');
});

it('bodies of many megabytes go both ways over HTTP/2, and a stream that is reset breaks off', async () => {
  const { key, cert } = await certificate();
  const ca_file = join(temporaryDirectory(), 'ca.pem');
  writeFileSync(ca_file, cert);
  const server = http2.createSecureServer({ key, cert });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {}).respond({ ':status': 200 });
    if (headers[':path'] === '/v1/echo') stream.pipe(stream);
    else stream.write('some', () => stream.destroy(new Error('reset')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const base_url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const replica = await startReplica(upstreamsAt(base_url, { ca_file }));
  const sent = Buffer.alloc(20_000_000, 'a line of no particular length\n');
  const { request, response } = send(replica, '/v1/echo', { method: 'POST' });
  request.end(sent);
  expect(sent.equals(await buffer(await response))).toBe(true);
  const reset = send(replica, '/v1/reset');
  reset.request.end();
  await expect(text(await reset.response)).rejects.toMatchObject({ code: 'ECONNRESET' });
});
