import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ClientResponse, responseTurn } from '../../../src/proxy/downstream/client-response.ts';
import { connect, providerRequests, received, receivedUntil, startProvider } from '../../http-peer.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const MEGABYTE = 'x'.repeat(1_000_000);

/** A raw connection, and the server's side of the request sent on it. */
async function exchange({ request = GET, client_stall_ms = 60_000 } = {}) {
  const arrivals = providerRequests();
  const socket = await connect(await startProvider(arrivals.listener));
  const next = async () => {
    const { response } = await arrivals.next();
    if (!(await responseTurn(response))) throw new Error('the connection closed before it was our turn');
    return { response, client: new ClientResponse(response, { client_stall_ms }) };
  };
  socket.write(request);
  return { socket, next, ...(await next()) };
}

/** Writes until neither the kernel nor the socket accepts more. */
async function fill({
  client,
  response,
}: {
  client: ClientResponse;
  response: ServerResponse;
}): Promise<void> {
  client.open({});
  while (!response.socket?.writableNeedDrain) {
    client.write(MEGABYTE);
    await new Promise(setImmediate);
  }
}

async function readSlowly(socket: Socket, pause_ms: number, until: () => boolean): Promise<void> {
  while (!until()) {
    socket.read();
    await delay(pause_ms);
  }
}

const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);

describe('what is on the wire', () => {
  it('nothing before the first write; then headers and event in one piece', async () => {
    const { socket, client, response } = await exchange();
    client.open({ 'Holdfast-Run-Id': 'run_1' });
    expect(client.opened).toBe(true);
    expect(response.socket?.bytesWritten).toBe(0);
    const piece = once(socket, 'data') as Promise<[Buffer]>;
    expect(client.write('data: 1\n\n')).toBe(true);
    const answer = (await piece)[0].toString();
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).toContain('Holdfast-Run-Id: run_1\r\n');
    expect(answer).toContain('content-type: text/event-stream; charset=utf-8\r\n');
    expect(answer).toContain('x-accel-buffering: no\r\n');
    expect(bodyOf(answer)).toBe('9\r\ndata: 1\n\n\r\n');
  });

  it('headers that are asked for when the stream begins', async () => {
    const arrivals = providerRequests();
    const socket = await connect(await startProvider(arrivals.listener));
    socket.write(GET);
    const { response } = await arrivals.next();
    let asked = 0;
    const client = new ClientResponse(response, { client_stall_ms: 60_000 }, () => {
      asked++;
      return { location: '/here' };
    });
    expect(asked).toBe(0);
    client.open({ 'Holdfast-Run-Id': 'run_1' });
    client.end('');
    const answer = await receivedUntil(socket, '\r\n0\r\n\r\n');
    expect(answer).toContain('Holdfast-Run-Id: run_1\r\nlocation: /here\r\n');
    expect(asked).toBe(1);
  });

  it('chunk lengths count bytes, not characters', async () => {
    const { socket, client } = await exchange();
    client.open({});
    const piece = once(socket, 'data') as Promise<[Buffer]>;
    client.write('data: é€😀\n\n');
    expect(bodyOf((await piece)[0].toString())).toBe('11\r\ndata: é€😀\n\n\r\n');
  });

  it('the last events and the end of the message in one piece', async () => {
    const { socket, client } = await exchange();
    client.open({});
    client.write('data: 1\n\n');
    await once(socket, 'data');
    const piece = once(socket, 'data') as Promise<[Buffer]>;
    client.end('data: [DONE]\n\n');
    expect(client.ended).toBe(true);
    expect((await piece)[0].toString()).toBe('e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n');
  });

  it('a stream that ends with its first events is complete as well', async () => {
    const { socket, client } = await exchange();
    client.open({});
    client.end('data: [DONE]\n\n');
    expect(bodyOf(await receivedUntil(socket, '0\r\n\r\n'))).toBe('e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n');
    expect(client.signal.aborted).toBe(false);
  });

  it('writing nothing does not end the message', async () => {
    const { socket, client } = await exchange();
    client.open({});
    expect(client.write('')).toBe(true);
    client.write('data: 1\n\n');
    client.end('');
    expect(bodyOf(await receivedUntil(socket, '0\r\n\r\n'))).toBe('9\r\ndata: 1\n\n\r\n0\r\n\r\n');
  });

  it('the connection serves the next request', async () => {
    const { socket, client, next } = await exchange();
    client.open({});
    client.write('data: 1\n\n');
    client.end('');
    await receivedUntil(socket, '0\r\n\r\n');
    socket.write(GET);
    const second = await next();
    second.client.open({});
    second.client.end('data: 2\n\n');
    expect(await receivedUntil(socket, '0\r\n\r\n')).toContain('9\r\ndata: 2\n\n\r\n');
  });

  it('a pipelined request waits until the response before it is complete', async () => {
    const { socket, client, next } = await exchange({ request: GET + GET });
    let turn = false;
    const second = next().then((exchanged) => {
      turn = true;
      return exchanged;
    });
    client.open({});
    client.write('data: 1\n\n');
    await receivedUntil(socket, 'data: 1');
    expect(turn).toBe(false);
    client.end('');
    (await second).client.open({});
    (await second).client.end('data: 2\n\n');
    await receivedUntil(socket, 'data: 2\n\n\r\n0\r\n\r\n');
  });

  it('an HTTP/1.0 client gets no chunks, and the end of the connection as the end', async () => {
    const { socket, client } = await exchange({ request: 'GET / HTTP/1.0\r\n\r\n' });
    client.open({});
    client.write('data: é\n\n');
    client.end('data: [DONE]\n\n');
    const answer = Buffer.from(await received(socket), 'latin1').toString();
    expect(answer).not.toContain('transfer-encoding');
    expect(bodyOf(answer)).toBe('data: é\n\ndata: [DONE]\n\n');
  });

  it('a rejection is a plain response', async () => {
    const { socket, client } = await exchange();
    client.reject(429, { 'retry-after': '2', 'set-cookie': ['a=1', 'b=2'] }, '{"é":1}');
    const answer = await receivedUntil(socket, '}');
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
    expect(answer).toContain('retry-after: 2\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 8\r\n');
    expect(client.opened).toBe(false);
    expect(client.ended).toBe(true);
  });

  it('an opened stream cannot be rejected', async () => {
    const { client } = await exchange();
    client.open({});
    expect(() => client.reject(500, {}, '')).toThrow('opened');
  });

  it('a destroyed stream has no end of message, and does not count as a client that left', async () => {
    const { socket, client } = await exchange();
    client.open({});
    client.write('data: 1\n\n');
    const answer = received(socket);
    expect(client.over).toBe(false);
    client.destroy();
    expect(client.over).toBe(true);
    expect(await answer).not.toContain('0\r\n\r\n');
    await client.closed;
    expect(client.signal.aborted).toBe(false);
  });
});

