import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { Part } from '../provider/script.ts';
import { API_KEY, functionTools } from './clients/chat-client.ts';
import { HoldfastProcess } from './holdfast-process.ts';
import { callTo, TIDES } from './situations.ts';

const TEXT = { text: 'The tide comes in twice a day, and what holds fast is there when it is out again.' };
const PARTS: readonly Part[] = [
  { reasoning: 'They ask about the sea.' },
  TEXT,
  { tool: callTo('call_brest', 'Brest') },
  { tool: callTo('call_lorient', 'Lorient') },
];

describe('an answer that llama.cpp keeps', () => {
  let provider: Provider;
  let holdfast: HoldfastProcess;
  let questions = 0;

  const start = (drain_ms: number) =>
    HoldfastProcess.start({
      upstreams: { default: { base_url: provider.url, dialect: 'llamacpp' } },
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: 'memory' },
      limits: { drain_ms },
    });

  beforeAll(async () => {
    provider = await startProvider();
    holdfast = await start(25_000);
  });
  afterAll(async () => {
    await holdfast.close();
    await provider.close();
  });

  const ask = ({ url } = holdfast, delay_ms = 0, faults: readonly Fault[] = []) => {
    const client = new OpenAI({ baseURL: url, apiKey: API_KEY, maxRetries: 0 });
    provider.next({ parts: PARTS, keeps: { as: 'llamacpp' }, delay_ms }, faults);
    return client.chat.completions.stream({
      model: 'm',
      messages: [{ role: 'user', content: `Tides, please: ${questions++}` }],
      stream_options: { include_usage: true },
      tools: functionTools([TIDES]),
    });
  };

  test('is, for an SDK, the one that was never cut', async () => {
    const uncut = await ask().finalChatCompletion();
    const before = provider.requests.length;
    const [generation] = provider.generations;
    const size = generation?.size ?? 0;
    const cut = await ask(holdfast, 0, [
      { kind: 'reset', at: { byte: Math.floor(size * 0.3) } },
      // A call is under way by then.
      { kind: 'fin_in_chunk', at: { byte: Math.floor(size * 0.4) } },
    ]).finalChatCompletion();
    expect(cut.choices).toEqual(uncut.choices);
    expect(cut.usage).toEqual(uncut.usage);
    const asked = provider.requests.slice(before).map(({ method }) => method);
    expect(asked).toEqual(['POST', 'GET', 'GET']);
  });

  test('is made no further when the client leaves', async () => {
    const stream = ask(holdfast, 30);
    stream.once('content', () => stream.abort());
    await expect(stream.done()).rejects.toThrow();
    const generation = provider.generations.at(-1);
    await generation?.over();
    expect(generation?.isStopped).toBe(true);
  });

  test('is made no further when the replica shuts down', async () => {
    const leaving = await start(1);
    const stream = ask(leaving, 50);
    const ended = expect(stream.done()).rejects.toThrow();
    await stream.emitted('content');
    expect(await leaving.stop()).toEqual({ code: 0, signal: null });
    // The replica told the provider to stop before it exited.
    expect(provider.generations.at(-1)?.isStopped).toBe(true);
    await ended;
    await leaving.close();
  });
});
