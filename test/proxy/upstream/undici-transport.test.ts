import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { secureContext } from '../../../src/config/load.ts';
import type { Transport } from '../../../src/proxy/upstream/transport.ts';
import { createUndiciTransport } from '../../../src/proxy/upstream/undici-transport.ts';
import { certificate } from '../../provider/certificate.ts';
import { outcome } from '../outcome.ts';
import { type Listening, rawServer, rawTlsServer } from '../servers.ts';

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
const UNTIL_CLOSE = `${HEAD}connection: close\r\n\r\n`;

let transport: Transport | undefined;
let server: Listening | undefined;
afterEach(async () => {
  server?.close();
  await transport?.close();
});

async function serve(starting: Promise<Listening>, ca?: string): Promise<Listening> {
  server = await starting;
  transport = createUndiciTransport(
    ca === undefined ? {} : { [server.origin]: { secure: secureContext(ca) } },
  );
  return server;
}

const open = (path = '/', headers = {}) =>
  (transport as Transport).open({
    method: 'POST',
    url: `${server?.origin}${path}`,
    headers,
    body: '{}',
    signal: new AbortController().signal,
    connect_ms: 2_000,
  });

describe('a body that ended properly', () => {
  test.each([
    ['with its last chunk', `${CHUNKED}2\r\nhi\r\n0\r\n\r\n`],
    ['with its announced length', `${HEAD}content-length: 2\r\n\r\nhi`],
  ])('%s', async (_, response) => {
    await serve(rawServer((socket) => socket.write(response)));
    expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: 'proper' });
  });

  test('with a FIN, where only that can tell', async () => {
    await serve(rawServer((socket) => socket.end(`${UNTIL_CLOSE}hi`)));
    expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: 'proper' });
  });

  test('leaves its connection to the next request', async () => {
    const { sockets } = await serve(rawServer((socket) => socket.write(`${CHUNKED}0\r\n\r\n`)));
    await outcome(open());
    // undici takes a connection back one turn of the event loop after the response.
    await setImmediate();
    await outcome(open());
    expect(sockets).toHaveLength(1);
  });
});

describe('a body that was cut short', () => {
  test.each([
    ['between chunks', `${CHUNKED}2\r\nhi\r\n`, 'UND_ERR_SOCKET'],
    ['within a chunk', `${CHUNKED}ff\r\nhi`, 'UND_ERR_SOCKET'],
    [
      'within a chunk, when to be closed',
      `${HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\nff\r\nhi`,
      'HPE_UNKNOWN',
    ],
    ['before its length was reached', `${HEAD}content-length: 10\r\n\r\nhi`, 'UND_ERR_SOCKET'],
    [
      'before its length was reached, when to be closed',
      `${HEAD}connection: close\r\ncontent-length: 10\r\n\r\nhi`,
      'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    ],
    ['by something that is no chunk', `${CHUNKED}2\r\nhi\r\nzz\r\n`, 'HPE_UNKNOWN'],
  ])('%s', async (_, response, code) => {
    await serve(rawServer((socket) => socket.end(response)));
    expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: { code } });
  });

  test.each([
    ['chunked', `${CHUNKED}2\r\nhi\r\n`],
    [
      'chunked, when to be closed',
      `${HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n`,
    ],
    ['of known length', `${HEAD}content-length: 10\r\n\r\nhi`],
    ['that only a FIN may end', `${UNTIL_CLOSE}hi`],
  ])('by a reset: %s', async (_, response) => {
    const { sockets } = await serve(rawServer((socket) => socket.write(response)));
    const seen = await outcome(open(), () => sockets[0]?.resetAndDestroy());
    expect(seen).toEqual({ status: 200, text: 'hi', end: { code: 'ECONNRESET' } });
  });
});

