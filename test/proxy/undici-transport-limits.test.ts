import { getEventListeners, once } from 'node:events';
import http from 'node:http';
import http2, { type ServerHttp2Stream } from 'node:http2';
import net from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { secureContext } from '../../src/config/load.ts';
import { type ResponseBody, type Transport, TransportFailure } from '../../src/proxy/upstream/transport.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { type Certificate, certificate } from '../provider/certificate.ts';
import { outcome } from './outcome.ts';
import { type Listening, listen, rawServer } from './servers.ts';

const MIB = 1024 * 1024;
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const HI = '2\r\nhi\r\n';

let pem: Certificate;
let transport: Transport;
let server: Listening;
beforeAll(async () => {
  pem = await certificate();
});
afterEach(async () => {
  server.close();
  await transport.close();
});

async function serve(starting: Promise<Listening>): Promise<void> {
  server = await starting;
  transport = createUndiciTransport({ [server.origin]: { secure: secureContext(pem.cert) } });
}

const serveHttp2 = (onStream: (stream: ServerHttp2Stream, path: string) => void): Promise<void> => {
  const http2Server = http2.createSecureServer({ ...pem });
  http2Server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    onStream(stream, String(headers[':path']));
  });
  return serve(listen(http2Server, 'https'));
};

/** Unlike `once()`, this works after an error, too. */
const closed = (socket: net.Socket | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (!socket || socket.closed) resolve();
    else socket.once('close', () => resolve());
  });

function open({ path = '/', signal = new AbortController().signal, connect_ms = 5_000 } = {}) {
  return transport.open({
    method: 'POST',
    url: server.origin + path,
    headers: {},
    body: '{}',
    signal,
    connect_ms,
  });
}

describe('connect_ms', () => {
  const CONNECT_TIMEOUT = { text: '', end: { code: 'UND_ERR_CONNECT_TIMEOUT', clock: 'connect' } };

  test('limits a TLS handshake that is never answered', async () => {
    await serve(listen(net.createServer(), 'https'));
    expect(await outcome(open({ connect_ms: 100 }))).toEqual(CONNECT_TIMEOUT);
  });

  test('limits the wait for a connection that another request tries', async () => {
    await serve(listen(net.createServer(), 'https'));
    const started_ms = performance.now();
    const seen = await Promise.all(Array.from({ length: 10 }, () => outcome(open({ connect_ms: 100 }))));
    expect(new Set(seen.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify(CONNECT_TIMEOUT)]),
    );
    // One after the other, they would take ten times as long.
    expect(performance.now() - started_ms).toBeLessThan(500);
  });

  test('requests that ran out of it do not keep later ones from connecting', async () => {
    const handshakes = http2.createSecureServer({ ...pem });
    handshakes.on('stream', (stream) => {
      stream.respond();
      stream.end('hi');
    });
    let accepted = 0;
    await serve(
      listen(
        net.createServer((socket) => {
          accepted += 1;
          if (accepted > 1) handshakes.emit('connection', socket);
        }),
        'https',
      ),
    );
    // undici gives a connection up to a second more than its limit; the request after it must outlast that.
    const connect_ms = 1_200;
    await Promise.all(Array.from({ length: 10 }, () => outcome(open({ connect_ms }))));
    expect(await outcome(open({ connect_ms }))).toEqual({ status: 200, text: 'hi', end: 'proper' });
    // Requests that have given up don't cause new connections.
    expect(accepted).toBeLessThan(5);
  });

  test('is over once connected: the wait for a response is not its concern', async () => {
    await serve(
      rawServer((socket) => void setTimeout(200).then(() => socket.end(`${CHUNKED}${HI}0\r\n\r\n`))),
    );
    expect(await outcome(open({ connect_ms: 100 }))).toEqual({ status: 200, text: 'hi', end: 'proper' });
  });
});