describe('a client that does not take what it is sent', () => {
  it('fills a bounded buffer, and empties it when it reads again', async () => {
    const { socket, client, response } = await exchange();
    socket.pause();
    await fill({ client, response });
    // At most the socket's high-water mark and the one write that exceeded it.
    expect(response.socket?.writableLength).toBeLessThan(2 * MEGABYTE.length);
    let drained = false;
    const wait = client.drained().then(() => {
      drained = true;
    });
    await new Promise(setImmediate);
    expect(drained).toBe(false);
    socket.resume();
    await wait;
    expect(client.write('data: more\n\n')).toBe(true);
  });

  it('loses its run after client_stall_ms', async () => {
    const { socket, client, response } = await exchange({ client_stall_ms: 50 });
    socket.pause();
    await fill({ client, response });
    await client.drained();
    expect(client.signal.aborted).toBe(true);
    expect(response.socket?.destroyed ?? true).toBe(true);
  });

  it('loses it as well when only the end is left to take', async () => {
    const { socket, client, response } = await exchange({ client_stall_ms: 50 });
    socket.pause();
    await fill({ client, response });
    client.end('data: [DONE]\n\n');
    await client.closed;
    expect(client.signal.aborted).toBe(true);
  });

  it('keeps it as long as it takes anything', async () => {
    const { socket, client } = await exchange({ client_stall_ms: 300 });
    socket.pause();
    client.open({});
    client.write(MEGABYTE.repeat(20));
    void client.drained();
    const began_ms = performance.now();
    await readSlowly(socket, 10, () => performance.now() - began_ms > 900);
    expect(client.signal.aborted).toBe(false);
  });

  it('is not to blame for a silent provider', async () => {
    const { socket, client } = await exchange({ client_stall_ms: 30 });
    client.open({});
    client.write('data: 1\n\n');
    await receivedUntil(socket, 'data: 1');
    await delay(100);
    expect(client.signal.aborted).toBe(false);
    client.end('data: 2\n\n');
    await receivedUntil(socket, 'data: 2');
  });
});

describe('a client that has gone', () => {
  it('aborts the run, and nothing waits for it', async () => {
    const { socket, client, response } = await exchange();
    socket.pause();
    await fill({ client, response });
    const drained = client.drained();
    socket.destroy();
    await drained;
    expect(client.signal.aborted).toBe(true);
    expect(client.write(MEGABYTE)).toBe(true);
    await client.drained();
    client.end('');
    await client.closed;
  });

  it('before its turn came never starts a run', async () => {
    const arrivals = providerRequests();
    const socket = await connect(await startProvider(arrivals.listener));
    socket.write(GET + GET);
    await arrivals.next();
    const second = await arrivals.next();
    socket.destroy();
    expect(await responseTurn(second.response)).toBe(false);
  });
});
