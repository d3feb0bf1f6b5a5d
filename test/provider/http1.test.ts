import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Fault } from './fault.ts';
import { type Provider, startProvider } from './provider.ts';
import { decodeChunked, rawChat } from './raw-client.ts';
import type { Plan } from './script.ts';
import { uncutBytes } from './uncut-bytes.ts';

const PLAN: Plan = { parts: [{ text: 'Grüße aus 東京 😀, und so weiter bis zum Ende.' }] };

let provider: Provider;
let conversations = 0;
afterEach(() => provider.close());

async function ask(fault: Fault | undefined, plan: Plan = PLAN, socket?: Socket) {
  provider.next(plan, [fault]);
  conversations += 1;
  const response = await rawChat(provider.port, `conversation ${conversations}`, socket);
  return { ...response, ...decodeChunked(response.coded) };
}

describe('over http1', () => {
  beforeEach(async () => {
    provider = await startProvider();
  });

  test('an uncut answer is terminated', async () => {
    const response = await ask(undefined);
    expect(response).toMatchObject({ stopped: 'terminated', ended: 'fin' });
    expect(response.head).toMatch(/^HTTP\/1.1 200 OK\r\ncontent-type: text\/event-stream/);
    expect(response.body).toEqual(uncutBytes(provider, PLAN));
  });

  test.each([
    ['reset', 'between', 'ECONNRESET'],
    ['fin_in_chunk', 'in_chunk', 'fin'],
    ['clean_eof', 'terminated', 'fin'],
  ] as const)(
    '%s comes after exactly the bytes before it, wherever they end',
    async (kind, stopped, ended) => {
      const plan: Plan = { parts: [{ text: '😀' }] };
      await ask(undefined, plan);
      const { length } = uncutBytes(provider, plan);
      for (let byte = 0; byte <= length; byte += 7) {
        const response = await ask({ kind, at: { byte } }, plan);
        expect(response.head).toMatch(/^HTTP\/1.1 200/);
        expect({ byte, stopped: response.stopped, ended: response.ended }).toEqual({ byte, stopped, ended });
        expect(response.body).toEqual(uncutBytes(provider, plan).subarray(0, byte));
      }
    },
  );

  test.each(['event', 'whole', 'bytes'] as const)(
    'a cut loses nothing that was written by %s',
    async (write) => {
      const plan: Plan = { parts: [{ text: 'word '.repeat(200) }], write };
      const response = await ask({ kind: 'reset', at: { event: 150 } }, plan);
      expect(response.ended).toBe('ECONNRESET');
      expect(response.body.toString().match(/\n\n/g)).toHaveLength(150);
      expect(response.chunks).toBe({ event: 150, whole: 1, bytes: response.body.length }[write]);
    },
  );

  test('a paced answer takes a pause before every event, and each is a write of its own', async () => {
    const started_ms = performance.now();
    const response = await ask(undefined, { parts: [{ text: 'one two three' }], delay_ms: 20 });
    // Role, three words, finish and [DONE]. Timers count whole milliseconds and may fire one early.
    expect(response.chunks).toBe(6);
    expect(performance.now() - started_ms).toBeGreaterThan(6 * 20 - 2);
  });

  test('reset before_headers leaves the request without a response', async () => {
    const response = await ask({ kind: 'reset', at: { before_headers: true } });
    expect(response).toMatchObject({ head: '', ended: 'ECONNRESET' });
  });

  test('a fault of HTTP/2 is refused loudly', async () => {
    await ask({ kind: 'goaway_error', at: { event: 1 } });
    await expect(provider.close()).rejects.toThrow('the provider made mistakes');
    provider = await startProvider();
  });

  test('silence keeps the connection open without a byte, until the client leaves', async () => {
    const socket = connect(provider.port, '127.0.0.1');
    const asked = ask({ kind: 'silence', at: { event: 2 } }, PLAN, socket);
    await received(socket, /\n\n.*\n\n/s);
    const { bytesRead } = socket;
    await once(socket.setTimeout(100), 'timeout');
    expect(socket).toMatchObject({ bytesRead, readableEnded: false });
    socket.destroy();
    expect((await asked).body.toString().match(/\n\n/g)).toHaveLength(2);
    await provider.waitForAborts(1);
  });
});

/** Resolves once the expected text has arrived, in any number of pieces. */
function received(socket: Socket, expected: RegExp): Promise<void> {
  let seen = '';
  return new Promise((resolve) => {
    socket.on('data', (piece: Buffer) => {
      seen += piece.toString('latin1');
      if (expected.test(seen)) resolve();
    });
  });
}

describe('over https1', () => {
  test('tls_cut is a FIN without close_notify, which a proper end has', async () => {
    provider = await startProvider({ protocol: 'https1' });
    const cut = tapped(provider);
    const response = await ask({ kind: 'tls_cut', at: { byte: 500 } }, PLAN, cut.socket);
    expect(response).toMatchObject({ stopped: 'between' });
    expect(response.body).toEqual(uncutBytes(provider, PLAN).subarray(0, 500));
    expect(cut.alerts()).toBe(0);

    const proper = tapped(provider);
    expect(await ask(undefined, PLAN, proper.socket)).toMatchObject({ stopped: 'terminated' });
    expect(proper.alerts()).toBe(1);
  });
});

/** A TLS connection, and a count of the alert records (such as close_notify) that the provider sent on it. */
function tapped({ port, ca }: Provider) {
  const tcp = connect(port, '127.0.0.1');
  const seen: Buffer[] = [];
  tcp.on('data', (piece: Buffer) => seen.push(piece));
  const socket = connectTls({
    socket: Duplex.from({ readable: tcp.pipe(new PassThrough()), writable: tcp }),
    host: '127.0.0.1',
    // In TLS 1.3, an alert looks like any other record.
    maxVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
  });
  // The stream in between isn't a socket, and doesn't close with the connection.
  socket.on('end', () => socket.destroy());
  return { socket, alerts: () => records(Buffer.concat(seen)).filter((type) => type === 21).length };
}

function records(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let start = 0; start + 5 <= bytes.length; start += 5 + bytes.readUInt16BE(start + 3)) {
    types.push(bytes.readUInt8(start));
  }
  return types;
}
