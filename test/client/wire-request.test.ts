import { describe, expect, test } from 'vitest';
import { readWireRequest } from '../../src/client/wire-request.ts';

const URL_TEXT = 'http://a:8080/v1/chat/completions';
const BODY = JSON.stringify({ model: 'm', stream: true, messages: [] });
const POST = { method: 'POST', body: BODY };
const streamOf = (text: string) => new Blob([text]).stream();

describe('a request that can be resumed', () => {
  test.each<[string, Parameters<typeof readWireRequest>]>([
    ['a string', [URL_TEXT, POST]],
    ['a URL', [new URL(URL_TEXT), POST]],
    ['a Request', [new Request(URL_TEXT, POST)]],
    ['a Request, and its body again', [new Request(URL_TEXT, { method: 'POST' }), { body: BODY }]],
    ['bytes', [URL_TEXT, { ...POST, body: new TextEncoder().encode(BODY) }]],
    ['a part of a buffer', [URL_TEXT, { ...POST, body: new TextEncoder().encode(`xx${BODY}`).subarray(2) }]],
    ['an array buffer', [URL_TEXT, { ...POST, body: new TextEncoder().encode(BODY).buffer }]],
    ['a lower-case method', [URL_TEXT, { ...POST, method: 'post' }]],
    ['another root', ['https://gateway.example.com/llm/v1/chat/completions?a=1', POST]],
    ['a path without a version', ['https://gateway.example.com/chat/completions', POST]],
    ['another wire', ['http://a:8080/v1/messages?beta=true', POST]],
  ])('as %s', async (_, [input, init]) => {
    const request = await readWireRequest(input, init);
    expect(request?.isStream).toBe(true);
    expect(request?.body).toBe(BODY);
    expect(request?.headers.get('holdfast-resume')).toBe('1');
    expect(request?.headers.get('idempotency-key')).toMatch(/^holdfast-[0-9a-f]{32}$/);
  });

  test.each<[string, Parameters<typeof readWireRequest>]>([
    ['a GET', [URL_TEXT]],
    ['another path', ['http://a:8080/v1/embeddings', POST]],
    ['a longer path', ['http://a:8080/v1/chat/completions/chatcmpl-1', POST]],
    ['nothing', [URL_TEXT, { ...POST, body: 'null' }]],
    ['no JSON', [URL_TEXT, { ...POST, body: '{"stream":true' }]],
    ['no UTF-8', [URL_TEXT, { ...POST, body: Uint8Array.of(0xff, 0xfe) }]],
    ['a byte order mark', [URL_TEXT, { ...POST, body: new TextEncoder().encode(`\uFEFF${BODY}`) }]],
    ['no body', [URL_TEXT, { method: 'POST' }]],
    ['a body that can be sent once', [URL_TEXT, { ...POST, body: streamOf(BODY), duplex: 'half' }]],
    ['a form', [URL_TEXT, { ...POST, body: new URLSearchParams({ stream: 'true' }) }]],
    ['its own cursor', [URL_TEXT, { ...POST, headers: { 'Last-Event-ID': '7' } }]],
    ['no URL', ['/v1/chat/completions', POST]],
  ])('is not one with %s', async (_, [input, init]) => {
    expect(await readWireRequest(input, init)).toBeUndefined();
  });

  test.each([
    ['no stream', '{"model":"m"}'],
    ['stream: false', '{"stream":false,"x":"\\"stream\\":true"}'],
    ['stream: 1', '{"stream":1}'],
  ])('is one for a whole answer with %s', async (_, body) => {
    const request = await readWireRequest(URL_TEXT, { ...POST, body });
    expect(request).toMatchObject({ isStream: false, body });
    expect(request?.headers.get('holdfast-resume')).toBeNull();
    expect(request?.headers.get('idempotency-key')).toMatch(/^holdfast-/);
  });

  test('names the root of its replica', async () => {
    const root = 'https://gateway.example.com/llm';
    for (const path of ['/v1/responses', '/v1/chat/completions/', '/completions', '/v1/messages?beta=true'])
      expect((await readWireRequest(root + path, POST))?.root).toBe(root);
  });

  test('keeps its own key', async () => {
    const request = await readWireRequest(URL_TEXT, { ...POST, headers: { 'idempotency-key': 'mine' } });
    expect(request?.headers.get('idempotency-key')).toBe('mine');
  });

  test('has a key of its own', async () => {
    const keys = await Promise.all(
      [1, 2].map(async () => (await readWireRequest(URL_TEXT, POST))?.headers.get('idempotency-key')),
    );
    expect(keys[0]).not.toBe(keys[1]);
  });

  test('does not change with what the caller does to its arguments later', async () => {
    const headers = new Headers({ authorization: 'Bearer key' });
    const bytes = new TextEncoder().encode(BODY);
    const request = await readWireRequest(URL_TEXT, { method: 'POST', headers, body: bytes });
    headers.set('authorization', 'another');
    bytes.fill(0);
    expect(request?.headers.get('authorization')).toBe('Bearer key');
    expect(request?.body).toBe(BODY);
    expect(headers.has('holdfast-resume')).toBe(false);
  });

  test('leaves a Request as it is', async () => {
    const input = new Request(URL_TEXT, POST);
    await readWireRequest(input);
    expect(input.bodyUsed).toBe(false);
    expect(await input.text()).toBe(BODY);
  });

  test('takes over what a Request says, and what is said beside it', async () => {
    const { signal } = new AbortController();
    const input = new Request(URL_TEXT, {
      ...POST,
      credentials: 'include',
      redirect: 'error',
      headers: { 'x-of': 'request' },
      signal: new AbortController().signal,
    });
    const inherited = await readWireRequest(input);
    expect(inherited?.init).toMatchObject({ credentials: 'include', redirect: 'error' });
    expect(inherited?.headers.get('x-of')).toBe('request');
    expect(inherited?.signal).toBe(input.signal);
    const own = await readWireRequest(input, { signal, redirect: 'manual', headers: { 'x-of': 'init' } });
    expect(own?.init).toMatchObject({ credentials: 'include', redirect: 'manual' });
    expect(own?.headers.get('x-of')).toBe('init');
    expect(own?.signal).toBe(signal);
    expect((await readWireRequest(input, { signal: null }))?.signal).toBeUndefined();
  });
});
