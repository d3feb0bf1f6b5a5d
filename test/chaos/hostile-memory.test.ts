import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { startProvider } from '../http-peer.ts';

const HEAP_MB = 512;
/** The number of concurrent streams and uploads; the nightly form has more. */
const HONEST = Number(process.env.HOLDFAST_HONEST ?? 10);
const HOSTILE = Number(process.env.HOLDFAST_HOSTILE ?? 20);
const HONEST_WORDS = 300;
const HONEST_INTERVAL_MS = 20;
/** A limit for each of them plus a fixed share. */
const TIMEOUT_MS = 60_000 + 2_000 * (HONEST + HOSTILE);

const MB = 1_048_576;
const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);

type Fragment = Readonly<Record<string, unknown>>;

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const text = (content: string) => chunk({ content });
const call = (fragment: Fragment) => chunk({ tool_calls: [fragment] });
const started = (index: number, name: string, json = '') =>
  call({ index, id: `call_${index}`, type: 'function', function: { name, arguments: json } });

/** The events of hostile upstreams, piece by piece, until the connection is closed. */
const STREAMS: Readonly<Record<string, () => Generator<string>>> = {
  *text() {
    for (;;) yield text('flood '.repeat(10_000));
  },
  *'words of one letter'() {
    for (;;) yield text('a').repeat(200);
  },
  *'names of a megabyte'() {
    for (let index = 0; ; index++) yield started(index, 'n'.repeat(MB));
  },
  *'arguments that do not end, and words between them'() {
    yield started(0, 'f', '{"a":"');
    for (;;) yield call({ index: 0, function: { arguments: '}'.repeat(50_000) } }) + text('a');
  },
  *'calls that say nothing, and words between them'() {
    for (let index = 0; ; index++) yield started(index, 'f', '{') + text('a');
  },
  *'an event that does not end'() {
    yield 'data: {"choices":[{"index":0,"delta":{"content":"';
    for (;;) yield 'a'.repeat(100_000);
  },
  *'events that nest too deep'() {
    for (;;) yield `data: {"deep":${DEEP}}\n\n`;
  },
  *'three bytes a character'() {
    for (;;) yield text('海'.repeat(50_000));
  },
};

/** Bodies of hostile clients. Holdfast has to refuse each of them without holding it for long. */
const BODIES: Readonly<Record<string, () => string>> = {
  'empty objects': () => `{"model":"m","stream":true,"messages":[${'{},'.repeat(11_000_000)}{}]}`,
  names: () => `{"model":"m",${Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`).join(',')}}`,
  brackets: () => `{"model":"m","messages":${'['.repeat(16_000_000)}`,
  'a string that does not end': () => `{"model":"m","messages":"${'a'.repeat(32_000_000)}`,
  'a string of quotes': () => `{"model":"m","messages":"${'\\"'.repeat(16_000_000)}"}`,
};

const wordsOf = (honest: string): string[] =>
  Array.from({ length: HONEST_WORDS }, (_, index) => `${honest} says ${index}. `);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let asked = '';
  for await (const piece of request) asked += piece;
  const { user = '' } = JSON.parse(asked) as { readonly user?: string };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (user.startsWith('honest')) {
    for (const word of wordsOf(user)) {
      response.write(text(word));
      await sleep(HONEST_INTERVAL_MS);
    }
    response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
    return;
  }
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  for (const piece of STREAMS[user]?.() ?? []) {
    if (response.destroyed) return;
    if (!response.write(piece)) await once(response, 'drain', { signal: gone.signal });
  }
  response.end();
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * Never rejects: a broken connection yields status 0. Keeps the whole answer only if `isKept` is set; aborting
 * `leaving` abandons the rest.
 */
const post = (url: string, body: Buffer, isKept: boolean, leaving?: AbortSignal): Promise<Answer> =>
  new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const sent = httpRequest(
      `${url}/chat/completions`,
      { method: 'POST', headers, agent: false },
      (response) => {
        let kept = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          kept = isKept ? kept + piece : piece.slice(-1_000);
        });
        response.on('close', () => resolve({ status: response.statusCode ?? 0, text: kept }));
      },
    );
    leaving?.addEventListener('abort', () => sent.destroy(), { once: true });
    sent.on('error', () => resolve({ status: 0, text: '' }));
    sent.end(body);
  });

const ask = (user: string) =>
  Buffer.from(
    JSON.stringify({ model: 'm', stream: true, user, messages: [{ role: 'user', content: 'Talk.' }] }),
  );

const saidIn = (stream: string): string =>
  stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.content ?? '')
    .join('');

test(
  `a replica of ${HEAP_MB} MB brings honest answers to their end among hostile streams and bodies of every kind`,
  async () => {
    const provider = await startProvider((request, response) => {
      answer(request, response).catch(() => response.destroy());
    });
    const holdfast = await HoldfastProcess.start(
      { upstreams: { main: { base_url: `${provider}/v1` } }, recovery: { max_attempts: 2, backoff_ms: 10 } },
      {},
      0,
      [`--max-old-space-size=${HEAP_MB}`],
    );
    onTestFinished(() => holdfast.kill('SIGKILL'));
    await holdfast.metrics();

    const over = new AbortController();
    const honest = Array.from({ length: HONEST }, (_, index) => `honest ${index}`);
    const answers = honest.map((user) => post(holdfast.url, ask(user), true));
    await sleep(500);
    const statuses = new Map<number, number>();
    const note = ({ status }: Answer) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const bodies = Object.values(BODIES).map((body) => Buffer.from(body()));
    const kinds = [...Object.keys(STREAMS).map(ask), ...bodies];
    const hostile = Array.from({ length: HOSTILE }, async (_, index) => {
      for (let turn = index; !over.signal.aborted; turn++) {
        const answered = await post(holdfast.url, kinds[turn % kinds.length] ?? ask(''), false, over.signal);
        if (!over.signal.aborted) note(answered);
        await sleep(50);
      }
    });
    const told = await Promise.all(answers);
    // The percentile covers the time since the last request for metrics.
    const delay_p99_s = (await holdfast.metrics()).get('nodejs_eventloop_lag_p99_seconds');
    over.abort();
    await Promise.all(hostile);
    console.info('answers to hostile requests', Object.fromEntries(statuses), { delay_p99_s });
    // An idle machine needs about an eighth of that.
    expect(delay_p99_s).toBeLessThan(1);
    for (const [index, { status, text: stream }] of told.entries()) {
      expect(status).toBe(200);
      expect(saidIn(stream)).toBe(wordsOf(honest[index] ?? '').join(''));
      expect(stream).toContain('data: [DONE]');
    }
    const held = async () => (await holdfast.metrics()).get('holdfast_memory_held_bytes');
    await expect.poll(held, { timeout: 20_000 }).toBe(0);
  },
  TIMEOUT_MS,
);
