import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'undici';
import { describe, expect, it } from 'vitest';
import { startProvider } from '../http-peer.ts';
import { startReplica, upstreamsAt } from '../replica.ts';

const HANDSHAKE = {
  connection: 'keep-alive, Upgrade',
  upgrade: 'WebSocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

async function startCounting() {
  let requests = 0;
  const provider = await startProvider((_request, response) => {
    requests++;
    response.end('{"data":[]}');
  });
  const { api } = await startReplica(upstreamsAt(provider));
  const asked = async (path: string, headers: Readonly<Record<string, string>>, body?: string) => {
    const sent = request(`${api}${path}`, { method: body === undefined ? 'GET' : 'POST', headers });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  };
  return { api, asked, requests: () => requests };
}

describe('a request to change over to another protocol', () => {
  it('on /v1/responses is answered 426, which sends Codex to HTTP at once', async () => {
    const { asked, requests } = await startCounting();
    const { status, headers, body } = await asked('/v1/responses?model=x', HANDSHAKE);
    expect(status).toBe(426);
    expect(headers).toMatchObject({ upgrade: 'HTTP/1.1', connection: 'upgrade' });
    expect(JSON.parse(body)).toEqual({
      error: expect.objectContaining({
        code: 'upgrade_required',
        message: expect.stringContaining('send POST /v1/responses with `"stream": true` instead'),
      }),
    });
    expect(requests()).toBe(0);
  });

  it.each([
    ['of the Realtime API', '/v1/realtime?model=gpt-realtime', 'websocket'],
    ['to chat', '/v1/chat/completions', 'websocket'],
    ['to a run', '/holdfast/v1/runs', 'websocket'],
    ['to nothing that is served', '/socket.io/', 'websocket'],
    ['to another protocol', '/v1/models', 'tls/1.2'],
  ])('%s is refused, and never sent upstream', async (_, path, upgrade) => {
    const { asked, requests } = await startCounting();
    const { status, body } = await asked(path, { ...HANDSHAKE, upgrade });
    expect(status).toBe(400);
    expect(JSON.parse(body).error).toMatchObject({
      code: 'upgrade_not_supported',
      message: expect.stringContaining(upgrade),
    });
    expect(requests()).toBe(0);
  });

  it('is refused for its origin first, where a page makes it', async () => {
    const { asked } = await startCounting();
    const { status } = await asked('/v1/responses', { ...HANDSHAKE, origin: 'https://elsewhere.example' });
    expect(status).toBe(403);
  });

  it('that is sent on a kept connection leaves it usable', async () => {
    const { asked } = await startCounting();
    expect((await asked('/v1/responses', HANDSHAKE)).status).toBe(426);
    expect((await asked('/v1/models', {})).body).toBe('{"data":[]}');
  });

  it("that Java's client makes with every request is not taken: it is answered over HTTP/1.1", async () => {
    const { asked, requests } = await startCounting();
    const headers = {
      connection: 'Upgrade, HTTP2-Settings',
      upgrade: 'h2c',
      'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      'content-type': 'application/json',
    };
    const answer = await asked('/v1/embeddings', headers, '{"model":"m","input":"x"}');
    expect(answer).toMatchObject({ status: 200, body: '{"data":[]}' });
    expect(requests()).toBe(1);
  });

  it('that a proxy has stripped of its `Connection` is none', async () => {
    const { asked } = await startCounting();
    expect(await asked('/v1/models', { upgrade: 'websocket' })).toMatchObject({ status: 200 });
  });

  it('is an error to a WebSocket client, not a wait', async () => {
    const { api } = await startCounting();
    const socket = new WebSocket(`${api.replace('http', 'ws')}/v1/responses`);
    await once(socket, 'close');
    expect(socket.readyState).toBe(WebSocket.CLOSED);
  });
});
