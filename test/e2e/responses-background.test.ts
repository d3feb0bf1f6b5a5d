import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { Part } from '../provider/script.ts';
import { API_KEY } from './clients/chat-client.ts';
import { responsesTools } from './clients/openai-responses.ts';
import { responseAnswer } from './clients/response-answer.ts';
import { HoldfastProcess } from './holdfast-process.ts';
import { callTo, TIDES } from './situations.ts';

const TEXT = { text: 'The tide comes in twice a day, and what holds fast is there when it is out again.' };
const PARTS: readonly Part[] = [
  { reasoning: 'They ask about the sea.' },
  TEXT,
  { tool: callTo('call_brest', 'Brest') },
  { tool: callTo('call_lorient', 'Lorient') },
];
const IN_TEXT = { event: 20 } as const;

/** The upstream of the second model makes every response in the background. */
const MODELS = { asked: 'm', always: 'background' } as const;

let provider: Provider;
let holdfast: HoldfastProcess;
let questions = 0;

beforeAll(async () => {
  provider = await startProvider();
  const base_url = provider.url;
  holdfast = await HoldfastProcess.start({
    upstreams: { asked: { base_url }, always: { base_url, responses: { background: true } } },
    routes: Object.entries(MODELS).map(([upstream, model]) => ({ model, targets: [{ upstream }] })),
    recovery: { backoff_ms: 1, backoff_max_ms: 10 },
    checkpoint: { store: 'memory' },
  });
});
afterAll(async () => {
  await holdfast.close();
  await provider.close();
});

const bodyOf = (more: object) => ({
  model: MODELS.always,
  input: `Tides, please: ${questions++}`,
  tools: responsesTools([TIDES]),
  ...more,
});

const clientOf = (baseURL: string) => new OpenAI({ baseURL, apiKey: API_KEY, maxRetries: 0 });

/** What the client has in the end, and how the provider was asked for it. */
async function answered(
  faults: readonly (Fault | undefined)[],
  more: object,
  parts = PARTS,
  baseURL = holdfast.url,
) {
  provider.next({ parts }, faults);
  const before = provider.requests.length;
  const stream = clientOf(baseURL).responses.stream(bodyOf(more));
  const told: { readonly type: string }[] = [];
  stream.on('event', (event) => told.push(event));
  const { response } = responseAnswer(await stream.finalResponse());
  return { response, told, requests: provider.requests.slice(before) };
}

describe('an answer that its provider gives in the background', () => {
  async function ask(faults: readonly (Fault | undefined)[], more: object = {}, parts = PARTS) {
    const wanted = { model: MODELS.asked, background: true, ...more };
    const { response, told, requests } = await answered(faults, wanted, parts);
    const asked = requests.map(({ method, path, search }) => ({ method, path, search }));
    return { response, types: told.map(({ type }) => type), asked };
  }

  const post = { method: 'POST', path: '/v1/responses', search: '' };
  const get = (after: number) => ({
    method: 'GET',
    path: expect.stringMatching(/^\/v1\/responses\/resp_chatcmpl-\d+$/) as string,
    search: `?stream=true&starting_after=${after}`,
  });

  test.each([0, 1, 2, 5, 9, 20, 35, 45])('cut after event %i, it is come back to', async (event) => {
    const uncut = await ask([]);
    expect(uncut.asked).toEqual([post]);
    const cut = await ask([{ kind: 'reset', at: { event } }]);
    expect(cut.asked).toEqual(event === 0 ? [post, post] : [post, get(event - 1)]);
    // Every event came exactly once, and unchanged.
    expect(cut.types).toEqual(uncut.types);
    expect(cut.response).toEqual(uncut.response);
  });

  test('again and again, as often as it takes', async () => {
    const uncut = await ask([]);
    const cut = await ask([
      { kind: 'reset', at: IN_TEXT },
      { kind: 'clean_eof', at: { event: 7 } },
      { kind: 'status', status: 503 },
    ]);
    expect(cut.asked).toEqual([post, get(19), get(26), get(26)]);
    expect(cut.response).toEqual(uncut.response);
  });

  test('settled calls are no reason to end it early', async () => {
    const uncut = await ask([]);
    const inSecondCall = uncut.types.lastIndexOf('response.function_call_arguments.delta');
    const cut = await ask([{ kind: 'reset', at: { event: inSecondCall } }]);
    expect(cut.asked).toEqual([post, get(inSecondCall - 1)]);
    expect(cut.response).toEqual(uncut.response);
  });

  test.each<[string, Fault]>([
    ['it has expired', { kind: 'status', status: 404 }],
    ['its server does not stream it', { kind: 'json_200' }],
  ])('where %s, the rest is asked for', async (_, gone) => {
    const cut = await ask([{ kind: 'reset', at: IN_TEXT }, gone], {}, [TEXT]);
    expect(cut.asked).toEqual([post, get(19), post]);
    expect(cut.types.at(-1)).toBe('response.completed');
  });

  test('one that has failed is not come back to', async () => {
    const cut = await ask([{ kind: 'error_openai', at: IN_TEXT }], {}, [TEXT]);
    expect(cut.asked).toEqual([post, post]);
  });

  test.each([
    ['in the foreground', { background: false }],
    ['that is not kept', { store: false }],
  ])('nor is one %s', async (_, more) => {
    const cut = await ask([{ kind: 'reset', at: IN_TEXT }], more, [TEXT]);
    expect(cut.asked).toEqual([post, post]);
  });
});

