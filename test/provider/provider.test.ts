import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Fault } from './fault.ts';
import { type Provider, startProvider } from './provider.ts';
import { chunksOf, contentOf } from './reading.ts';
import type { Plan } from './script.ts';

const saying = (text: string, rest: Partial<Plan> = {}): Plan => ({ parts: [{ text }], ...rest });

let provider: Provider;
beforeEach(async () => {
  provider = await startProvider({
    scripts: {
      faulty: saying('faulty', { faults: [{ kind: 'status', status: 503 }, null, { kind: 'json_200' }] }),
      talkative: saying('silent', { faults: [{ kind: 'comments', at: { event: 1 }, every_ms: 10 }] }),
      hesitant: saying('silent', { faults: [{ kind: 'pings', at: { event: 1 }, every_ms: 10, for_ms: 45 }] }),
      '*': saying('anything'),
    },
  });
});
afterEach(() => provider.close());

const ask = (model: string, content: string, signal?: AbortSignal) =>
  fetch(`${provider.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content }] }),
    ...(signal && { signal }),
  });

async function answerTo(model: string, content: string): Promise<string> {
  const response = await ask(model, content);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return String(response.status);
  return contentOf(chunksOf(await response.text()));
}

describe('which plan a request gets', () => {
  test('the one for its model, with the fault of its attempt, whatever else is asked', async () => {
    expect(await answerTo('faulty', 'a')).toBe('503');
    expect(await answerTo('faulty', 'b')).toBe('503');
    expect(await answerTo('faulty', 'a')).toBe('faulty');
    expect(await answerTo('faulty', 'a')).toBe('200');
    expect(await answerTo('faulty', 'b')).toBe('faulty');
    expect(await answerTo('faulty', 'a')).toBe('faulty');
    expect(await answerTo('unknown', 'a')).toBe('anything');
    expect(provider.requests.map((request) => request.attempt)).toEqual([1, 1, 2, 3, 2, 4, 1]);
  });

  test('a queued one goes to the next run that begins, and stays with it', async () => {
    provider.next(saying('first'), [{ kind: 'status', status: 500 }]);
    provider.next(saying('second'));
    expect(await answerTo('m', 'a')).toBe('500');
    expect(await answerTo('m', 'b')).toBe('second');
    expect(await answerTo('m', 'a')).toBe('first');
  });

  test('the same question begins a new run once it was answered and another plan waits', async () => {
    provider.next(saying('first'));
    expect(await answerTo('m', 'a')).toBe('first');
    expect(await answerTo('m', 'a')).toBe('first');
    provider.next(saying('second'));
    expect(await answerTo('m', 'a')).toBe('second');
  });

  test.each<Fault>([
    { kind: 'status', status: 500 },
    { kind: 'clean_eof', at: { event: 2 } },
  ])('a run whose answer was cut keeps its plan while another waits: %j', async (fault) => {
    provider.next(saying('first'), [fault]);
    await answerTo('m', 'a');
    provider.next(saying('second'));
    expect(await answerTo('m', 'a')).toBe('first');
  });

  test('a fault that is survived does not keep a run from its end', async () => {
    provider.next(saying('first'), [{ kind: 'silence', at: { event: 1 }, for_ms: 1 }]);
    expect(await answerTo('m', 'a')).toBe('first');
    provider.next(saying('second'));
    expect(await answerTo('m', 'a')).toBe('second');
  });

  test('a responder comes before everything else, and may pass', async () => {
    provider.respond((request) =>
      request.headers['x-special'] === undefined ? undefined : saying('special'),
    );
    expect(await answerTo('m', 'a')).toBe('anything');
    provider.respond(() => saying('special', { faults: [null, { kind: 'status', status: 418 }] }));
    expect(await answerTo('m', 'b')).toBe('special');
    expect(await answerTo('m', 'b')).toBe('418');
  });

  test('none: the model does not exist', async () => {
    const empty = await startProvider();
    const request = { model: 'm', stream: true, messages: [] };
    const response = await fetch(`${empty.url}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(request),
    });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 'model_not_found' } });
    await empty.close();
  });
});

describe('what is known of a request', () => {
  test('what it was, and how much of the answer has left', async () => {
    const response = await ask('m', 'hello');
    const body = await response.text();
    expect(provider.requests).toMatchObject([
      {
        method: 'POST',
        path: '/v1/chat/completions',
        search: '',
        body: { model: 'm', messages: [{ role: 'user', content: 'hello' }] },
        protocol: 'http/1.1',
        sent: { bytes: Buffer.byteLength(body) },
        attempt: 1,
        aborted_at_ms: undefined,
      },
    ]);
  });

  test('that the client left in the middle', async () => {
    const abort = new AbortController();
    const response = await ask('talkative', 'hello', abort.signal);
    await response.body?.getReader().read();
    abort.abort();
    await provider.waitForAborts(1);
    expect(provider.requests[0]?.aborted_at_ms).toBeTypeOf('number');
  });
});

describe('signs of life', () => {
  test('comments continue until the client leaves', async () => {
    const abort = new AbortController();
    const response = await ask('talkative', 'hello', abort.signal);
    let body = '';
    await expect(async () => {
      for await (const piece of response.body ?? []) {
        body += Buffer.from(piece).toString();
        if (body.split(': keep-alive\n\n').length > 3) abort.abort();
      }
    }).rejects.toThrow('aborted');
    expect(body).toMatch(/^data: .*\n\n(: keep-alive\n\n){3,}$/);
  });

  test('pings for a while are followed by the rest', async () => {
    const chunks = chunksOf(await (await ask('hesitant', 'hello')).text());
    const pings = chunks.filter(
      ({ choices }) => choices[0]?.delta.content === undefined && !choices[0]?.finish_reason,
    );
    expect(pings.length).toBeGreaterThan(0);
    expect(contentOf(chunks)).toBe('silent');
  });
});

describe('the other endpoints', () => {
  test('models are those with a script', async () => {
    const models = (await (await fetch(`${provider.url}/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['faulty', 'talkative', 'hesitant']);
  });

  test('echo streams the body back as it comes', async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const pending = fetch(`${provider.url}/echo`, {
      method: 'POST',
      body: readable,
      duplex: 'half',
      headers: { 'content-type': 'text/x' },
    } as RequestInit);
    await writer.write(Buffer.from('first'));
    const response = await pending;
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first');
    await writer.write(Buffer.from('second'));
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('second');
    await writer.close();
    expect((await reader?.read())?.done).toBe(true);
    expect(response.headers.get('content-type')).toBe('text/x');
  });

  test('embeddings are always the same, and what is unknown is a 404', async () => {
    const response = await fetch(`${provider.url}/embeddings`, { method: 'POST', body: '{}' });
    expect(await response.json()).toMatchObject({ data: [{ embedding: [0.25, -0.5, 0.75] }] });
    expect((await fetch(`${provider.url}/unknown`)).status).toBe(404);
  });

  test('stall never answers', async () => {
    const abort = new AbortController();
    const pending = fetch(`${provider.url}/stall`, { signal: abort.signal });
    await provider.waitForRequests(1);
    abort.abort();
    await expect(pending).rejects.toThrow('aborted');
    await provider.waitForAborts(1);
  });
});
