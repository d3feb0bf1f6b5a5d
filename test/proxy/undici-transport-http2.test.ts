import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { secureContext } from '../../src/config/load.ts';
import type { Transport } from '../../src/proxy/upstream/transport.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { type Certificate, certificate } from '../provider/certificate.ts';
import { type FrameConnection, type FrameServer, frameServer } from './frame-server.ts';
import { outcome } from './outcome.ts';

const CODE = { no_error: 0, internal_error: 2, refused_stream: 7, cancel: 8, enhance_your_calm: 11 } as const;
const EVERY_STREAM = 2 ** 31 - 1;

let tls: Certificate;
let transport: Transport;
let server: FrameServer;
beforeAll(async () => {
  tls = await certificate();
});
afterEach(async () => {
  server.close();
  await transport.close();
});

async function serve(onRequest: (stream: number, connection: FrameConnection) => void): Promise<void> {
  server = await frameServer(tls, onRequest);
  transport = createUndiciTransport({ [server.origin]: { secure: secureContext(tls.cert) } });
}

/** Begins the response and leaves it open after `hi`. */
const begin = (stream: number, connection: FrameConnection): void => {
  connection.respond(stream);
  connection.data(stream, 'hi');
};

/** The first request of a connection is stream 1, the next 3. */
const connection = (): FrameConnection => server.connections[0] as FrameConnection;

const open = () =>
  transport.open({
    method: 'POST',
    url: `${server.origin}/v1/chat/completions`,
    headers: {},
    body: '{}',
    signal: new AbortController().signal,
    connect_ms: 2_000,
  });

const cutShort = (code: string, goaway?: number) => ({
  status: 200,
  text: 'hi',
  end: { code, ...(goaway !== undefined && { goaway }) },
});

test('END_STREAM is a proper end', async () => {
  await serve((stream, connection) => {
    connection.respond(stream);
    connection.data(stream, 'hi', { end: true });
  });
  expect(await outcome(open())).toEqual({ status: 200, text: 'hi', end: 'proper' });
});

describe('RST_STREAM', () => {
  test.each([
    ['INTERNAL_ERROR', CODE.internal_error],
    ['REFUSED_STREAM', CODE.refused_stream],
    ['CANCEL', CODE.cancel],
    ['ENHANCE_YOUR_CALM', CODE.enhance_your_calm],
  ])('%s breaks the stream', async (_, code) => {
    await serve(begin);
    const seen = await outcome(open(), () => connection().reset(1, code));
    expect(seen).toEqual(cutShort('ERR_HTTP2_STREAM_ERROR'));
  });

  test('NO_ERROR ends the body: only what was said can tell whether it was whole', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => connection().reset(1, CODE.no_error));
    expect(seen).toEqual({ status: 200, text: 'hi', end: 'proper' });
  });

  test('leaves its siblings alone', async () => {
    await serve(begin);
    const cut = outcome(open(), () => connection().reset(1, CODE.internal_error));
    const sibling = outcome(
      open(),
      (text) => text === 'hi' && void cut.then(() => connection().data(3, ' you', { end: true })),
    );
    expect(await cut).toEqual(cutShort('ERR_HTTP2_STREAM_ERROR'));
    expect(await sibling).toEqual({ status: 200, text: 'hi you', end: 'proper' });
    expect(server.connections).toHaveLength(1);
  });

  test('before the response', async () => {
    await serve((stream, connection) => connection.reset(stream, CODE.internal_error));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'ERR_HTTP2_STREAM_ERROR' } });
  });

  test('REFUSED_STREAM before the response is repeated once, within the same request', async () => {
    const streams: number[] = [];
    await serve((stream, connection) => {
      streams.push(stream);
      if (streams.length === 1) connection.reset(stream, CODE.refused_stream);
      else begin(stream, connection);
    });
    const seen = await outcome(open(), () => connection().data(3, ' again', { end: true }));
    expect(seen).toEqual({ status: 200, text: 'hi again', end: 'proper' });
    expect(streams).toEqual([1, 3]);
  });

  test('REFUSED_STREAM twice is a failure', async () => {
    const streams: number[] = [];
    await serve((stream, connection) => {
      streams.push(stream);
      connection.reset(stream, CODE.refused_stream);
    });
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'ERR_HTTP2_STREAM_ERROR' } });
    expect(streams).toEqual([1, 3]);
  });
});

