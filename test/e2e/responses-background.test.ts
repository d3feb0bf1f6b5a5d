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

describe('an answer that its provider gives in the background', () => {
  let provider: Provider;
  let holdfast: HoldfastProcess;
  let questions = 0;

  beforeAll(async () => {
    provider = await startProvider();
    holdfast = await HoldfastProcess.start({
      upstreams: { default: { base_url: provider.url } },
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: 'memory' },
    });
  });
  afterAll(async () => {
    await holdfast.close();
    await provider.close();
  });

  /** What the client has in the end, and how the provider was asked for it. */
  async function ask(faults: readonly (Fault | undefined)[], more: object = {}, parts = PARTS) {
    const client = new OpenAI({ baseURL: holdfast.url, apiKey: API_KEY, maxRetries: 0 });
    provider.next({ parts }, faults);
    const before = provider.requests.length;
    const request = {
      model: 'm',
      input: `Tides, please: ${questions++}`,
      tools: responsesTools([TIDES]),
      background: true,
      ...more,
    };
    const types: string[] = [];
    const stream = client.responses.stream(request);
    stream.on('event', ({ type }) => types.push(type));
    const { response } = responseAnswer(await stream.finalResponse());
    const asked = provider.requests
      .slice(before)
      .map(({ method, path, search }) => ({ method, path, search }));
    return { response, types, asked };
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
    // Every event of it has come once, and as it was.
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