describe('over TLS', () => {
  test('a connection cut within a record', async () => {
    const { sockets } = await serve(
      rawTlsServer(await certificate(), (socket) => socket.write(`${CHUNKED}2\r\nhi\r\n`)),
      (await certificate()).cert,
    );
    const seen = await outcome(open(), () => {
      const recordOf100BytesCutAfter3 = Buffer.from([23, 3, 3, 0, 100, 1, 2, 3]);
      sockets[0]?.end(recordOf100BytesCutAfter3);
    });
    expect(seen).toEqual({ status: 200, text: 'hi', end: { code: 'UND_ERR_SOCKET' } });
  });

  test('an authority that was not named is not trusted', async () => {
    await serve(rawTlsServer(await certificate(), (socket) => socket.end(`${UNTIL_CLOSE}hi`)));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  });

  test('an authority named for one origin is not trusted for another', async () => {
    const { cert } = await certificate();
    await serve(rawTlsServer(await certificate(), (socket) => socket.end(`${UNTIL_CLOSE}hi`)));
    transport = createUndiciTransport({ 'https://127.0.0.1:1': { secure: secureContext(cert) } });
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  });
});

describe('no response at all', () => {
  test('reset', async () => {
    await serve(rawServer((socket) => socket.resetAndDestroy()));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'ECONNRESET' } });
  });

  test('closed', async () => {
    await serve(rawServer((socket) => socket.end()));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'UND_ERR_SOCKET' } });
  });

  test('refused', async () => {
    const { close } = await serve(rawServer(() => {}));
    close();
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'ECONNREFUSED' } });
  });

  test('not HTTP', async () => {
    await serve(rawServer((socket) => socket.end('220 ready\r\n\r\n')));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'HPE_UNKNOWN' } });
  });

  test('a request that undici does not take', async () => {
    await serve(rawServer(() => {}));
    expect(await outcome(open('/', { expect: '100-continue' }))).toEqual({
      text: '',
      end: { code: 'UND_ERR_NOT_SUPPORTED' },
    });
  });
});

test('an informational response is not the response', async () => {
  await serve(
    rawServer((socket) => socket.end(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${UNTIL_CLOSE}hi`)),
  );
  expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: 'proper' });
});

test('a redirect is not followed', async () => {
  const { sockets } = await serve(
    rawServer((socket) =>
      socket.end('HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\nconnection: close\r\n\r\n'),
    ),
  );
  expect(await outcome(open())).toEqual({ status: 307, text: '', end: 'proper' });
  expect(sockets).toHaveLength(1);
});

test('no encoding is asked for, and one that comes all the same is left as it is', async () => {
  const requests: string[] = [];
  await serve(
    rawServer((socket, request) => {
      requests.push(request);
      socket.end(`${HEAD}content-encoding: gzip\r\nconnection: close\r\n\r\nnot really`);
    }),
  );
  expect((await outcome(open())).text).toBe('not really');
  expect(requests[0]).toContain('accept-encoding: identity\r\n');
});

test('headers, path and query go out as they are; response headers come under lower-case names', async () => {
  const requests: string[] = [];
  await serve(
    rawServer((socket, request) => {
      requests.push(request);
      socket.end(
        'HTTP/1.1 200 OK\r\nX-One: 1\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nconnection: close\r\n\r\n',
      );
    }),
  );
  const response = await open('/v1/models?limit=3&after=%20', {
    authorization: 'Bearer key',
    'x-two': ['2', 'ii'],
  });
  expect(requests[0]).toMatch(/^POST \/v1\/models\?limit=3&after=%20 HTTP\/1.1\r\n/);
  expect(requests[0]).toContain(
    'authorization: Bearer key\r\nx-two: 2\r\nx-two: ii\r\ncontent-length: 2\r\n',
  );
  expect(response.headers).toMatchObject({ 'x-one': '1', 'set-cookie': ['a=1', 'b=2'] });
});

test('closing the transport breaks what is open and refuses what is new', async () => {
  await serve(rawServer((socket) => socket.write(`${CHUNKED}2\r\nhi\r\n`)));
  const seen = await outcome(open(), () => void transport?.close());
  expect(seen).toEqual({ status: 200, text: 'hi', end: { code: 'UND_ERR_DESTROYED' } });
  expect(await outcome(open())).toEqual({ text: '', end: { code: 'UND_ERR_DESTROYED' } });
});