describe('GOAWAY', () => {
  test('a graceful one whose stream completes is no failure', async () => {
    await serve(begin);
    const seen = await outcome(open(), (text) => {
      if (text !== 'hi') return;
      connection().goaway(EVERY_STREAM, CODE.no_error);
      connection().goaway(1, CODE.no_error);
      connection().data(1, ' and bye', { end: true });
    });
    expect(seen).toEqual({ status: 200, text: 'hi and bye', end: 'proper' });
  });

  test('NO_ERROR, then a close with the stream open', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => {
      connection().goaway(1, CODE.no_error);
      connection().socket.end();
    });
    expect(seen).toEqual(cutShort('UND_ERR_SOCKET', CODE.no_error));
  });

  test('NO_ERROR, then RST_STREAM', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => {
      connection().goaway(1, CODE.no_error);
      connection().reset(1, CODE.cancel);
    });
    expect(seen).toEqual(cutShort('ERR_HTTP2_STREAM_ERROR', CODE.no_error));
  });

  test('NO_ERROR that disowns the stream', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => connection().goaway(0, CODE.no_error));
    expect(seen).toEqual(cutShort('UND_ERR_INFO', CODE.no_error));
  });

  test('an error code', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => connection().goaway(1, CODE.enhance_your_calm));
    expect(seen).toEqual(cutShort('ERR_HTTP2_SESSION_ERROR', CODE.enhance_your_calm));
  });

  test('a graceful one first, then an error code: the error counts', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => {
      connection().goaway(EVERY_STREAM, CODE.no_error);
      connection().goaway(1, CODE.internal_error);
    });
    expect(seen).toEqual(cutShort('ERR_HTTP2_SESSION_ERROR', CODE.internal_error));
  });

  test('reaches every stream of its session, and no other', async () => {
    const STREAMS = 5;
    await serve(begin);
    let begun = 0;
    const count = () => {
      begun += 1;
      if (begun === STREAMS) connection().goaway(2 * STREAMS - 1, CODE.internal_error);
    };
    const cut = await Promise.all(Array.from({ length: STREAMS }, () => outcome(open(), count)));
    expect(cut).toEqual(
      Array.from({ length: STREAMS }, () => cutShort('ERR_HTTP2_SESSION_ERROR', CODE.internal_error)),
    );

    const later = await outcome(open(), () => server.connections[1]?.reset(1, CODE.internal_error));
    expect(later).toEqual(cutShort('ERR_HTTP2_STREAM_ERROR'));
    expect(server.connections).toHaveLength(2);
  });

  test('before the response, disowning the stream: repeated once on a new connection, within the same request', async () => {
    await serve((stream, connection) => {
      if (server.connections.length === 1) connection.goaway(0, CODE.no_error);
      else begin(stream, connection);
    });
    const seen = await outcome(open(), () => server.connections[1]?.reset(1, CODE.internal_error));
    expect(seen).toEqual(cutShort('ERR_HTTP2_STREAM_ERROR'));
    expect(server.connections).toHaveLength(2);
  });

  test('before the response, on every connection', async () => {
    await serve((_, connection) => connection.goaway(0, CODE.no_error));
    expect(await outcome(open())).toEqual({ text: '', end: { code: 'UND_ERR_INFO', goaway: CODE.no_error } });
    expect(server.connections).toHaveLength(2);
  });
});

describe('without a word', () => {
  test('FIN with the stream open', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => connection().socket.end());
    expect(seen).toEqual(cutShort('UND_ERR_SOCKET'));
  });

  test('FIN within a DATA frame', async () => {
    await serve(begin);
    const seen = await outcome(open(), (text) => {
      if (text !== 'hi') return;
      connection().partOfData(1, ' th', 100);
      connection().socket.end();
    });
    expect(seen).toEqual({ status: 200, text: 'hi th', end: { code: 'UND_ERR_SOCKET' } });
  });

  test('TCP reset', async () => {
    await serve(begin);
    const seen = await outcome(open(), () => server.sockets[0]?.resetAndDestroy());
    expect(seen).toEqual(cutShort('ECONNRESET'));
  });
});
