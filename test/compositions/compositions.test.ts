import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { functionTools } from '../e2e/clients/chat-client.ts';
import { HoldfastProcess } from '../e2e/holdfast-process.ts';
import { callTo, TIDES } from '../e2e/situations.ts';
import { needs } from '../needs.ts';
import { cutInCall } from '../provider/cut-in-call.ts';
import type { Fault } from '../provider/fault.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import type { RecordedRequest } from '../provider/recorded-request.ts';
import type { Part, Plan } from '../provider/script.ts';
import {
  COMPOSITIONS,
  type Entrance,
  portkey,
  portkeyHeaders,
  portkeyUrl,
  type Started,
} from './compositions.ts';
import { documented, KEY } from './page.ts';

/** Python takes long to import everything on a busy machine. */
const START_MAX_MS = 240_000;
/** LiteLLM loads parts of itself on the first requests. */
const ANSWER_MAX_MS = 60_000;

const TEXT = 'The tide comes in twice a day — “à marée haute”, 満潮 🌊 — and goes out again as often.';
const INTRODUCTION = 'Let me look at the tables.\n\n';
const CALL = callTo('call_brest', 'Brest');
const SAID: readonly Part[] = [{ text: TEXT }];
const CALLED: readonly Part[] = [{ text: INTRODUCTION }, { tool: CALL }];
const IN_TEXT = { event: 6 } as const;

/** Directly after the role: an attempt that got further would renew the budget. */
const SILENT_RESET: Fault = { kind: 'reset', at: { event: 1 } };

const inCall = (kind: 'reset' | 'clean_eof'): Plan => {
  const { faults = [], ...plan } = cutInCall('chat_completions', CALL.id, CALLED);
  return { ...plan, faults: faults.map((fault) => ({ ...fault, kind }) as Fault) };
};

const TROUBLES: Readonly<Record<string, Plan>> = {
  'text, reset': { parts: SAID, faults: [{ kind: 'reset', at: IN_TEXT }] },
  'text, early end': { parts: SAID, faults: [{ kind: 'clean_eof', at: IN_TEXT }] },
  'text, error event': { parts: SAID, faults: [{ kind: 'error_openai', at: IN_TEXT }] },
  'tool call, reset': inCall('reset'),
  'tool call, early end': inCall('clean_eof'),
  'every attempt reset': {
    parts: SAID,
    faults: [{ kind: 'reset', at: IN_TEXT }, ...Array(20).fill(SILENT_RESET)],
  },
};

const sdk = ({ url, key, headers }: Entrance): OpenAI =>
  new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0, defaultHeaders: headers });

async function ask(entrance: Entrance, model: string, content: string) {
  const completion = await sdk(entrance)
    .chat.completions.stream({
      model,
      messages: [{ role: 'user', content }],
      tools: functionTools([TIDES]),
    })
    .finalChatCompletion();
  const [choice] = completion.choices;
  const calls = choice?.message.tool_calls ?? [];
  return {
    text: choice?.message.content ?? '',
    calls: calls.map((call) => {
      if (call.type !== 'function') throw new Error(`a tool call of type ${call.type}`);
      return { id: call.id, name: call.function.name, arguments: call.function.arguments };
    }),
    finish: choice?.finish_reason,
  };
}

const post = ({ url, key, headers }: Entrance, body: object): Promise<Response> =>
  fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...{ 'idempotency-key': 'a-key', 'holdfast-resume': '1' },
      ...headers,
    },
    body: JSON.stringify({ model: 'gpt-5', stream: true, ...body }),
  });

const wholeOf = (plan: Plan) =>
  plan.parts === SAID
    ? { text: TEXT, calls: [], finish: 'stop' }
    : { text: INTRODUCTION, calls: [CALL], finish: 'tool_calls' };