describe('an abort', () => {
  const ABORTED = { code: 'UND_ERR_ABORTED' };

  test('before the request: no connection is made', async () => {
    await serve(rawServer(() => {}));
    expect(await outcome(open({ signal: AbortSignal.abort() }))).toEqual({ text: '', end: ABORTED });
    expect(server.sockets).toHaveLength(0);
  });

  test('while connecting', async () => {
    await serve(listen(net.createServer(), 'https'));
    const abort = new AbortController();
    const seen = outcome(open({ signal: abort.signal }));
    abort.abort();
    expect(await seen).toEqual({ text: '', end: ABORTED });
  });

  test('before the response closes the connection', async () => {
    const requested = Promise.withResolvers<net.Socket>();
    await serve(rawServer(requested.resolve));
    const abort = new AbortController();
    const seen = outcome(open({ signal: abort.signal }));
    const isClosed = closed(await requested.promise);
    abort.abort();
    expect(await seen).toEqual({ text: '', end: ABORTED });
    await isClosed;
  });

  test('within the body closes the connection', async () => {
    await serve(rawServer((socket) => socket.write(CHUNKED + HI)));
    const abort = new AbortController();
    const seen = await outcome(open({ signal: abort.signal }), () => abort.abort());
    expect(seen).toEqual({ status: 200, text: 'hi', end: ABORTED });
    await closed(server.sockets[0]);
  });

  test('within the body of an HTTP/2 stream cancels only that stream', async () => {
    const closed = Promise.withResolvers<number>();
    await serveHttp2((stream, path) => {
      stream.respond();
      stream.write('hi');
      if (path === '/cut') stream.on('close', () => closed.resolve(stream.rstCode));
      else closed.promise.then(() => stream.end(' you'));
    });
    const abort = new AbortController();
    const [cut, sibling] = await Promise.all([
      outcome(open({ path: '/cut', signal: abort.signal }), () => abort.abort()),
      outcome(open()),
    ]);
    expect(cut).toEqual({ status: 200, text: 'hi', end: ABORTED });
    expect(await closed.promise).toBe(http2.constants.NGHTTP2_CANCEL);
    expect(sibling).toEqual({ status: 200, text: 'hi you', end: 'proper' });
    expect(server.sockets).toHaveLength(1);
  });

  test('drops what has come but was not read', async () => {
    await serve(rawServer((socket) => socket.write(CHUNKED + HI.repeat(3))));
    const abort = new AbortController();
    const seen = await outcome(open({ signal: abort.signal }), () => abort.abort());
    expect(seen.text).toBe('hi');
  });

  test('whose reason is a failure fails with that', async () => {
    await serve(rawServer((socket) => socket.write(CHUNKED + HI)));
    const abort = new AbortController();
    const reason = new TransportFailure('HOLDFAST_CLOCK', { clock: 'idle' });
    const response = await open({ signal: abort.signal });
    const consumed = response.body.consume(() => {
      abort.abort(reason);
      return undefined;
    });
    await expect(consumed).rejects.toBe(reason);
  });

  test('after the end changes nothing, and nothing listens for it any more', async () => {
    await serve(rawServer((socket) => socket.write(`${CHUNKED}${HI}0\r\n\r\n`)));
    const abort = new AbortController();
    const seen = await outcome(open({ signal: abort.signal }));
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
    abort.abort();
    expect(seen).toEqual({ status: 200, text: 'hi', end: 'proper' });
  });
});

test('a reader that fails closes the connection', async () => {
  await serve(rawServer((socket) => socket.write(CHUNKED + HI)));
  const { body } = await open();
  const mistake = new Error('a mistake of ours');
  const consumed = body.consume((piece) => {
    expect(piece.toString()).toBe('hi');
    throw mistake;
  });
  await expect(consumed).rejects.toBe(mistake);
  await closed(server.sockets[0]);
});

