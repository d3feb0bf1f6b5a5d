import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { utterance } from '../provider/continuation.ts';
import { expectedAnswer } from '../provider/expected.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { Plan } from '../provider/script.ts';
import { responsesEvents } from '../provider/wires/responses-events.ts';
import { responsesRequest } from '../provider/wires/responses-request.ts';
import { readResponses } from '../simulation/responses-reading.ts';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { API_KEY } from './clients/chat-client.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { openaiResponses, openaiResponsesHelper, responsesTools } from './clients/openai-responses.ts';
import { HoldfastProcess } from './holdfast-process.ts';
import { pythonEnvironment } from './python/environment.ts';
import { callTo, TIDES } from './situations.ts';

const PARTS: Plan['parts'] = [
  { reasoning: 'They ask about the sea.' },
  { text: 'The tide comes in twice a day — “à marée haute”, 満潮 🌊 — and goes out again.' },
  { tool: callTo('call_brest', 'Brest') },
  { reasoning: 'And one more.', field: 'reasoning' },
  { tool: callTo('call_lorient', 'Lorient') },
];
const python = await pythonEnvironment();

describe('/v1/responses', () => {
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

  const send = (path: string, body?: object, more: RequestInit = {}) =>
    fetch(`${holdfast.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
      ...(body && { body: JSON.stringify(body) }),
      ...more,
    });

  const ask = () => ({ model: 'm', input: `question ${questions++}`, stream: true });

  test('a healthy stream passes byte for byte', async () => {
    provider.next({ parts: PARTS });
    const asked = ask();
    const body = await (await send('/responses', asked)).text();
    const last = provider.requests.at(-1);
    const request = responsesRequest(asked);
    if (!last || !request) throw new Error('the provider was not asked');
    const created = Math.floor(last.at_ms / 1000);
    const envelope = { id: `chatcmpl-${provider.requests.length}`, model: 'm', created };
    const said = utterance({ parts: PARTS }, { kind: 'original' });
    const { usage } = expectedAnswer({ parts: PARTS }, request);
    expect(body).toBe(responsesEvents(said, envelope, usage).events.join(''));
  });

  test('without a stream, the answer is one response', async () => {
    provider.next({ parts: [{ text: 'Twice a day.' }] });
    const client = new OpenAI({ baseURL: holdfast.url, apiKey: API_KEY, maxRetries: 0 });
    const { model, input } = ask();
    const response = await client.responses.create({ model, input });
    expect(response.output_text).toBe('Twice a day.');
    expect(provider.requests.at(-1)?.body).toEqual({ model, input, stream: true });
  });

  test.each(['GET', 'DELETE'])('%s of a response is the provider’s affair', async (method) => {
    const response = await send('/responses/resp_x?stream=true', undefined, { method });
    expect(response.status).toBe(404);
    expect(provider.requests.at(-1)).toMatchObject({
      method,
      path: '/v1/responses/resp_x',
      search: '?stream=true',
    });
  });

  test('and so is to cancel it', async () => {
    await send('/responses/resp_x/cancel', {});
    expect(provider.requests.at(-1)).toMatchObject({ method: 'POST', path: '/v1/responses/resp_x/cancel' });
  });

  describe.each(['chunks', 'comments'])('with Holdfast-Events: %s', (events) => {
    const fetchWith: typeof globalThis.fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('holdfast-events', events);
      return fetch(input, { ...init, headers });
    };
    const within = { event: 10 } as const;
    const plan: Plan = {
      parts: [
        { reasoning: 'Kelp.' },
        { text: 'The tide comes in twice a day.' },
        { tool: callTo('call_brest', 'Brest') },
      ],
      faults: [{ kind: 'reset', at: within }],
    };

    test('recoveries can be seen, and what is cut is cancelled', async () => {
      provider.next({ parts: [{ tool: callTo('call_brest', 'Brest') }] }, [
        { kind: 'reset', at: { event: 5 } },
      ]);
      const response = await fetchWith(`${holdfast.url}/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
        body: JSON.stringify({ ...ask(), tools: responsesTools([TIDES]) }),
      });
      const reading = readResponses(await response.text(), { live: true });
      expect(reading).toMatchObject({ violations: [], done: true, finish: 'tool_calls' });
      expect(reading.advisories.map(({ type }) => type)).toEqual(['ToolCallCancel', 'Recovered']);
      expect(reading.toolCalls).toHaveLength(1);
    });

    test.each([
      ['openai, responses.create()', openaiResponses],
      ['openai, responses.stream()', openaiResponsesHelper],
      ['ai with @ai-sdk/openai', aiSdkResponses],
    ])('%s minds none of it', async (_, connect) => {
      provider.next(
        plan,
        plan.faults?.map((fault) => fault ?? undefined),
      );
      const client = connect(holdfast.url, fetchWith);
      const answer = await client.ask({ model: 'm', content: `question ${questions++}`, tools: [TIDES] });
      expect(answer).toMatchObject({
        text: 'The tide comes in twice a day.',
        toolCalls: [{ id: 'call_brest' }],
      });
    });

    test('nor does openai for Python', needs(python), async () => {
      if ('missing' in python) return;
      for (const manner of ['events', 'response_helper'] as const) {
        provider.next(
          plan,
          plan.faults?.map((fault) => fault ?? undefined),
        );
        const client = new OpenaiPython(python.interpreter, manner, holdfast.url);
        const parameters = { extra_headers: { 'Holdfast-Events': events } };
        const content = `question ${questions++}`;
        const answer = await client.ask({ model: 'm', content, tools: [TIDES], parameters });
        await client.close();
        expect(answer).toMatchObject({
          text: 'The tide comes in twice a day.',
          toolCalls: [{ id: 'call_brest' }],
        });
      }
    });
  });
});
