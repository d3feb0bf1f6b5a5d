import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  type ResumableOptions,
  resumable,
  SilenceError,
  StreamInterruptedError,
} from '../../src/client/index.ts';
import { chunk, DONE, framesOf, request, saying, textOf, words } from './answers.ts';
import {
  cut,
  Fleet,
  type FleetOptions,
  failing,
  pieces,
  refuse,
  reset,
  type Step,
  stall,
  whole,
} from './fleet.ts';

const WORDS = words(12);
const EVENTS = saying(...WORDS);
/** Short backoff, so that tests don't wait. */
const QUICK = { backoffMs: 1, backoffMaxMs: 4 };

async function start(
  options: FleetOptions & { events?: readonly string[] } = {},
  more: ResumableOptions = {},
) {
  const fleet = await Fleet.start(options.events ?? EVENTS, options);
  return { fleet, fetch: resumable({ endpoints: fleet.urls, ...QUICK, ...more }) };
}

const told = ({ asked }: Fleet) =>
  asked.map(({ replica, method, path }) => `${replica} ${method} ${path.replace(/run_\d+/, 'RUN')}`);
const CHAT = 'POST /v1/chat/completions';
const RESUME = 'POST /holdfast/v1/runs/RUN/resume';
/** The number of bytes in the first `events` frames and part of the next one. */
const within = (events: number) =>
  EVENTS.slice(0, events).reduce(
    (size, event, index) =>
      size + Buffer.byteLength(`id: run_${'0'.repeat(22)}.1.${index + 1}\ndata: ${event}\n\n`),
    0,
  ) + 20;

/** Reads the whole body, if there is one. Resolves `read` once `events` events have arrived. */
async function bodyOf(response: Response, events: number, read: PromiseWithResolvers<void>): Promise<string> {
  let body = '';
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    body += text;
    if (body.startsWith(framesOf(EVENTS.slice(0, events)))) read.resolve();
  }
  return body;
}

