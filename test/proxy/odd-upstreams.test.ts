import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { startReplica } from '../replica.ts';
import { listen } from './servers.ts';

const CHUNK = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'Kelp' } }] })}\n\n`;
const STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
const HTML = '<!doctype html><title>Welcome to nginx</title>';
const ATTEMPTS = 2;
const HEADER_PIECE = `x-endless: ${'a'.repeat(1000)}\r\n`;

const answerAtOnce = (answer: string | Buffer) => (socket: Socket) => void socket.end(answer);

function endlessHeader(socket: Socket): void {
  socket.write(STREAM);
  const more = () => {
    while (!socket.destroyed && socket.write(HEADER_PIECE));
  };
  socket.on('drain', more);
  more();
}

/** How an upstream answers every request for a stream, and the error that the client gets. */
const ODD: readonly (readonly [string, (socket: Socket) => void, RegExp])[] = [
  [
    'HTML',
    answerAtOnce(`HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n${HTML}`),
    /provider_5xx, 502\)/,
  ],
  [
    'a redirect',
    answerAtOnce('HTTP/1.1 302 Found\r\nlocation: https://login.example.com/\r\nconnection: close\r\n\r\n'),
    /provider_5xx, 502\)/,
  ],
  [
    'gzip, which was not requested',
    answerAtOnce(
      Buffer.concat([
        Buffer.from(`${STREAM}content-encoding: gzip\r\nconnection: close\r\n\r\n`),
        gzipSync(`${CHUNK}data: [DONE]\n\n`),
      ]),
    ),
    /provider_5xx, 502\)/,
  ],
  ['a header without end', endlessHeader, /UND_ERR_HEADERS_OVERFLOW/],
  [
    'a stream without a body',
    answerAtOnce(`${STREAM}content-length: 0\r\nconnection: close\r\n\r\n`),
    /connection_reset, clean_eof\)/,
  ],
  [
    'no content at all',
    answerAtOnce('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'),
    /provider_5xx, 502\)/,
  ],
];

test.each(ODD)(
  'an upstream that answers %s: an error in time, and nothing of it is shown',
  async (...row) => {
    const [, answer, reason] = row;
    const upstream = await listen(createServer(), 'http', (socket) =>
      socket.once('data', () => answer(socket)),
    );
    onTestFinished(() => upstream.close());
    const transport = createUndiciTransport();
    onTestFinished(() => transport.close());
    const replica = await startReplica(
      {
        upstreams: { odd: { base_url: `${upstream.origin}/v1` } },
        recovery: { max_attempts: ATTEMPTS, backoff_ms: 1, backoff_max_ms: 1 },
      },
      { relay, transport },
    );

    const response = await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tell me.' }] }),
    });
    const body = await response.text();
    expect(response.status, body).toBeGreaterThanOrEqual(502);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect((JSON.parse(body) as { error: object }).error).toMatchObject({
      type: 'upstream_error',
      message: expect.stringMatching(reason),
    });
    expect(upstream.sockets).toHaveLength(ATTEMPTS);
  },
);
