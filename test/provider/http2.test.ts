import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import type { Fault } from './fault.ts';
import { type Provider, startProvider } from './provider.ts';
import { rawHttp2Chat } from './raw-http2-client.ts';
import type { Plan } from './script.ts';
import { uncutBytes } from './uncut-bytes.ts';

const PLAN: Plan = { parts: [{ text: 'Grüße aus 東京 😀, und so weiter bis zum Ende.' }] };

let provider: Provider;
afterEach(() => provider.close());

async function ask(protocol: 'h2c' | 'h2', fault?: Fault) {
  provider = await startProvider({ protocol });
  provider.next(PLAN, [fault]);
  const { port, ca } = provider;
  if (ca === undefined) return rawHttp2Chat(connect(port, '127.0.0.1'));
  const socket = connectTls({ port, host: '127.0.0.1', ca, ALPNProtocols: ['h2'] });
  await once(socket, 'secureConnect');
  return rawHttp2Chat(socket);
}

describe.each(['h2c', 'h2'] as const)('over %s', (protocol) => {
  test('an uncut answer ends its stream and leaves the connection open', async () => {
    const response = await ask(protocol);
    expect(response.frames).toEqual(['HEADERS', 'DATA', 'END_STREAM']);
    expect(response.ended).toBe('open');
    expect(response.body).toEqual(uncutBytes(provider, PLAN));
    expect(provider.requests[0]?.protocol).toBe('http/2');
  });

  test.each([
    ['h2_rst', ['RST_STREAM 2'], 'open'],
    ['goaway_0_close', ['GOAWAY 0 after 1'], 'fin'],
    ['goaway_error', ['GOAWAY 2 after 1'], 'fin'],
    ['reset', [], 'ECONNRESET'],
    ['clean_eof', ['END_STREAM'], 'open'],
  ] as const)('%s comes after exactly the bytes before it', async (kind, frames, ended) => {
    const headers = await ask(protocol, { kind, at: { byte: 0 } });
    expect(headers).toMatchObject({ frames: ['HEADERS', ...frames], ended, body: Buffer.alloc(0) });
    await provider.close();

    const response = await ask(protocol, { kind, at: { byte: 901 } });
    expect(response).toMatchObject({ frames: ['HEADERS', 'DATA', ...frames], ended });
    expect(response.body).toEqual(uncutBytes(provider, PLAN).subarray(0, 901));
  });

  test('goaway_graceful announces the end of the session, and the stream completes', async () => {
    const response = await ask(protocol, { kind: 'goaway_graceful', at: { event: 3 } });
    expect(response.frames.slice(0, 5)).toEqual([
      'HEADERS',
      'DATA',
      'GOAWAY 0 after 1',
      'DATA',
      'END_STREAM',
    ]);
    expect(response.ended).toBe('fin');
    expect(response.body).toEqual(uncutBytes(provider, PLAN));
  });

  test('before_headers breaks the connection without a response', async () => {
    const response = await ask(protocol, { kind: 'reset', at: { before_headers: true } });
    expect(response).toMatchObject({ frames: [], ended: 'ECONNRESET' });
  });
});