describe('an answer that nothing interrupts', () => {
  test('is the same, event for event, without ids', async () => {
    const { fleet, fetch } = await start();
    const response = await fetch(fleet.chatUrl, request());
    expect(response.status).toBe(200);
    expect(response.url).toBe(fleet.chatUrl);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('holdfast-run-id')).toMatch(/^run_/);
    expect(await response.text()).toBe(framesOf(EVENTS));
    expect(told(fleet)).toEqual([`0 ${CHAT}`]);
    expect(fleet.asked[0]?.headers).toMatchObject({
      authorization: 'Bearer client-key',
      'holdfast-resume': '1',
      'idempotency-key': expect.stringMatching(/^holdfast-/),
    });
    expect(fleet.asked[0]?.body).toEqual(JSON.parse(String(request().body)));
  });

  test.each([1, 2, 3, 7, 64])('comes in pieces of %i', async (size) => {
    const { fleet, fetch } = await start({ frame: (payload) => `data: ${payload}\r\n\r\n` });
    fleet.script(pieces(size));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
  });

  test('keeps its comments', async () => {
    const { fleet, fetch } = await start({ frame: (payload) => `: hb\ndata: ${payload}\n\n` });
    const body = await (await fetch(fleet.chatUrl, request())).text();
    expect(body).toBe(EVENTS.map((event) => `: hb\n${framesOf([event])}`).join(''));
  });

  test('leaves its connection for the next one, as fetch does', async () => {
    const connections: number[] = [];
    for (const each of [globalThis.fetch, resumable()]) {
      const fleet = await Fleet.start(EVENTS);
      for (let count = 0; count < 10; count += 1) await (await each(fleet.chatUrl, request())).text();
      connections.push(fleet.connections);
    }
    expect(connections[1]).toBe(connections[0]);
  });

  test('may be that of a global fetch which was made from the one before it', async () => {
    const { fleet } = await start();
    const before = globalThis.fetch;
    onTestFinished(() => {
      globalThis.fetch = before;
    });
    const spy = vi.fn(before);
    globalThis.fetch = spy;
    globalThis.fetch = resumable();
    expect(await (await globalThis.fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    // Requests that aren't for an answer use the original `fetch` as well.
    expect((await globalThis.fetch(`${fleet.base}/models`)).status).toBe(404);
    expect(spy).toHaveBeenCalledTimes(2);
  });
});

describe('a stream that breaks', () => {
  const WAYS: readonly { name: string; step: (read: Promise<void>) => Step }[] = [
    { name: 'is reset', step: (read) => cut(within(4), 'reset', read) },
    { name: 'is closed inside a chunk', step: (read) => cut(within(4), 'fin', read) },
    { name: 'ends without [DONE]', step: () => cut(within(4), 'eof') },
    { name: 'ends between two events', step: () => cut(within(4) - 20, 'eof') },
    { name: 'falls silent', step: () => stall(within(4)) },
  ];

  test.each(WAYS)('because it $name, is resumed at the next replica', async ({ step }) => {
    const { fleet, fetch } = await start({}, { idleMs: 300 });
    const read = Promise.withResolvers<void>();
    fleet.script(step(read.promise));
    expect(await bodyOf(await fetch(fleet.chatUrl, request()), 4, read)).toBe(framesOf(EVENTS));
    expect(told(fleet)).toEqual([`0 ${CHAT}`, `1 ${RESUME}`]);
    expect(fleet.asked[1]?.body).toEqual({ cursor: 4, tail: EVENTS.slice(0, 4) });
    expect(fleet.asked[1]?.headers).toMatchObject({
      authorization: 'Bearer client-key',
      'content-type': 'application/json',
      'holdfast-resume': '1',
      'last-event-id': `run_${'0'.repeat(22)}.1.4`,
    });
  });

  test.each(WAYS)('because it $name, is resumed at the same address', async ({ step }) => {
    const { fleet, fetch } = await start({ replicas: 1 }, { idleMs: 300 });
    const read = Promise.withResolvers<void>();
    fleet.script(step(read.promise));
    expect(await bodyOf(await fetch(fleet.chatUrl, request()), 4, read)).toBe(framesOf(EVENTS));
    expect(told(fleet)).toEqual([`0 ${CHAT}`, `0 ${RESUME}`]);
  });

  test('before its first event, is resumed from the start', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(0), cut(3));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(fleet.asked.map(({ body }) => (body as { cursor?: number }).cursor)).toEqual([undefined, 0, 0]);
    expect(fleet.asked.map(({ headers }) => headers['last-event-id'])).toEqual(Array(3).fill(undefined));
  });

  test.each(['reset', 'fin', 'eof'] as const)('after [DONE], is whole: %s', async (how) => {
    const { fleet, fetch } = await start();
    const read = Promise.withResolvers<void>();
    fleet.script(cut(1e9, how, read.promise));
    const body = await bodyOf(await fetch(fleet.chatUrl, request()), EVENTS.length, read);
    expect(body).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(1);
  });

  test('after [DONE], is whole: silence', async () => {
    const { fleet, fetch } = await start({}, { idleMs: 200 });
    fleet.script(stall(1e9));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(1);
  });

  test.each(['reset', 'eof'] as const)('after an error event, has ended: %s', async (how) => {
    const error = JSON.stringify({ error: { message: 'm', type: 'stream_interrupted' } });
    const events = [...EVENTS.slice(0, 5), error];
    const { fleet, fetch } = await start({ events });
    const read = Promise.withResolvers<void>();
    fleet.script(cut(1e9, how, read.promise));
    expect(await bodyOf(await fetch(fleet.chatUrl, request()), 5, read)).toBe(framesOf(events));
    expect(fleet.asked).toHaveLength(1);
  });

  test('of more events than the tail holds, brings the last ones', async () => {
    const many = saying(...words(5_000));
    const { fleet, fetch } = await start({ events: many, stored: 1_000 });
    fleet.script(cut(900_000, 'eof'));
    expect(textOf(await (await fetch(fleet.chatUrl, request())).text())).toBe(words(5_000).join(''));
    const { cursor, tail } = (fleet.asked[1]?.body ?? {}) as { cursor: number; tail: string[] };
    expect(cursor).toBeGreaterThan(tail.length);
    expect(tail).toHaveLength(4_096);
  });

  test('after keep-alives for longer than giveUpMs, is resumed', async () => {
    const { fleet, fetch } = await start({}, { giveUpMs: 200 });
    fleet.script(async ({ open, response }) => {
      open();
      for (let count = 0; count < 10; count += 1) {
        response.write(': hb\n');
        await delay(50);
      }
      response.socket?.resetAndDestroy();
    });
    const body = await (await fetch(fleet.chatUrl, request())).text();
    expect(body).toBe(`${': hb\n'.repeat(10)}${framesOf(EVENTS)}`);
  });

  test('continues as long as it makes progress', async () => {
    const { fleet, fetch } = await start({}, { maxRetries: 1 });
    fleet.script(...EVENTS.slice(1).map(() => cut(within(1), 'eof')));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(EVENTS.length);
  });
});

