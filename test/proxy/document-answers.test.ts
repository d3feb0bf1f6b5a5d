import type { IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { startProvider as startPeer } from '../http-peer.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { type Replica, startReplica } from '../replica.ts';

const CREDENTIAL = { authorization: 'Bearer client-key' };
const OTHER_CREDENTIAL = { authorization: 'Bearer other-key' };
const TEXT = { text: 'The tide comes in twice a day, and goes out again.' };
const CALL = { tool: { id: 'call_a', name: 'tides', arguments: '{"port":"Brest"}' } };
const IN_TEXT = { event: 6 } as const;
const NAMES = Object.keys(WIRES) as WireName[];

/** The same question in the form of each wire. */
const REQUESTS: Readonly<Record<WireName, object>> = {
  chat_completions: { model: 'm', messages: [{ role: 'user', content: 'Tell me.' }] },
  completions: { model: 'm', prompt: `Tell me.${PROMPT_END}` },
  messages: { model: 'm', max_tokens: 1000, messages: [{ role: 'user', content: 'Tell me.' }] },
  responses: { model: 'm', input: 'Tell me.' },
};
const CHAT = REQUESTS.chat_completions;

async function replicaAt(base_url: string, route: object = {}, tree: object = {}): Promise<Replica> {
  const transport = createUndiciTransport();
  const targets = [{ upstream: 'provider' }];
  const replica = await startReplica(
    {
      upstreams: { provider: { base_url } },
      routes: [{ model: '*', targets, ...route }],
      recovery: { backoff_ms: 1, backoff_max_ms: 5, max_attempts: 3 },
      ...tree,
    },
    { relay, transport },
  );
  onTestFinished(() => transport.close());
  return replica;
}

const post = (
  url: string,
  wire: WireName,
  body: object,
  headers: Record<string, string> = CREDENTIAL,
  init = {},
) =>
  fetch(`${url}${WIRES[wire].path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...init,
  });
const ask = (
  { api }: Replica,
  body: object = CHAT,
  headers?: Record<string, string>,
  wire: WireName = 'chat_completions',
) => post(`${api}/v1`, wire, body, headers);

/** Answers of the test provider differ in their numbers and times. */
const comparable = async (response: Response): Promise<unknown> =>
  JSON.parse(
    (await response.text())
      .replaceAll(/chatcmpl-\d+/g, 'chatcmpl-n')
      .replaceAll(/"(created|created_at)":\d+/g, '"$1":0'),
  );

describe('a request that asks for no stream', () => {
  let provider: Provider;
  beforeEach(async () => {
    provider = await startProvider();
  });
  afterEach(() => provider.close());
  const streamed = () => provider.requests.map(({ body }) => (body as { stream?: boolean }).stream);

  describe.each(NAMES)('%s', (wire) => {
    const parts = wire === 'completions' ? [TEXT] : [TEXT, CALL];
    const body = REQUESTS[wire];

    test('is answered with what the provider answers it with', async () => {
      const replica = await replicaAt(provider.url);
      provider.next({ parts });
      const direct = await post(provider.url, wire, body);
      provider.next({ parts });
      const response = await ask(replica, body, CREDENTIAL, wire);
      expect(response.status).toBe(200);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'private, no-store',
        'holdfast-run-id': expect.stringMatching(/^run_/) as string,
        'holdfast-attempts': '1',
        'holdfast-upstream': 'provider',
      });
      expect(await comparable(response)).toEqual(await comparable(direct));
      expect(streamed()).toEqual([undefined, true]);
    });

    test('is recovered', async () => {
      const replica = await replicaAt(provider.url);
      provider.next({ parts });
      const direct = await post(provider.url, wire, body);
      provider.next({ parts, prefill: 'any' }, [{ kind: 'reset', at: IN_TEXT }]);
      const response = await ask(replica, body, CREDENTIAL, wire);
      expect(response.headers.get('holdfast-attempts')).toBe('2');
      const [whole, uncut] = [await comparable(response), await comparable(direct)];
      expect(withoutUsage(whole)).toEqual(withoutUsage(uncut));
    });

    test('that cannot be answered is told in the shape of the wire', async () => {
      const replica = await replicaAt(provider.url, {}, { recovery: { max_attempts: 1 } });
      provider.next({ parts: [TEXT] }, [{ kind: 'reset', at: IN_TEXT }]);
      const response = await ask(replica, body, CREDENTIAL, wire);
      expect(response.status).toBe(502);
      expect(response.headers.get('holdfast-run-id')).toMatch(/^run_/);
      const { error, ...rest } = (await response.json()) as { error: Record<string, unknown> };
      expect(rest).toEqual(wire === 'messages' ? { type: 'error' } : {});
      expect(error).toMatchObject({
        type: wire === 'messages' ? 'api_error' : 'stream_interrupted',
        code: 'stream_interrupted',
        holdfast: {
          run_id: response.headers.get('holdfast-run-id'),
          cause: 'connection_reset',
          retryable: true,
          partial: true,
          partial_text: expect.stringMatching(/^The tide/) as string,
        },
      });
    });

    test('that the provider refuses has the provider’s own answer', async () => {
      const replica = await replicaAt(provider.url);
      const refusal = { error: { message: 'No such thing.', type: 'invalid_request_error' }, ours: 1 };
      provider.next({ parts }, [{ kind: 'status', status: 422, body: refusal }]);
      const response = await ask(replica, body, CREDENTIAL, wire);
      expect([response.status, await response.json()]).toEqual([422, refusal]);
      expect(provider.requests).toHaveLength(1);
    });

    test('of a route that passes such requests through goes through as it came', async () => {
      const replica = await replicaAt(provider.url, { non_streaming: 'pass_through' });
      provider.next({ parts });
      const response = await ask(replica, body, CREDENTIAL, wire);
      expect(response.headers.has('holdfast-run-id')).toBe(false);
      expect(response.status).toBe(200);
      expect(provider.requests.map(({ body: sent }) => sent)).toEqual([body]);
    });
  });

  test.each<[string, WireName, object]>([
    ['several choices', 'chat_completions', { n: 2 }],
    ['log probabilities', 'chat_completions', { logprobs: true }],
    ['audio', 'chat_completions', { modalities: ['text', 'audio'] }],
    ['options of a stream that are none', 'chat_completions', { stream_options: 1 }],
    ['messages that are none', 'chat_completions', { messages: [] }],
    ['something else than a flag', 'chat_completions', { stream: 'no' }],
    ['the best of several', 'completions', { best_of: 2 }],
    ['tokens', 'completions', { prompt: [1, 2] }],
    ['the background', 'responses', { background: true }],
    ['log probabilities of a response', 'responses', { top_logprobs: 2 }],
  ])('with %s is passed through', async (_, wire, more) => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT] });
    const body = { ...REQUESTS[wire], ...more };
    const response = await ask(replica, body, CREDENTIAL, wire);
    await response.text();
    expect(response.headers.has('holdfast-run-id')).toBe(false);
    expect(provider.requests.map(({ body: sent }) => sent)).toEqual([body]);
  });

  test('with a query, which a run would not take along, is passed through', async () => {
    const replica = await replicaAt(provider.url);
    for (const query of ['?api-version=preview', '?beta=true']) {
      provider.next({ parts: [TEXT] });
      await fetch(`${replica.api}/v1/messages${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...CREDENTIAL },
        body: JSON.stringify(REQUESTS.messages),
      });
    }
    expect(provider.requests.map(({ search }) => search)).toEqual(['?api-version=preview', '']);
    expect(streamed()).toEqual([undefined, true]);
  });

  test.each([
    ['none of the fields', { ...CHAT, seed: 7 }, { stream: true, stream_options: { include_usage: true } }],
    [
      'a stream that is off',
      { stream: false, ...CHAT },
      { stream: true, stream_options: { include_usage: true } },
    ],
    [
      'options',
      { ...CHAT, stream: null, stream_options: { include_obfuscation: false } },
      { stream: true, stream_options: { include_obfuscation: false, include_usage: true } },
    ],
  ])('with %s is asked for as a stream, with its usage', async (_, body, added) => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT] });
    expect(await (await ask(replica, body)).json()).toHaveProperty('usage.total_tokens');
    expect(provider.requests[0]?.body).toEqual({ ...body, ...added });
  });

  test('gets nothing of what only a stream could be told', async () => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [CALL, { tool: { ...CALL.tool, id: 'call_b' } }], prefill: 'any' }, [
      { kind: 'reset', at: { event: 9 } },
    ]);
    const response = await ask(replica, CHAT, { ...CREDENTIAL, 'holdfast-events': 'chunks' });
    expect(await response.json()).toMatchObject({
      choices: [{ finish_reason: 'tool_calls', message: { tool_calls: [{ id: 'call_a' }] } }],
    });
  });

  test('is sent again with its key, and answered from the store', async () => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT, CALL] });
    const headers = { ...CREDENTIAL, 'idempotency-key': 'key-1' };
    const [first, second] = [await ask(replica, CHAT, headers), await ask(replica, CHAT, headers)];
    expect(second.headers.get('holdfast-run-id')).toBe(first.headers.get('holdfast-run-id'));
    expect(await second.json()).toEqual(await first.json());
    expect(provider.requests).toHaveLength(1);
    const other = await ask(replica, { ...CHAT, seed: 1 }, headers);
    expect(other.status).toBe(422);
  });

  test('is answered from its run, whatever its client says that it has', async () => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT] });
    const first = await ask(replica, CHAT, { ...CREDENTIAL, 'holdfast-resume': '1' });
    const run = first.headers.get('holdfast-run-id') ?? '';
    expect(first.headers.get('location')).toBe(`/holdfast/v1/runs/${run}/stream`);
    const whole = await first.json();
    for (const back of [{ 'holdfast-run-id': run }, { 'last-event-id': `${run}.1.3` }])
      expect(await (await ask(replica, CHAT, { ...CREDENTIAL, ...back })).json()).toEqual(whole);
    expect((await ask(replica, { ...CHAT, seed: 1 }, { ...CREDENTIAL, 'holdfast-run-id': run })).status).toBe(
      422,
    );
  });

  test('does not get the run of a stream in which calls may be taken back', async () => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT] });
    const asStream = { stream: true, stream_options: { include_usage: true }, ...CHAT };
    const first = await ask(replica, asStream, { ...CREDENTIAL, 'holdfast-events': 'chunks' });
    await first.text();
    const headers = { ...CREDENTIAL, 'holdfast-run-id': first.headers.get('holdfast-run-id') ?? '' };
    expect((await ask(replica, CHAT, headers)).status).toBe(422);
  });

  test('is waited for no longer than is configured, although it is unknown whether its model thinks', async () => {
    const clocks = { first_byte_ms: 200, first_token_ms: 200, idle_ms: 200, progress_reasoning_ms: 60_000 };
    const replica = await replicaAt(provider.url, {}, { clocks });
    provider.next({ parts: [TEXT] }, [{ kind: 'silence', at: { event: 0 }, for_ms: 1000 }]);
    const response = await ask(replica);
    expect([response.status, response.headers.get('holdfast-attempts')]).toEqual([200, '2']);
    expect(provider.requests).toHaveLength(2);
  });

  test('takes its upstream request with it when its client leaves', async () => {
    const replica = await replicaAt(provider.url);
    provider.next({ parts: [TEXT] }, [{ kind: 'silence', at: IN_TEXT }]);
    const leave = new AbortController();
    const answered = post(`${replica.api}/v1`, 'chat_completions', CHAT, CREDENTIAL, {
      signal: leave.signal,
    });
    await provider.waitForRequests(1);
    leave.abort();
    await expect(answered).rejects.toThrow('aborted');
    await provider.waitForAborts(1);
    await vi.waitFor(async () => {
      const metrics = await replica.metrics.registry.metrics();
      expect(metrics).toContain('holdfast_client_disconnects_total 1');
      expect(metrics).toContain('outcome="cancelled"} 1');
    });
  });

  test('is told when its run is cancelled, and when its replica shuts down', async () => {
    const replica = await replicaAt(provider.url, {}, { limits: { drain_ms: 1 } });
    const stalled: Plan = { parts: [TEXT], faults: [{ kind: 'silence', at: IN_TEXT }] };
    for (const _ of [1, 2]) provider.next(stalled);
    const headers = { ...CREDENTIAL, 'idempotency-key': 'key-1' };
    const cancelled = ask(replica, CHAT, headers);
    const handedOver = ask(replica, { ...CHAT, messages: [{ role: 'user', content: 'Tell me more.' }] });
    await provider.waitForRequests(2);
    await vi.waitFor(async () => {
      const gone = await fetch(`${replica.api}/holdfast/v1/runs`, { method: 'DELETE', headers });
      expect(gone.status).toBe(200);
    });
    expect((await cancelled).status).toBe(410);
    await replica.server.close();
    const response = await handedOver;
    expect([response.status, response.headers.get('retry-after-ms')]).toEqual([503, '1000']);
  });

  test('of which there would be too much besides the answer is refused', async () => {
    const padding = 'x'.repeat(1500);
    const root = await startPeer(async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let count = 0; count < 3 && !response.destroyed; count++) {
        const choices = [
          { index: 0, delta: { content: 'A', audio_of_somebody: [padding] }, finish_reason: null },
        ];
        response.write(`data: ${JSON.stringify({ id: 'a', created: 1, model: 'm', choices })}\n\n`);
      }
    });
    const replica = await replicaAt(`${root}/v1`, {}, { limits: { run_bytes: 4096 } });
    const response = await ask(replica);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'run_too_large' } });
  });
});