describe('a reader that does not read', () => {
  const OFFERED_BYTES = 64 * MIB;
  /** What the socket buffers of both kernels may hold in addition, by their usual limits. */
  const HELD_BYTES_MAX = 24 * MIB;
  const block = Buffer.alloc(64 * 1024, '.');

  /** Writes everything as fast as it's accepted. */
  async function offer(
    destination: NodeJS.WritableStream,
    onWritten: (bytes: number) => void,
  ): Promise<void> {
    for (let bytes = 0; bytes < OFFERED_BYTES; bytes += block.length) {
      if (!destination.write(block)) await once(destination, 'drain');
      onWritten(block.length);
    }
    destination.end();
  }

  /** No event signals that nothing happens, so this resolves once `bytes` hasn't changed for a while. */
  async function stalled(bytes: () => number): Promise<number> {
    for (let before = -1; before !== bytes(); await setTimeout(100)) before = bytes();
    return bytes();
  }

  const lengthOf = async (body: ResponseBody): Promise<number> => {
    let bytes = 0;
    await body.consume((piece) => {
      bytes += piece.length;
      return undefined;
    });
    return bytes;
  };

  test('holds an HTTP/1.1 provider back, and loses nothing by it', async () => {
    let written = 0;
    await serve(
      listen(
        http.createServer((_, response) => offer(response, (bytes) => (written += bytes)).catch(() => {})),
        'http',
      ),
    );
    const { body } = await open();
    expect(await stalled(() => written)).toBeLessThan(HELD_BYTES_MAX);
    expect(await lengthOf(body)).toBe(OFFERED_BYTES);
  });

  test('holds an HTTP/2 provider back to the window of the stream, but not its siblings', async () => {
    let written = 0;
    await serveHttp2((stream, path) => {
      stream.respond();
      if (path === '/flood') offer(stream, (bytes) => (written += bytes)).catch(() => {});
      else stream.end('hi');
    });
    const { body } = await open({ path: '/flood' });
    expect(await stalled(() => written)).toBeLessThan(MIB);
    expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: 'proper' });
    expect(server.sockets).toHaveLength(1);
    expect(await lengthOf(body)).toBe(OFFERED_BYTES);
  });

  test('can be aborted, which frees the connection', async () => {
    let written = 0;
    await serve(
      listen(
        http.createServer((_, response) => offer(response, (bytes) => (written += bytes)).catch(() => {})),
        'http',
      ),
    );
    const abort = new AbortController();
    const { body } = await open({ signal: abort.signal });
    await stalled(() => written);
    const isClosed = closed(server.sockets[0]);
    abort.abort();
    await isClosed;
    await expect(lengthOf(body)).rejects.toMatchObject({ code: 'UND_ERR_ABORTED' });
  });
});

describe('500 streams of one provider are open at once', () => {
  const STREAMS = 500;

  /** Ends no response before all have begun. */
  function gate(): (begun: { end(text: string): unknown }) => void {
    const waiting: { end(text: string): unknown }[] = [];
    return (begun) => {
      waiting.push(begun);
      if (waiting.length === STREAMS) for (const one of waiting) one.end(' you');
    };
  }

  const all = async () => {
    const seen = await Promise.all(Array.from({ length: STREAMS }, () => outcome(open())));
    return new Set(seen.map((one) => JSON.stringify(one)));
  };
  const WHOLE = new Set([JSON.stringify({ status: 200, text: 'hi you', end: 'proper' })]);

  test('over HTTP/1.1', async () => {
    const begin = gate();
    await serve(
      listen(
        http.createServer((_, response) => {
          response.write('hi');
          begin(response);
        }),
        'http',
      ),
    );
    expect(await all()).toEqual(WHOLE);
  });

  test('over HTTP/2, where a connection carries 100', async () => {
    const begin = gate();
    await serveHttp2((stream) => {
      stream.respond();
      stream.write('hi');
      begin(stream);
    });
    expect(await all()).toEqual(WHOLE);
    expect(server.sockets.length).toBe(5);
  });

  test('over HTTP/2, where the provider allows fewer on a connection', async () => {
    const begin = gate();
    const http2Server = http2.createSecureServer({ ...pem, settings: { maxConcurrentStreams: 50 } });
    http2Server.on('stream', (stream) => {
      stream.respond();
      stream.write('hi');
      begin(stream);
    });
    await serve(listen(http2Server, 'https'));
    expect(await all()).toEqual(WHOLE);
  });

  test('and their aborts leave nothing behind', async () => {
    await serve(rawServer((socket) => socket.write(CHUNKED + HI)));
    const aborts = Array.from({ length: STREAMS }, () => new AbortController());
    let begun = 0;
    const seen = await Promise.all(
      aborts.map(({ signal }) =>
        outcome(open({ signal }), () => {
          begun += 1;
          if (begun === STREAMS) for (const abort of aborts) abort.abort();
        }),
      ),
    );
    expect(new Set(seen.map(({ end }) => JSON.stringify(end)))).toEqual(
      new Set(['{"code":"UND_ERR_ABORTED"}']),
    );
    await Promise.all(server.sockets.map(closed));
    expect(aborts.flatMap(({ signal }) => getEventListeners(signal, 'abort'))).toHaveLength(0);
    await setImmediate();
  });
});