describe('a replica that cannot take the request', () => {
  test.each<{ name: string; step: Step }>([
    { name: 'resets the connection', step: reset },
    { name: 'never answers', step: stall() },
    { name: 'is shutting down', step: refuse(503, 'shutting_down', { 'retry-after': '30' }) },
    { name: 'has lost the run', step: refuse(503, 'run_taken_over', { 'retry-after-ms': '30000' }) },
    { name: 'has no store', step: refuse(503, 'store_unavailable', { 'retry-after-ms': '30000' }) },
    {
      name: 'is behind a balancer that says 502',
      step: ({ response }) => void response.writeHead(502).end('<html>'),
    },
    {
      name: 'never ends its answer',
      step: ({ response }) => void response.writeHead(503).write('<html>'),
    },
    {
      name: 'is behind a balancer that says 504',
      step: ({ response }) => void response.writeHead(504).end('{"message":""}'),
    },
  ])('because it $name: the next one is asked at once, with the same key', async ({ step }) => {
    const { fleet, fetch } = await start({}, { idleMs: 300 });
    fleet.script(step);
    const began_ms = performance.now();
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(performance.now() - began_ms).toBeLessThan(5_000);
    expect(told(fleet)).toEqual([`0 ${CHAT}`, `1 ${CHAT}`]);
    const [first, second] = fleet.asked;
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(second?.body).toEqual(first?.body);
  });

  test('is not there at all', async () => {
    const gone = await Fleet.open(EVENTS, { replicas: 1 });
    gone.close();
    const fleet = await Fleet.start(EVENTS);
    const fetch = resumable({ endpoints: [...gone.urls, ...fleet.urls], ...QUICK });
    expect(await (await fetch(gone.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    // The next request skips the replica that is gone.
    const spied = vi.fn(globalThis.fetch);
    const next = resumable({ endpoints: [...gone.urls, ...fleet.urls], ...QUICK, fetch: spied });
    for (let count = 0; count < 3; count += 1) await (await next(gone.chatUrl, request())).text();
    expect(spied.mock.calls.map(([url]) => new URL(String(url)).origin)).toEqual([
      gone.urls[0],
      ...fleet.urls.slice(0, 1),
      fleet.urls[0],
      fleet.urls[0],
    ]);
  });

  test('is the first choice again once it has answered', async () => {
    const { fleet, fetch } = await start();
    for (const steps of [[reset, whole], [reset, whole], [whole]]) {
      fleet.script(...steps);
      await (await fetch(fleet.chatUrl, request())).text();
    }
    expect(fleet.asked.map(({ replica }) => replica)).toEqual([0, 1, 1, 0, 0]);
  });

  test('may say how long to wait, when there is no other', async () => {
    const { fleet, fetch } = await start({ replicas: 1 });
    fleet.script(refuse(503, 'shutting_down', { 'retry-after-ms': '300' }));
    const began_ms = performance.now();
    await (await fetch(fleet.chatUrl, request())).text();
    expect(performance.now() - began_ms).toBeGreaterThanOrEqual(299);
  });

  test('may not say so for ever', async () => {
    const { fleet, fetch } = await start({ replicas: 1 }, { retryAfterMaxMs: 20 });
    fleet.script(refuse(503, 'shutting_down', { 'retry-after': '3600' }));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
  });

  test('is the last one: its answer is the answer', async () => {
    const { fleet, fetch } = await start({}, { giveUpMs: 300 });
    fleet.script(...Array(1_000).fill(refuse(503, 'shutting_down')));
    const response = await fetch(fleet.chatUrl, request());
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: 'shutting_down' } });
  });

  test('is the last one: its answer is the answer, although the timer of the next try fires early', async () => {
    const began_ms = performance.now();
    const now = vi.spyOn(performance, 'now').mockReturnValue(began_ms);
    onTestFinished(() => now.mockRestore());
    const { fleet } = await start();
    fleet.script(refuse(503, 'shutting_down'));
    let tries = 0;
    const inner: typeof globalThis.fetch = async (input, init) => {
      tries += 1;
      if (tries === 1) return globalThis.fetch(input, init);
      await new Promise((resolve) => init?.signal?.addEventListener('abort', resolve));
      now.mockReturnValue(began_ms + 99.5);
      throw init?.signal?.reason;
    };
    const fetch = resumable({
      endpoints: fleet.urls,
      fetch: inner,
      backoffMs: 4,
      backoffMaxMs: 4,
      giveUpMs: 100,
    });
    const response = await fetch(fleet.chatUrl, request());
    expect(response.status).toBe(503);
    expect(tries).toBe(2);
  });

  test('is the last one: its error is the error', async () => {
    const { fleet, fetch } = await start({}, { giveUpMs: 300 });
    fleet.script(...Array(1_000).fill(reset));
    await expect(fetch(fleet.chatUrl, request())).rejects.toThrow(TypeError);
  });

  test('is waited for, however many connections are refused meanwhile', async () => {
    const gone = await Fleet.open(EVENTS, { replicas: 2 });
    gone.close();
    const fleet = await Fleet.start(EVENTS, { replicas: 1 });
    let doors = 0;
    const inner: typeof globalThis.fetch = (input, init) => {
      doors += 1;
      // The replica comes back after about forty refused connections, once before the answer and once in the middle of
      // it.
      const isBack = doors > 40 && (doors < 42 || doors > 82);
      const url = String(input).replace(
        /^http:..[^/]+/,
        String(isBack ? fleet.urls[0] : gone.urls[doors % 2]),
      );
      return globalThis.fetch(url, init);
    };
    const fetch = resumable({ endpoints: gone.urls, fetch: inner, backoffMs: 1, backoffMaxMs: 4 });
    fleet.script(cut(within(4)));
    expect(await (await fetch(gone.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(doors).toBe(83);
  });
});

describe('an answer that is no stream of Holdfast', () => {
  test.each([400, 401, 404, 409, 422, 429, 500, 502, 503, 504])('%i passes as it is', async (status) => {
    const { fleet, fetch } = await start();
    fleet.script(refuse(status, 'upstream_unavailable', { 'x-of': 'upstream' }));
    const response = await fetch(fleet.chatUrl, request());
    expect(response.status).toBe(status);
    expect(response.headers.get('x-of')).toBe('upstream');
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_unavailable' } });
    expect(fleet.asked).toHaveLength(1);
  });

  test('a stream without a run passes as it is, and breaks as it does', async () => {
    const { fleet, fetch } = await start();
    const stream = { 'content-type': 'text/event-stream' };
    fleet.script(({ response }) => void response.writeHead(200, stream).end('id: 1\ndata: x\n\n'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe('id: 1\ndata: x\n\n');
    fleet.script(async ({ response }) => {
      response.writeHead(200, stream).flushHeaders();
      await new Promise((resolve) => response.write('data: x\n\n', resolve));
      response.socket?.resetAndDestroy();
    });
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow('terminated');
    expect(fleet.asked).toHaveLength(2);
  });

  test('everything else goes where it was meant to go, as it was', async () => {
    const seen: string[] = [];
    const inner = vi.fn(globalThis.fetch);
    const { fleet, fetch } = await start(
      {
        other: ({ method, url }, response) => {
          seen.push(`${method} ${url}`);
          response.end('{}');
        },
      },
      { fetch: inner },
    );
    const init = { method: 'POST', body: '{"stream":true}', headers: { 'x-of': 'caller' } };
    await fetch(`${fleet.base}/embeddings`, init);
    const get = new Request(`${fleet.base}/models`);
    await fetch(get);
    expect(seen).toEqual(['POST /v1/embeddings', 'GET /v1/models']);
    expect(inner.mock.calls).toEqual([
      [`${fleet.base}/embeddings`, init],
      [get, undefined],
    ]);
  });
});

describe('a stream that cannot be resumed', () => {
  const END: readonly { name: string; answers: readonly Step[]; requests: number }[] = [
    { name: 'is not known', answers: [refuse(404, 'elsewhere')], requests: 2 },
    { name: 'may not be begun', answers: Array(2).fill(refuse(404, 'run_not_found')), requests: 3 },
    { name: 'may not be read', answers: [refuse(401, 'unauthorised')], requests: 2 },
    {
      name: 'is ahead of every checkpoint',
      answers: Array(4).fill(refuse(409, 'cursor_ahead')),
      requests: 5,
    },
    { name: 'ends again and again', answers: Array(4).fill(cut(0, 'eof')), requests: 5 },
  ];

  test.each(END)('because it $name, fails as it was broken', async ({ answers, requests }) => {
    const { fleet, fetch } = await start({}, { maxRetries: 4 });
    const read = Promise.withResolvers<void>();
    fleet.script(cut(within(4), 'reset', read.promise), ...answers);
    const reading = bodyOf(await fetch(fleet.chatUrl, request()), 4, read);
    await expect(reading).rejects.toMatchObject({ message: 'terminated' });
    // All four events arrived before the failure.
    await read.promise;
    expect(fleet.asked).toHaveLength(requests);
  });

  test.each([
    { name: 'finds no replica', step: reset },
    { name: 'finds replicas that cannot serve', step: refuse(503, 'store_unavailable') },
  ])('because for giveUpMs it $name, fails as it was broken', async ({ step }) => {
    const { fleet, fetch } = await start({}, { giveUpMs: 1500, maxRetries: 4 });
    const read = Promise.withResolvers<void>();
    fleet.script(cut(within(4), 'reset', read.promise), ...Array(1_000).fill(step));
    const reading = bodyOf(await fetch(fleet.chatUrl, request()), 4, read);
    await expect(reading).rejects.toMatchObject({ message: 'terminated' });
    expect(fleet.asked.length).toBeGreaterThan(6);
  });

  test('and that had ended without [DONE], fails no less', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4), 'eof'), refuse(401, 'unauthorised'));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(StreamInterruptedError);
  });

  test('and that breaks in another way later, fails as it was broken first', async () => {
    const { fleet, fetch } = await start({}, { maxRetries: 2 });
    fleet.script(cut(within(4), 'eof'), cut(0), cut(0));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(StreamInterruptedError);
  });

  test('and that had fallen silent, fails no less', async () => {
    const { fleet, fetch } = await start({}, { idleMs: 200 });
    fleet.script(stall(within(4)), refuse(401, 'unauthorised'));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(SilenceError);
  });

  test('is given up when nothing is heard for giveUpMs', async () => {
    const { fleet, fetch } = await start(
      {},
      { maxRetries: 1_000_000, giveUpMs: 400, backoffMs: 20, backoffMaxMs: 20 },
    );
    fleet.script(cut(within(4)), ...Array(100).fill(reset));
    const began_ms = performance.now();
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow('terminated');
    expect(performance.now() - began_ms).toBeGreaterThan(350);
    expect(fleet.asked.length).toBeLessThan(45);
  });

  test('is given up by then even while a replica keeps it waiting', async () => {
    const { fleet, fetch } = await start({}, { giveUpMs: 400 });
    fleet.script(cut(within(4)), stall());
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow('terminated');
  });
});

describe('a run that is not known any more', () => {
  test('with nothing delivered, is begun again', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(3), refuse(404, 'run_not_found'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(told(fleet)).toEqual([`0 ${CHAT}`, `1 ${RESUME}`, `0 ${CHAT}`]);
    expect(fleet.asked[2]?.headers['idempotency-key']).toBe(fleet.asked[0]?.headers['idempotency-key']);
  });

  test('and cannot be begun again, fails as it was broken', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(3, 'eof'), refuse(404, 'run_not_found'), refuse(404, 'model_not_found'));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(StreamInterruptedError);
    expect(fleet.asked).toHaveLength(3);
  });

  test('is resumed under its new name', async () => {
    const { fleet, fetch } = await start();
    const renamed: Step = async ({ response, body }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'holdfast-run-id': 'run_new' });
      response.end(body.subarray(0, within(2)));
    };
    fleet.script(cut(3), refuse(404, 'run_not_found'), renamed);
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(StreamInterruptedError);
    expect(fleet.asked.at(-1)?.path).toBe('/holdfast/v1/runs/run_new/resume');
  });
});