const withoutUsage = (document: unknown): unknown =>
  JSON.parse(
    JSON.stringify(document, (key, value: unknown) =>
      /^(usage|encrypted_content)$/.test(key) ? undefined : value,
    ),
  );

interface Asked {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
}
type Answer = readonly [status: number, body: unknown];

const ANSWER = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Kelp.' }, finish_reason: 'stop' }],
};
const UNVERIFIED = {
  error: {
    message: 'Your organization must be verified to stream this model. Please go to: https://example.com',
    type: 'invalid_request_error',
    param: 'stream',
    code: 'unsupported_value',
  },
};

/** A provider that answers in JSON, even if it's asked for a stream. */
async function jsonProvider(answer: (asked: Asked) => Answer) {
  const asked: Asked[] = [];
  const root = await startPeer(async (request, response) => {
    const one = { body: (await json(request)) as Asked['body'], headers: request.headers };
    asked.push(one);
    const [status, body] = answer(one);
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_1' });
    response.end(JSON.stringify(body));
  });
  return { url: `${root}/v1`, asked, streamed: () => asked.map(({ body }) => body.stream === true) };
}

describe('a provider that refuses to stream', () => {
  test.each<[string, number, unknown]>([
    ['OpenAI', 400, UNVERIFIED],
    [
      'OpenRouter',
      400,
      { error: { message: 'Provider returned error', metadata: { raw: JSON.stringify(UNVERIFIED) } } },
    ],
    [
      'another one',
      422,
      { detail: [{ loc: ['body', 'stream_options'], msg: 'extra fields not permitted' }] },
    ],
  ])('as %s does, is asked as the client has asked, and at once from then on', async (_, status, refusal) => {
    const { url, asked, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [status, refusal] : [200, ANSWER],
    );
    const replica = await replicaAt(url);
    for (const _ of [1, 2]) {
      const response = await ask(replica, { ...CHAT, stream: false });
      expect([response.status, response.headers.get('x-request-id')]).toEqual([200, 'req_1']);
      expect(await response.json()).toEqual(ANSWER);
    }
    expect(streamed()).toEqual([true, false, false]);
    expect(asked[1]?.body).toEqual({ ...CHAT, stream: false });
  });

  test('is asked under the name that the route has for the model', async () => {
    const { url, asked } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const replica = await replicaAt(url, { targets: [{ upstream: 'provider', model: 'other' }] });
    for (const _ of [1, 2]) expect((await ask(replica)).status).toBe(200);
    expect(asked.map(({ body }) => [body.model, body.stream])).toEqual([
      ['other', true],
      ['other', undefined],
      ['other', undefined],
    ]);
  });

  test('is asked as the client has asked, after another target has failed', async () => {
    const busy = await jsonProvider(() => [503, { error: { message: 'busy' } }]);
    const { url, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const upstreams = { provider: { base_url: busy.url }, other: { base_url: url } };
    const targets = [{ upstream: 'provider' }, { upstream: 'other' }];
    const recovery = { backoff_ms: 1, same_target_retries: 0 };
    const response = await ask(await replicaAt(url, { targets }, { upstreams, recovery }));
    expect(await response.json()).toEqual(ANSWER);
    expect([busy.streamed(), streamed()]).toEqual([[true], [true, false]]);
  });

  test('to one client may stream for another, and for another model', async () => {
    const { url, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const replica = await replicaAt(url);
    await ask(replica);
    await ask(replica, CHAT, OTHER_CREDENTIAL);
    await ask(replica, { ...CHAT, model: 'other' });
    await ask(replica);
    expect(streamed()).toEqual([true, false, true, false, true, false, false]);
  });

  test('is known to all clients where the key is the operator’s', async () => {
    const { url, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const replica = await replicaAt(url, {}, { upstreams: { provider: { base_url: url, api_key: 'sk' } } });
    await ask(replica);
    await ask(replica, CHAT, OTHER_CREDENTIAL);
    expect(streamed()).toEqual([true, false, false]);
  });

  test('and the request without a stream as well, is taken at its word about that, and asked again the next time', async () => {
    const refusal = { error: { message: 'Unknown parameter: streamed', type: 'invalid_request_error' } };
    const { url, streamed } = await jsonProvider(({ body }) => [400, { ...refusal, again: !body.stream }]);
    const replica = await replicaAt(url);
    for (const _ of [1, 2]) {
      const response = await ask(replica);
      expect([response.status, await response.json()]).toEqual([400, { ...refusal, again: true }]);
    }
    expect(streamed()).toEqual([true, false, true, false]);
  });

  test('is asked again for a stream if no client waited for its answer without one', async () => {
    const asked: boolean[] = [];
    const held = Promise.withResolvers<void>();
    const abandoned = Promise.withResolvers<void>();
    const root = await startPeer(async (request, response) => {
      const { stream } = (await json(request)) as { stream?: boolean };
      asked.push(stream === true);
      response.once('close', () => asked.length === 2 && abandoned.resolve());
      if (stream) response.writeHead(400).end(JSON.stringify(UNVERIFIED));
      else if (asked.length === 2) held.resolve();
      else response.writeHead(200).end(JSON.stringify(ANSWER));
    });
    const replica = await replicaAt(`${root}/v1`);
    const leave = new AbortController();
    const init = { signal: leave.signal };
    const left = post(`${replica.api}/v1`, 'chat_completions', CHAT, CREDENTIAL, init);
    await held.promise;
    leave.abort();
    await expect(left).rejects.toThrow('aborted');
    await abandoned.promise;
    expect((await ask(replica)).status).toBe(200);
    expect(asked).toEqual([true, false, true, false]);
  });

  test('has its answers for the same key, and asks for no stream the second time', async () => {
    const { url, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const replica = await replicaAt(url);
    const headers = { ...CREDENTIAL, 'idempotency-key': 'key-1' };
    for (const _ of [1, 2]) expect(await (await ask(replica, CHAT, headers)).json()).toEqual(ANSWER);
    expect(streamed()).toEqual([true, false, false]);
  });

  test('has its client’s own stream refused', async () => {
    const { url, streamed } = await jsonProvider(({ body }) =>
      body.stream ? [400, UNVERIFIED] : [200, ANSWER],
    );
    const replica = await replicaAt(url);
    const response = await ask(replica, { ...CHAT, stream: true });
    expect([response.status, await response.json()]).toEqual([400, UNVERIFIED]);
    expect(streamed()).toEqual([true]);
  });

  test.each<[number, unknown]>([
    [400, { error: { message: 'The upstream says no.', type: 'invalid_request_error' } }],
    [401, { error: { message: 'No stream without a key.', type: 'authentication_error' } }],
  ])('is not one that refuses with %i for another reason', async (status, refusal) => {
    const { url, streamed } = await jsonProvider(() => [status, refusal]);
    const replica = await replicaAt(url);
    const response = await ask(replica);
    expect([response.status, await response.json()]).toEqual([status, refusal]);
    expect(streamed()).toEqual([true]);
  });
});

describe('a provider that answers with a document all the same', () => {
  test('has it handed on as it came, and is asked for one from then on', async () => {
    const { url, streamed } = await jsonProvider(() => [200, ANSWER]);
    const replica = await replicaAt(url);
    for (const _ of [1, 2]) {
      const response = await ask(replica);
      expect(response.headers.get('x-request-id')).toBe('req_1');
      expect(await response.json()).toEqual(ANSWER);
    }
    expect(streamed()).toEqual([true, false]);
    expect(await replica.metrics.registry.metrics()).toContain('outcome="complete"} 1');
  });

  test('may take some megabytes for it', async () => {
    const content = 'kelp '.repeat(500_000);
    const long = { ...ANSWER, choices: [{ ...ANSWER.choices[0], message: { role: 'assistant', content } }] };
    const { url } = await jsonProvider(() => [200, long]);
    expect(await (await ask(await replicaAt(url))).json()).toEqual(long);
  });

  test.each([
    ['an error', { error: { message: 'busy', type: 'server_error' } }],
    [
      'a failure dressed as an answer',
      { ...ANSWER, choices: [{ ...ANSWER.choices[0], finish_reason: 'abort' }] },
    ],
    ['something else', { hello: 'world' }],
  ])('but with %s is asked again', async (_, nonsense) => {
    let requests = 0;
    const { url, streamed } = await jsonProvider(() => [200, requests++ === 0 ? nonsense : ANSWER]);
    const replica = await replicaAt(url);
    expect(await (await ask(replica)).json()).toEqual(ANSWER);
    expect(streamed()).toEqual([true, true]);
  });
});