describe('an upstream that is to make every response in the background', () => {
  async function ask(faults: readonly (Fault | undefined)[], more: object = {}, baseURL = holdfast.url) {
    const { requests: asked, ...result } = await answered(faults, more, PARTS, baseURL);
    return { ...result, asked, lines: asked.map(({ method, path }) => `${method} ${path}`) };
  }

  const sent = ({ asked }: { readonly asked: readonly { readonly body?: unknown }[] }) =>
    asked.map(({ body }) => {
      const { background, store } = (body ?? {}) as Record<string, unknown>;
      return { background, store };
    });
  const POST = 'POST /v1/responses';
  const GET = expect.stringMatching(/^GET \/v1\/responses\/resp_chatcmpl-\d+$/) as string;
  const CANCEL = expect.stringMatching(/^POST \/v1\/responses\/resp_chatcmpl-\d+\/cancel$/) as string;

  test('answers as if it had been made in the foreground', async () => {
    const straight = await ask([], {}, provider.url);
    const through = await ask([]);
    expect(sent(through)).toEqual([{ background: true, store: true }]);
    expect(through.lines).toEqual([POST]);
    expect(through.response).toEqual(straight.response);
    expect(JSON.stringify(through.told)).not.toMatch(/"background":true|queued/);
    // The one extra event announces the end of the queue.
    expect(through.told).toHaveLength(straight.told.length + 1);
  });

  test.each([1, 2, 3, 9, 20, 35, 45])(
    'cut after event %i, it is read on, and not asked for again',
    async (event) => {
      const uncut = await ask([]);
      const cut = await ask([{ kind: 'reset', at: { event } }]);
      expect(cut.lines).toEqual([POST, GET]);
      expect(cut.response).toEqual(uncut.response);
      expect(cut.told).toHaveLength(uncut.told.length);
      expect(JSON.stringify(cut.told)).not.toMatch(/"background":true|queued/);
    },
  );

  test('cut while a document is wanted of it, it is read on as well', async () => {
    provider.next({ parts: [TEXT] }, [{ kind: 'reset', at: IN_TEXT }]);
    const before = provider.requests.length;
    const document = await clientOf(holdfast.url).responses.create(bodyOf({}));
    const asked = provider.requests.slice(before);
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([POST, GET]);
    expect(document).toMatchObject({ output_text: TEXT.text, status: 'completed', background: false });
  });

  test('one that has failed for good is cancelled before the rest is asked for, in the foreground', async () => {
    const gone: Fault = { kind: 'json_200' };
    const cut = await ask([{ kind: 'reset', at: IN_TEXT }, gone]);
    expect(cut.lines).toHaveLength(4);
    expect(cut.lines).toEqual(expect.arrayContaining([POST, GET, CANCEL]));
    expect(sent(cut).filter(({ background }) => background !== undefined)).toHaveLength(1);
  });

  test.each([
    ['that is not to be stored', { store: false }],
    ['that is to be made in the foreground', { background: false }],
  ])('leaves a request %s as it is', async (_, more) => {
    const through = await ask([], more);
    expect(sent(through)).toEqual([{ background: undefined, store: undefined, ...more }]);
  });

  test('tells the provider when its client has gone', async () => {
    provider.next({ parts: PARTS, delay_ms: 50 });
    const before = provider.requests.length;
    const leaving = new AbortController();
    const answer = await fetch(`${holdfast.url}/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
      body: JSON.stringify(bodyOf({ stream: true })),
      signal: leaving.signal,
    });
    await answer.body?.getReader().read();
    leaving.abort();
    await expect
      .poll(() => provider.requests.slice(before).map(({ method, path }) => `${method} ${path}`), {
        timeout: 5_000,
      })
      .toEqual([POST, CANCEL]);
  });
});