describe('a run that continues under another id', () => {
  const forked =
    (events: number): Step =>
    ({ response, body }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'holdfast-run-id': 'run_fork' });
      const sent = body
        .toString()
        .split(/(?<=\n\n)/)
        .slice(0, events)
        .join('');
      response.end(sent.replaceAll(/^id: run_\d+/gm, 'id: run_fork'));
    };

  test.each([0, 2])('is come back to under that, after %i events of it', async (events) => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4)), forked(events));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow();
    const { path, headers, body } = fleet.asked[2] ?? {};

    expect(path).toBe('/holdfast/v1/runs/run_fork/resume');
    expect(body).toEqual({ cursor: 4 + events, tail: EVENTS.slice(0, 4 + events) });
    // The last event id of the first run means nothing to the new one.
    expect(headers?.['last-event-id']).toBe(events === 0 ? undefined : `run_fork.1.${4 + events}`);
  });
});

describe('a replica that cannot serve the rest yet', () => {
  test.each([429, 500, 502, 503])('%i: is asked again', async (status) => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4)), refuse(status, 'upstream_unavailable'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(3);
  });

  test('need not say why to the end', async () => {
    const responses: Response[] = [];
    const inner: typeof globalThis.fetch = async (...request) => {
      const response = await globalThis.fetch(...request);
      responses.push(response);
      return response;
    };
    const { fleet, fetch } = await start({}, { fetch: inner });
    fleet.script(cut(within(4)), ({ response }) => void response.writeHead(503).write('<html>'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(responses.map(({ status, bodyUsed }) => [status, bodyUsed])).toEqual([
      [200, true],
      [503, true],
      [200, true],
    ]);
  });
});