interface Body {
  readonly [field: string]: unknown;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

const bodyOf = (request: RecordedRequest | undefined): Body | undefined => request?.body as Body | undefined;

/** Checks each possible cell of the table. */
const RESULTS: Readonly<
  Record<
    string,
    (answer: ReturnType<typeof ask>, plan: Plan, requests: readonly RecordedRequest[]) => unknown
  >
> = {
  async whole(answer, plan, requests) {
    expect(await answer).toEqual(wholeOf(plan));
    expect(requests).toHaveLength(2);
    const partial = bodyOf(requests[1])?.messages.find(({ role }) => role === 'assistant')?.content ?? '';
    expect(partial).not.toBe('');
    expect(wholeOf(plan).text.startsWith(partial)).toBe(true);
  },
  async 'looks whole'(answer, plan, requests) {
    const { text, calls, finish } = await answer;
    expect(finish).toBe('stop');
    expect({ text, calls }).not.toMatchObject({ text: wholeOf(plan).text, calls: wholeOf(plan).calls });
    expect(requests).toHaveLength(1);
  },
  async 'an error'(answer, _, requests) {
    await expect(answer).rejects.toBeInstanceOf(OpenAI.APIError);
    expect(requests.length).toBeGreaterThan(1);
  },
};

test('the table of the page has these rows and columns', () => {
  const table = documented();
  expect(new Set(table.keys())).toEqual(new Set(COMPOSITIONS.flatMap(({ rows }) => Object.keys(rows))));
  for (const row of table.values()) expect([...row.keys()]).toEqual(Object.keys(TROUBLES));
});

describe.each(COMPOSITIONS.map((each) => [Object.keys(each.rows).join(', '), each] as const))(
  '%s',
  (_, { rows, gateway, answers, passesFields, start }) => {
    const ends = new AsyncDisposableStack();
    const plans = new Map<string, Plan>();
    let provider: Provider;
    let started: Started;

    beforeAll(async () => {
      if ('missing' in gateway) return;
      provider = await startProvider();
      ends.defer(() => provider.close());
      provider.respond((request) => plans.get(bodyOf(request)?.messages[0]?.content ?? ''));
      started = await start(provider.url, ends);
    }, START_MAX_MS);
    afterAll(() => ends.disposeAsync(), START_MAX_MS);

    const cases = Object.entries(rows).flatMap(([row, model]) =>
      Object.entries(TROUBLES).map(([trouble, plan]) => ({ row, model, trouble, plan })),
    );

    test.each(cases)(
      '$row: $trouble',
      { timeout: ANSWER_MAX_MS, ...needs(gateway) },
      async ({ row, model, trouble, plan }) => {
        const question = `${row}: ${trouble}`;
        const prefill = model === 'llama-4' ? 'vllm' : 'openai';
        plans.set(question, { ...plan, continuation: 'obedient', prefill });
        const before = provider.requests.length;
        const answer = ask(started.front, model, question);
        await answer.catch(() => {});
        const result = documented().get(row)?.get(trouble) ?? '';
        expect(Object.keys(RESULTS)).toContain(result);
        await RESULTS[result]?.(answer, plan, provider.requests.slice(before));
      },
    );

    if (answers)
      test('what the application has of Holdfast', {
        timeout: ANSWER_MAX_MS,
        ...needs(gateway),
      }, async () => {
        const question = 'What do you have of Holdfast?';
        plans.set(question, { parts: SAID });
        const response = await post(started.gateway, { messages: [{ role: 'user', content: question }] });
        expect(response.headers.get(answers.run_id)).toMatch(/^run_/);
        expect(/^id: run_/m.test(await response.text())).toBe(answers.resumable);
      });

    if (passesFields !== undefined)
      test('what the provider has of a prefill', { timeout: ANSWER_MAX_MS, ...needs(gateway) }, async () => {
        const question = 'What do you have of a prefill?';
        const partial = { role: 'assistant', content: 'The tide', prefix: true };
        const fields = { continue_final_message: true, add_generation_prompt: false };
        plans.set(question, { parts: SAID });
        const messages = [{ role: 'user', content: question }, partial];
        await (await post(started.gateway, { messages, ...fields })).text();
        const request = provider.requests.at(-1);
        expect(bodyOf(request)?.messages).toEqual(messages);
        expect(bodyOf(request)).toMatchObject(passesFields ? fields : {});
        expect(Object.keys(bodyOf(request) ?? {}).includes('continue_final_message')).toBe(passesFields);
        expect(request?.headers).not.toHaveProperty('idempotency-key');
      });
  },
);

test.each([
  ['openai', true],
  ['together-ai', false],
])(
  'Portkey: an answer with a comment of its provider %s is whole: %s',
  { timeout: ANSWER_MAX_MS, ...needs(portkey) },
  async (name, isWhole) => {
    await using ends = new AsyncDisposableStack();
    const provider = await startProvider();
    ends.defer(() => provider.close());
    const url = await portkeyUrl(ends);
    const comments: Fault = { kind: 'comments', at: IN_TEXT, every_ms: 50, for_ms: 300 };
    provider.respond(() => ({ parts: SAID, faults: [comments] }));
    const entrance = { url, key: KEY, headers: portkeyHeaders(name, provider.url) };
    const response = await post(entrance, { messages: [{ role: 'user', content: 'What is the tide?' }] });
    expect((await response.text()).includes('[DONE]')).toBe(isWhole);
  },
);

test('Portkey drops the field of the dialect vllm: the model answers anew, and its beginning is not shown twice', {
  timeout: ANSWER_MAX_MS,
  ...needs(portkey),
}, async () => {
  await using ends = new AsyncDisposableStack();
  const provider = await startProvider();
  ends.defer(() => provider.close());
  provider.respond(() => ({
    parts: SAID,
    faults: [{ kind: 'reset', at: { event: 14 } }],
    continuation: 'obedient',
    prefill: 'vllm',
  }));
  const holdfast = await HoldfastProcess.start({
    upstreams: {
      portkey: {
        base_url: await portkeyUrl(ends),
        dialect: 'vllm',
        headers: portkeyHeaders('openai', provider.url),
      },
    },
  });
  ends.defer(() => holdfast.close());
  const answer = await ask({ url: holdfast.url, key: KEY }, 'gpt-5', 'What is the tide?');
  expect(answer).toEqual({ text: TEXT, calls: [], finish: 'stop' });
  expect(provider.requests.map((request) => bodyOf(request)?.messages.at(-1)?.role)).toEqual([
    'user',
    'assistant',
    'user',
  ]);
});
