import { afterAll, beforeAll, expect, test } from 'vitest';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { type Provider, startProvider } from '../provider/provider.ts';

const NAMES = 10_000;
const CLIENTS = 24;
const JSON_TYPE = { 'content-type': 'application/json', authorization: 'Bearer client-key' };
/** Part of each name, so that the test finds it anywhere in the metrics. */
const MARK = 'barnacle';

/** Parts for names: strings that would end a label, a line, a pattern or a path, or that aren't valid text. */
const ODD = [
  '',
  '"',
  '\\',
  '\n# HELP',
  '"} 1\nholdfast_runs_active{model="',
  '{le="+Inf"}',
  '🌊満潮',
  '\u0000\u0007',
  '\ud800',
  '*',
  '../../',
  'x'.repeat(2000),
  '%00%ff',
  '  ',
];

let provider: Provider;
let holdfast: HoldfastProcess;

beforeAll(async () => {
  provider = await startProvider({ record: false, scripts: { '*': { parts: [{ text: 'Kelp.' }] } } });
  const { url: base_url } = provider;
  holdfast = await HoldfastProcess.start({
    upstreams: { main: { base_url }, spare: { base_url } },
    routes: [
      { model: 'gpt-*', targets: [{ upstream: 'main' }, { upstream: 'spare', model: 'kelp-70b' }] },
      { model: 'whole-*', targets: [{ upstream: 'main' }], non_streaming: 'pass_through' },
    ],
    checkpoint: { store: 'memory' },
    metrics: { gen_ai: true },
  });
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), provider?.close()]);
});

const nameOf = (number: number): string => `${MARK}-${number}${ODD[number % ODD.length]}`;

const say = (path: string, body: object) => ({ path, init: { method: 'POST', headers: JSON_TYPE, body } });
const messages = [{ role: 'user', content: 'Hm?' }];

type Way = (name: string) => {
  readonly path: string;
  readonly init?: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body: object;
  };
};

/** Requests with the name that reach the provider. */
const ANSWERED: readonly Way[] = [
  (name) => say('/v1/chat/completions', { model: `gpt-${name}`, stream: true, messages }),
  (name) => say('/v1/messages', { model: `gpt-${name}`, stream: true, messages, max_tokens: 9 }),
  (name) => say('/v1/chat/completions', { model: `gpt-${name}`, messages }),
  (name) => say('/v1/chat/completions', { model: `whole-${name}`, messages }),
  (name) => say('/v1/embeddings', { model: name, input: name }),
];
/** Requests with the name that lead nowhere. */
const REFUSED: readonly Way[] = [
  (name) => say('/v1/chat/completions', { model: name, stream: true, messages }),
  (name) => say('/v1/responses', { model: name, stream: true, input: name }),
  (name) => ({ path: `/v1/models/${encodeURIComponent(name.toWellFormed())}` }),
  (name) => say('/v1/completions', { model: name, prompt: name }),
];

const wayOf = (number: number): Way | undefined =>
  number % 4 === 0 ? ANSWERED[(number / 4) % ANSWERED.length] : REFUSED[number % REFUSED.length];

async function send(number: number): Promise<number> {
  const { path, init } = wayOf(number)?.(nameOf(number)) ?? { path: '/' };
  const body = init && Buffer.from(JSON.stringify(init.body));
  // Every seventh name isn't valid UTF-8.
  if (body && number % 7 === 0) body[body.indexOf(MARK)] = 0xff;
  const root = holdfast.url.replace(/\/v1$/, '');
  const response = await fetch(root + path, {
    method: init?.method ?? 'GET',
    headers: JSON_TYPE,
    ...(body && { body }),
  });
  await response.arrayBuffer();
  return response.status;
}

/** The number of responses per status. */
async function sendAll(from: number, to: number): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let next = from;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < to) {
        const status = await send(next++);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    }),
  );
  return statuses;
}

/** Without the series of Node.js, which appear and disappear with its resources. */
async function series(): Promise<ReadonlySet<string>> {
  const all = [...(await holdfast.metrics()).keys()];
  return new Set(all.filter((name) => /^(holdfast|gen_ai)_/.test(name)));
}

test(`${NAMES} unknown models bring no series of their own`, async () => {
  // After these requests, every series that such requests can create exists.
  const all_ways = 4 * ANSWERED.length * ODD.length;
  await sendAll(0, all_ways);
  const before = await series();
  const statuses = await sendAll(all_ways, all_ways + NAMES);
  expect(await series()).toEqual(before);
  // Bad requests contain invalid names; unknown models have no upstream.
  expect(Object.keys(statuses)).toEqual(['200', '400', '404']);
  expect(statuses[200]).toBeGreaterThan(NAMES / 10);

  const accept = { accept: 'application/openmetrics-text' };
  for (const headers of [{}, accept]) {
    const text = await (await fetch(`${holdfast.adminUrl}/metrics`, { headers })).text();
    expect(text).not.toContain(MARK);
    expect(text).toContain('gen_ai_request_model="gpt-*"');
  }
  console.info(`${before.size} series before and after; statuses: ${JSON.stringify(statuses)}`);
}, 180_000);