describe('a run whose request is not stored', () => {
  /** Which of the requests included the caller's original request. */
  const brought = ({ asked }: Fleet) => asked.map(({ body }) => Object.hasOwn(body as object, 'request'));
  const unknown = refuse(409, 'not_resumable');

  test('nor anything else of it, continues with everything that the client has', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4), 'eof'), refuse(404, 'run_not_found'), reset);
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(brought(fleet)).toEqual([false, false, true, true]);
    expect(fleet.asked.at(-1)?.body).toMatchObject({ cursor: 4, tail: { length: 4 } });
  });

  test('is asked for with it until a replica has answered that', async () => {
    const { fleet, fetch } = await start({}, { maxRetries: 20 });
    fleet.script(
      ...[cut(within(4), 'eof'), unknown, reset, unknown],
      ...[failing('not_resumable'), cut(0), reset, unknown, cut(100)],
    );
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    const yes = true;
    const no = false;
    expect(brought(fleet)).toEqual([no, no, yes, yes, no, yes, no, no, yes, no]);
  });

  test('and that cannot be continued all the same, is given up', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4), 'eof'), unknown, failing('not_resumable'));
    const events = framesOf(EVENTS.slice(0, 4));
    const body = await (await fetch(fleet.chatUrl, request())).text();
    expect(body.replace(/^: hb\n/m, '')).toBe(
      `${events}data: {"error":{"code":"not_resumable","message":"not_resumable"}}\n\n`,
    );
    expect(brought(fleet)).toEqual([false, false, true]);
  });

  test('only where the first event says so', async () => {
    const { fleet, fetch } = await start();
    const late: Step = ({ open, response, body }) => {
      open();
      const error = 'data: {"error":{"code":"not_resumable"}}\n\n';
      response.end(Buffer.concat([body.subarray(0, body.indexOf('\n\n') + 2), Buffer.from(error)]));
    };
    fleet.script(cut(within(4), 'eof'), late);
    const body = await (await fetch(fleet.chatUrl, request())).text();
    expect(body).toContain('not_resumable');
    expect(brought(fleet)).toEqual([false, false]);
  });

  test('may speak of that itself', async () => {
    const events = saying('"not_resumable"', 'x');
    const { fleet, fetch } = await start({ events });
    fleet.script(cut(100, 'eof'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(events));
    expect(brought(fleet)).toEqual([false, false]);
  });

  test('is given up if it cannot be asked for again', async () => {
    const { fleet, fetch } = await start({}, { maxRetries: 1 });
    fleet.script(cut(within(4), 'eof'), failing('not_resumable'));
    await expect((await fetch(fleet.chatUrl, request())).text()).rejects.toThrow(StreamInterruptedError);
  });
});

describe('a cursor ahead of the checkpoint', () => {
  test('is tried again until the checkpoint has caught up', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4)), refuse(409, 'cursor_ahead'), refuse(409, 'cursor_ahead'));
    expect(await (await fetch(fleet.chatUrl, request())).text()).toBe(framesOf(EVENTS));
    expect(fleet.asked).toHaveLength(4);
  });
});

describe('addresses', () => {
  test('keep their query, and get their own path', async () => {
    const { fleet } = await start();
    const fetch = resumable({ ...QUICK, endpoints: [`${fleet.urls[1]}/v1/`] });
    fleet.script(reset);
    await (await fetch(`${fleet.chatUrl}?api-version=1`, request())).text();
    expect(told(fleet)).toEqual([`0 ${CHAT}?api-version=1`, `1 ${CHAT}?api-version=1`]);
  });

  test('of a Request', async () => {
    const { fleet, fetch } = await start();
    fleet.script(cut(within(4)));
    expect(await (await fetch(new Request(fleet.chatUrl, request()))).text()).toBe(framesOf(EVENTS));
    expect(told(fleet)).toEqual([`0 ${CHAT}`, `1 ${RESUME}`]);
    expect(fleet.asked[1]?.headers.authorization).toBe('Bearer client-key');
  });

  test('content-length is that of each body', async () => {
    const { fleet, fetch } = await start();
    const { body } = request();
    const headers = { 'content-type': 'application/json', 'content-length': String(String(body).length) };
    fleet.script(cut(within(4)));
    expect(await (await fetch(fleet.chatUrl, request({ headers }))).text()).toBe(framesOf(EVENTS));
  });
});

test('an event that is too large is an error, ends its connection, and is not asked for again', async () => {
  const { fleet, fetch } = await start({ events: [chunk({ content: 'x'.repeat(17_000_000) }), DONE] });
  const closed = Promise.withResolvers<void>();
  fleet.script(async ({ open, response, body }) => {
    response.once('close', closed.resolve);
    open();
    response.write(body);
  });
  const reading = (await fetch(fleet.chatUrl, request())).text();
  await expect(reading).rejects.toMatchObject({ name: 'EventTooLargeError' });
  await closed.promise;
  expect(fleet.asked).toHaveLength(1);
});

test('nothing is read before the caller does', async () => {
  let pulls = 0;
  const body = new ReadableStream(
    {
      pull(stream) {
        pulls += 1;
        stream.enqueue(new TextEncoder().encode(framesOf([DONE])));
        stream.close();
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { 'content-type': 'text/event-stream', 'holdfast-run-id': 'run_1' };
  const fetch = resumable({ fetch: async () => new Response(body, { headers }) });
  const response = await fetch('http://127.0.0.1/v1/chat/completions', request());
  await delay(20);
  expect(pulls).toBe(0);
  expect(await response.text()).toBe(framesOf([DONE]));
});
