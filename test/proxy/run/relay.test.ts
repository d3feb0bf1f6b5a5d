import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { ObservedEnd, RunObservation } from '../../../src/proxy/run/context/run-observer.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import type { ChatRequest } from '../../../src/proxy/wires/common/request.ts';
import { CapabilityMemory } from '../../../src/proxy/wires/dialects/capability-memory.ts';
import type { Fault } from '../../provider/fault.ts';
import type { Part, Plan } from '../../provider/script.ts';
import { TOOLS } from '../../simulation/arbitraries.ts';
import { Fleet } from '../../simulation/fleet.ts';
import { RecordingClient } from '../../simulation/recording-client.ts';
import { DEFAULTS, OWNER, RUN, runOf, simulate } from '../../simulation/simulate.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const forecast = (id: string) => ({ id, name: 'forecast', arguments: '{"city":"Paris"}' });
const reset = (event: number): Fault => ({ kind: 'reset', at: { event } });
const cutText = (...faults: Plan['faults'] & object): Plan => ({ parts: [{ text: TEXT }], faults });

describe('a request for the rest (R1)', () => {
  test('appends the partial answer and a user turn, and changes nothing else', async () => {
    const { requests } = await simulate(cutText(reset(4)), { request: { temperature: 0.5, seed: 7 } });

    const [first, second] = requests.map(({ body }) => body as unknown as ChatRequest);
    expect(second?.messages.slice(0, -2)).toEqual(first?.messages);
    expect(second?.messages.slice(-2)).toEqual([
      { role: 'assistant', content: 'Kelp grips the' },
      { role: 'user', content: expect.stringContaining('"Kelp grips the"') },
    ]);
    expect({ ...second, messages: [] }).toEqual({ ...first, messages: [] });
  });

  test('carries one cumulative partial after a second and a third failure', async () => {
    const plan = { ...cutText(reset(3), reset(3), reset(3)), continuation: 'straight_on' } as const;
    const { requests, stream } = await simulate(plan);

    expect(stream.text).toBe(TEXT);
    const partials = requests.slice(1).map(({ body }) => body.messages);
    expect(partials.map((messages) => messages.length)).toEqual([3, 3, 3]);
    expect(partials.map((messages) => messages[1]?.content)).toEqual([
      'Kelp grips',
      'Kelp grips the rock',
      'Kelp grips the rock through the',
    ]);
  });

  test.each([
    [
      'vllm',
      '/v1/chat/completions',
      { continue_final_message: true, add_generation_prompt: false, echo: false },
      {},
    ],
    ['deepseek', '/beta/chat/completions', {}, { prefix: true }],
    ['mistral', '/v1/chat/completions', {}, { prefix: true }],
  ] as const)('is a prefill in the dialect of %s', async (dialect, path, parameters, fields) => {
    const { requests, stream } = await simulate({ ...cutText(reset(4)), prefill: dialect }, { dialect });

    expect(stream.text).toBe(TEXT);
    expect(new URL(requests[1]?.url ?? '').pathname).toBe(path);
    expect(requests[1]?.body).toMatchObject(parameters);
    expect(requests[1]?.body.messages.at(-1)).toEqual({
      role: 'assistant',
      content: 'Kelp grips the',
      ...fields,
    });
  });

  test('counts what was delivered against max_tokens', async () => {
    const plan = { ...cutText(reset(4)), continuation: 'obedient' } as const;
    const { requests, stream } = await simulate(plan, { request: { max_tokens: 8 } });

    // Five tokens are left, and the model must repeat three that it has already produced.
    expect(requests[1]?.body).toMatchObject({ max_tokens: 8 });
    expect(stream.finish).toBe('length');
    expect(stream.text).toBe('Kelp grips the rock through the surge and');
  });

  test('is not sent when max_tokens is used up: the answer has its length', async () => {
    const { requests, stream, outcome } = await simulate(cutText(reset(4)), { request: { max_tokens: 3 } });

    expect(requests).toHaveLength(1);
    expect(outcome).toBe('recovered');
    expect([stream.text, stream.finish, stream.done]).toEqual(['Kelp grips the', 'length', true]);
  });

  test('ends the answer with length when the partial no longer fits the context', async () => {
    const overflow: Fault = {
      kind: 'status',
      status: 400,
      body: {
        error: { code: 'context_length_exceeded', message: 'too long', type: 'invalid_request_error' },
      },
    };
    const { stream, requests } = await simulate(cutText(reset(4), overflow));

    expect(requests).toHaveLength(2);
    expect([stream.text, stream.finish]).toEqual(['Kelp grips the', 'length']);
  });
});

describe('a target that is not known to continue a prefix', () => {
  test('is tried once, and what it did is remembered', async () => {
    let memory: CapabilityMemory | undefined;
    const capabilities = (time: ConstructorParameters<typeof CapabilityMemory>[0]) => {
      memory ??= new CapabilityMemory(time);
      return memory;
    };
    const plan = cutText(reset(6));

    const first = await simulate(
      { ...plan, continuation: 'rejects_prefill' },
      { dialect: 'generic', capabilities },
    );
    expect(first.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
    expect(first.stream.text).toBe(TEXT);
    expect(memory?.prefill('default', 'model')).toBe('new_turn');

    const second = await simulate(plan, { dialect: 'generic', capabilities });
    expect(second.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual(['user', 'user']);
  });

  test('is not reported to the client as what interrupted its answer', async () => {
    const plan = { ...cutText(reset(6)), continuation: 'rejects_prefill' } as const;
    const { stream } = await simulate(plan, { dialect: 'generic', events: 'chunks' });
    expect(stream.advisories).toMatchObject([
      { type: 'Recovered', plan: 'R1', cause: 'connection_reset', attempt: 3 },
    ]);
  });

  test('is remembered to continue one when it did', async () => {
    const time = { now: () => 0, wall: () => 0, after: () => () => {} };
    const memory = new CapabilityMemory(time);
    await simulate(cutText(reset(6)), { dialect: 'generic', capabilities: () => memory });

    expect(memory.prefill('default', 'model')).toBe('exact');
  });

  test('and its refusal of a prefix never masks why the answer was cut', async () => {
    const refusal: Fault = {
      kind: 'status',
      status: 400,
      body: { error: { message: 'must end with a user role' } },
    };
    const plan = cutText(reset(6), refusal, reset(0), reset(0), reset(0));
    const { stream, outcome } = await simulate(plan, { dialect: 'generic' });

    expect(outcome).toBe('failed');
    expect(stream.error).toMatchObject({
      type: 'stream_interrupted',
      holdfast: { cause: 'connection_reset' },
    });
  });
});

describe('structured output and forced tools are replayed, never continued', () => {
  const json = JSON.stringify({ algae: ['kelp', 'dulse'], depth: 12 });

  test.each([
    ['json_object', { response_format: { type: 'json_object' } }],
    ['json_schema', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: {} } } }],
    ['a required tool', { tool_choice: 'required', tools: TOOLS }],
  ] as const)('%s', async (_, request) => {
    const { requests, stream } = await simulate(
      { parts: [{ text: json }], chunk: 4, faults: [reset(5)] },
      { request },
    );

    expect(requests[1]?.body).toEqual(requests[0]?.body);
    expect(stream.text).toBe(json);
    expect(stream.finish).toBe('stop');
  });

  test('a replay that says something else is not joined', async () => {
    const other = (attempt: number): Plan => ({
      parts: [{ text: attempt === 1 ? json : '{"other":true}' }],
      chunk: 4,
      faults: [reset(5)],
    });
    const { stream, outcome } = await simulate(other, {
      request: { response_format: { type: 'json_object' } },
    });

    expect(outcome).toBe('failed');
    expect(json.startsWith(stream.text)).toBe(true);
  });
});

describe('requests whose answers cannot be joined', () => {
  test.each([
    ['logprobs', { logprobs: true }],
    ['n > 1', { n: 2 }],
  ] as const)('%s: a typed error instead of a corrupt splice', async (_, request) => {
    const { stream, requests, outcome } = await simulate(cutText(reset(4)), { request });

    expect(requests).toHaveLength(1);
    expect(outcome).toBe('failed');
    expect(stream.error).toMatchObject({ type: 'stream_interrupted', code: 'not_recoverable' });
    expect(stream.done).toBe(false);
  });

  test('keep the calls that were settled when they are given up', async () => {
    const plan: Plan = {
      parts: [{ text: 'I look.' }, { tool: forecast('call_a') }, { tool: forecast('call_b') }],
      faults: [reset(11)],
    };
    const { stream, outcome } = await simulate(plan, { request: { n: 2, tools: TOOLS } });

    expect(outcome).toBe('failed');
    const { holdfast } = stream.error as unknown as { holdfast: { tool_calls: object[] } };
    const { id, name, arguments: json } = forecast('call_a');
    expect(holdfast.tool_calls).toEqual([{ id, name, arguments: json }]);
  });

  test('are tried again as long as nothing was delivered', async () => {
    const { stream, outcome } = await simulate(cutText({ kind: 'status', status: 503 }), {
      request: { logprobs: true },
    });

    expect([outcome, stream.text]).toEqual(['recovered', TEXT]);
  });
});

describe('tool calls', () => {
  test('are held until closed, then come in one piece', async () => {
    const { client } = await simulate(
      { parts: [{ tool: forecast('call_a') }] },
      { request: { tools: TOOLS } },
    );

    const calls = client.body.split('\n').filter((line) => line.includes('tool_calls":['));
    expect(calls).toHaveLength(1);
    expect(calls[0]).toContain(JSON.stringify('{"city":"Paris"}'));
  });

  test('R2: the closed call is delivered, the cut one left out, and the turn ends with tool_calls', async () => {
    const plan: Plan = {
      parts: [{ tool: forecast('call_a') }, { tool: forecast('call_b') }],
      faults: [reset(7)],
    };
    const { stream, requests, outcome } = await simulate(plan, { request: { tools: TOOLS } });

    expect(requests).toHaveLength(1);
    expect(outcome).toBe('salvaged');
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
    expect(stream.finish).toBe('tool_calls');
    expect(stream.usage).toBeDefined();
  });

  test('R2: exhaustion and policy cannot drop a settled call', async () => {
    const plan: Plan = {
      parts: [{ tool: forecast('call_a') }, { tool: forecast('call_b') }],
      faults: [reset(7)],
    };
    const { stream } = await simulate(plan, {
      request: { tools: TOOLS },
      recovery: { plans: ['R1'], max_attempts: 1 },
    });

    expect(stream.toolCalls).toEqual([forecast('call_a')]);
    expect(stream.finish).toBe('tool_calls');
  });

  test('R3: the cut call is asked for again by name, and the text is kept', async () => {
    const plan: Plan = {
      parts: [{ text: 'Let me look.' }, { tool: forecast('call_a') }],
      faults: [reset(6)],
    };
    const { stream, requests } = await simulate(plan, { request: { tools: TOOLS } });

    expect(requests[1]?.body.messages.at(-1)?.content).toMatch(/`forecast` was cut off and did not run/);
    expect(stream.text).toBe('Let me look.');
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
  });

  test('R3: a target that continues exactly comes to the call again by itself', async () => {
    const plan: Plan = {
      parts: [{ text: 'Let me look.' }, { tool: forecast('call_a') }],
      faults: [reset(6)],
      prefill: 'vllm',
    };
    const { stream, requests } = await simulate(plan, { request: { tools: TOOLS }, dialect: 'vllm' });

    expect(requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual(['user', 'assistant']);
    expect(stream.text).toBe('Let me look.');
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
    expect([stream.finish, stream.done]).toEqual(['tool_calls', true]);
  });

  test('R3: so does one that was learnt to, where its dialect allows tools with it', async () => {
    const time = { now: () => 0, wall: () => 0, after: () => () => {} };
    const memory = new CapabilityMemory(time);
    memory.rememberPrefill('default', 'model', 'exact');
    const plan: Plan = {
      parts: [{ text: 'Let me look.' }, { tool: forecast('call_a') }],
      faults: [reset(6)],
    };
    const modes = async (dialect: 'ollama' | 'generic') => {
      const options = { request: { tools: TOOLS }, dialect, capabilities: () => memory } as const;
      const { stream, requests } = await simulate(plan, options);
      expect(stream.toolCalls).toEqual([forecast('call_a')]);
      return requests.map(({ body }) => body.messages.at(-1)?.role);
    };
    expect(await modes('ollama')).toEqual(['user', 'assistant']);
    expect(await modes('generic')).toEqual(['user', 'user']);
  });

  test('R3: a call that text came after is asked for by name, of whomever', async () => {
    const cut = { ...forecast('call_a'), arguments: '{"city":' };
    const plan = (attempt: number): Plan => ({
      parts:
        attempt === 1
          ? [
              { text: 'Let me look.' },
              { tool: cut },
              { text: ' It may take a while, for the tables are old.' },
            ]
          : [{ text: 'Let me look. It may take a while, for' }, { tool: forecast('call_a') }],
      faults: [reset(14)],
      prefill: 'vllm',
    });
    const { requests } = await simulate(plan, { request: { tools: TOOLS }, dialect: 'vllm' });
    expect(requests[1]?.body.messages.at(-1)?.content).toMatch(/`forecast` was cut off and did not run/);
  });

  test('R4: with nothing else worth keeping, the original request is made again', async () => {
    const plan: Plan = { parts: [{ tool: forecast('call_a') }], faults: [reset(3)] };
    const { stream, requests } = await simulate(plan, { request: { tools: TOOLS } });

    expect(requests[1]?.body).toEqual(requests[0]?.body);
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
  });

  test('arguments that do not parse although the provider says it is done are not delivered', async () => {
    const plan: Plan = { parts: [{ tool: { id: 'call_a', name: 'forecast', arguments: '{"city":"Par' } }] };
    const { client, outcome } = await simulate(plan, { request: { tools: TOOLS } });

    expect(outcome).toBe('rejected');
    expect(client.rejection?.status).toBe(503);
  });

  test('a call that had only begun when a gateway made up the end of the answer is asked for again', async () => {
    const plan = (attempt: number): Plan =>
      attempt === 1
        ? { parts: [{ text: TEXT }, { tool: { ...forecast('call_a'), arguments: '' } }], finish: 'stop' }
        : { parts: [{ tool: forecast('call_a') }], finish: 'tool_calls' };
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const tools = [{ type: 'function', function: { name: 'forecast', parameters } }];
    const { stream, requests } = await simulate(plan, { request: { tools } });

    expect(requests).toHaveLength(2);
    expect([stream.text, stream.toolCalls, stream.finish]).toEqual([
      TEXT,
      [forecast('call_a')],
      'tool_calls',
    ]);
  });

  test('a call cut short by max_tokens is left out of an answer that says so', async () => {
    const plan: Plan = {
      parts: [{ text: 'I look.' }, { tool: { ...forecast('call_a'), arguments: '{"ci' } }],
      finish: 'length',
    };
    const { stream } = await simulate(plan, { request: { tools: TOOLS } });

    expect([stream.text, stream.toolCalls, stream.finish]).toEqual(['I look.', [], 'length']);
  });
});

describe('reasoning (R4)', () => {
  const thinking: Plan = {
    parts: [{ reasoning: 'First I think about kelp.' }, { text: TEXT }],
    faults: [reset(4)],
  };

  test('that comes again is not shown twice', async () => {
    const { stream, requests } = await simulate(thinking);

    expect(requests[1]?.body).toEqual(requests[0]?.body);
    expect(stream.reasoning).toBe('First I think about kelp.');
    expect(stream.text).toBe(TEXT);
  });

  test('is told to have started anew to a client that asked', async () => {
    const { stream } = await simulate(thinking, { events: 'chunks' });

    expect(stream.advisories).toMatchObject([
      { type: 'StreamReset', scope: 'reasoning', attempt: 1 },
      { type: 'Recovered', plan: 'R4', cause: 'connection_reset', attempt: 2 },
    ]);
  });

  test('that was of no use is marked in the journal, which has all of it all the same', async () => {
    const { journal } = await simulate(thinking);

    expect(journal.segments).toMatchObject([
      { attempt: 1, mode: 'first', discarded: true, characters: { text: 0 } },
      { attempt: 2, mode: 'restart', plan: 'R4', cause: 'connection_reset', discarded: false },
    ]);
    const [cut, whole] = journal.segments.map(({ characters }) => characters);
    expect((cut?.reasoning ?? 0) + (whole?.reasoning ?? 0)).toBe('First I think about kelp.'.length);
    expect(whole?.text).toBe(TEXT.length);
  });
});

test('the origin of an answer is recorded once, with the first words of an attempt', async () => {
  const told = async (...faults: Fault[]) => {
    const { journal } = await simulate(cutText(...faults));
    const kinds = journal.events.map(({ deltas }) => deltas.map(({ kind }) => kind).join());
    return kinds.filter((kind) => kind.includes('segment'));
  };
  expect(await told()).toEqual(['segment,text']);
  expect(await told(reset(5))).toEqual(['segment,text', 'segment,text']);
  // An attempt without content isn't an origin.
  expect(await told(reset(5), reset(1))).toEqual(['segment,text', 'segment,text']);
});

describe('what the client sees', () => {
  test('a switch before any content is invisible: the chunks are those of the attempt that answered', async () => {
    const { client, stream } = await simulate(cutText(reset(1)));

    expect(client.body).not.toContain('chatcmpl-1"');
    expect(client.body).toContain('chatcmpl-2"');
    expect(stream.violations).toEqual([]);
  });

  test('healthy events are the bytes that came', async () => {
    const cut = await simulate(cutText());
    const provider = cut.client.body;
    const again = await simulate(cutText(), { piece_bytes: 1 });

    expect(again.client.body).toBe(provider);
    expect(provider).toContain('"logprobs":null,"finish_reason":null}],"usage":null}');
  });

  test('headers wait five seconds for the first content, and then leave with a keep-alive', async () => {
    const plan = cutText({ kind: 'silence', at: { event: 0 }, for_ms: 27_000 });
    const { client } = await simulate(plan);

    expect(client.headers).toMatchObject({ 'holdfast-attempts': '1', 'holdfast-upstream': 'default' });
    expect(client.body.startsWith(': hb\n: hb\ndata: ')).toBe(true);
  });

  test('a long recovery sends a chunk that says nothing every fifteen seconds', async () => {
    const { stream, client } = await simulate(
      cutText(reset(4), { kind: 'silence', at: { event: 0 }, for_ms: 85_000 }),
    );

    expect(stream.text).toBe(TEXT);
    expect(client.body.match(/"delta":\{\},"finish_reason":null/g)).toHaveLength(5);
    expect(client.body).not.toContain(': hb');
  });

  test('the last chunk, usage and [DONE] leave together with the end', async () => {
    const writes: string[] = [];
    let seen = 0;
    await simulate(cutText(), {
      piece_bytes: 40,
      onWrite: ({ body }) => {
        writes.push(body.slice(seen));
        seen = body.length;
      },
    });

    expect(writes.at(-1)).toMatch(/"finish_reason":"stop".*"usage":\{.*data: \[DONE\]\n\n$/s);
  });

  test('advisories as comments are not counted as events', async () => {
    const quiet = await simulate(cutText(reset(4)));
    const told = await simulate(cutText(reset(4)), { events: 'comments' });

    expect(told.stream.advisories).toMatchObject([{ type: 'Recovered', plan: 'R1' }]);
    expect(told.stream.events).toBe(quiet.stream.events);
  });

  test('a recovered answer reports the usage of one uncut answer', async () => {
    const uncut = await simulate(cutText());
    const cut = await simulate(cutText(reset(4), { kind: 'clean_eof', at: { event: 3 } }));

    expect(cut.stream.usage).toEqual(uncut.stream.usage);
  });

  test('usage is reported however many chunks that say nothing come before it', async () => {
    const uncut = await simulate(cutText());
    const pings = { kind: 'pings', shape: 'chunk', every_ms: 50, for_ms: 1500 } as const;
    const { stream } = await simulate(cutText({ ...pings, at: { after_finish: true } }));

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(stream.usage).toEqual(uncut.stream.usage);
  });
});

describe('giving up', () => {
  test('before the headers: the provider’s own last answer, word for word', async () => {
    const refusal: Fault = { kind: 'status', status: 503, body: { error: { message: 'busy', code: 'x' } } };
    const { client, requests } = await simulate(cutText(refusal, refusal, refusal, refusal));

    expect(requests).toHaveLength(4);
    expect(client.rejection).toEqual({ status: 503, body: '{"error":{"message":"busy","code":"x"}}' });
    expect(client.rejectionHeaders['holdfast-run-id']).toMatch(/^run_/);
  });

  test('before the headers, without a word of the provider: an error of ours, which names the run', async () => {
    const { client } = await simulate(cutText(reset(0), reset(0), reset(0), reset(0)));
    const run_id = client.rejectionHeaders['holdfast-run-id'];
    expect(run_id).toMatch(/^run_/);
    expect(client.rejection?.status).toBe(503);
    expect(JSON.parse(client.rejection?.body ?? '')).toMatchObject({
      error: { code: 'upstream_unavailable', holdfast: { run_id } },
    });
  });

  test.each([
    [401, 'invalid_api_key'],
    [404, 'model_not_found'],
    [400, 'invalid_request_error'],
    [429, 'insufficient_quota'],
  ])('a permanent %i (%s) is passed on and never retried', async (status, code) => {
    const body = { error: { message: 'no', type: code, code } };
    const { client, requests } = await simulate(cutText({ kind: 'status', status, body }));

    expect(requests).toHaveLength(1);
    expect(client.rejection).toEqual({ status, body: JSON.stringify(body) });
  });

  test('in mid-stream: one error event that says what was delivered', async () => {
    const { stream } = await simulate(cutText(reset(4), reset(0), reset(0), reset(0)));

    expect(stream.error).toMatchObject({
      type: 'stream_interrupted',
      code: 'stream_interrupted',
      holdfast: {
        cause: 'connection_reset',
        retryable: true,
        partial: true,
        partial_chars: 14,
        tool_calls: [],
      },
    });
  });

  test('an answer that outgrows limits.run_bytes', async () => {
    const configuration = { limits: { ...DEFAULTS.limits, run_bytes: 20 } };
    const { stream } = await simulate(cutText(), { configuration });

    expect(stream.error).toMatchObject({ code: 'run_too_large' });
  });

  test('an answer whose bytes outgrow limits.run_bytes, although its characters do not', async () => {
    const saying = (text: string): Plan => ({ parts: [{ text }] });
    const configuration = { limits: { ...DEFAULTS.limits, run_bytes: 100 } };
    const { stream } = await simulate(saying('海'.repeat(50)), { configuration });
    expect(stream.error).toMatchObject({ code: 'run_too_large' });
    const short = await simulate(saying('k'.repeat(50)), { configuration });
    expect(short.outcome).toBe('complete');
  });

  test('calls of several choices that are larger than limits.run_bytes', async () => {
    const configuration = { limits: { ...DEFAULTS.limits, run_bytes: 4_096 } };
    const calling = (characters: number): Plan => ({
      parts: [{ tool: { id: 'call_1', name: 'f', arguments: `{"a":"${'k'.repeat(characters)}"}` } }],
    });
    const request = { n: 2, tools: TOOLS };
    const { stream } = await simulate(calling(8_192), { configuration, request });
    expect(stream.error).toMatchObject({ code: 'run_too_large' });
    const short = await simulate(calling(10), { configuration, request });
    expect(short.stream.error).not.toMatchObject({ code: 'run_too_large' });
  });

  test('calls whose names are larger than limits.run_bytes, although nothing is said in them', async () => {
    const configuration = { limits: { ...DEFAULTS.limits, run_bytes: 4_096 } };
    const named = (name: string): Plan => ({ parts: [{ tool: { id: 'call_1', name, arguments: '{}' } }] });
    const { client, requests } = await simulate(named('n'.repeat(4_096)), { configuration });

    expect(client.rejection).toMatchObject({ status: 502, body: expect.stringContaining('run_too_large') });
    expect(client.rejectionHeaders).toMatchObject({ 'x-should-retry': 'false' });
    expect(requests).toHaveLength(1);
    const short = await simulate(named('forecast'), { configuration });
    expect(short.outcome).toBe('complete');
  });

  test('a provider that refuses before the first token is asked as often as is allowed: that is an outage', async () => {
    const overloaded: Fault = { kind: 'error_anthropic', at: { event: 0 } };
    const faults = Array.from({ length: 7 }, () => overloaded);
    const recovered = await simulate(cutText(...faults), { recovery: { max_attempts: 8 } });
    expect([recovered.stream.text, recovered.requests.length]).toEqual([TEXT, 8]);

    const failed = await simulate(cutText(...faults));
    expect([failed.requests.length, failed.outcome]).toEqual([4, 'rejected']);
  });

  test('a provider that speaks and dies three times at the same place is not asked again', async () => {
    // The continuation repeats the first word that the client has, then dies.
    const dies: Plan = {
      parts: [{ reasoning: 'Hm.' }, { text: TEXT }],
      chunk: 'part',
      faults: Array(9).fill(reset(2)),
    };
    const { requests, stream } = await simulate(dies, { recovery: { max_attempts: 9 } });

    expect(requests).toHaveLength(3);
    expect(stream.error).toMatchObject({ message: expect.stringContaining('(repeated_failure)') });
  });

  test('a client that has gone stops everything', async () => {
    const { outcome, requests } = await simulate(cutText(), {
      piece_bytes: 50,
      onWrite: ({ body }, leave) => {
        if (body.includes(' rock')) leave();
      },
    });

    expect(outcome).toBe('cancelled');
    expect(requests[0]?.aborted).toBe(true);
  });
});

describe('waiting', () => {
  test.each([
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['milliseconds', { 'retry-after-ms': '2500' }, 2_500],
    ['an HTTP date', { 'retry-after': new Date(1_700_000_009_000).toUTCString() }, 9_000],
  ])('honours Retry-After in %s', async (_, headers, wait_ms) => {
    const run = await simulate(cutText({ kind: 'status', status: 429, headers }), { random: () => 0 });

    expect(run.stream.text).toBe(TEXT);
    expect(run.elapsed_ms).toBeGreaterThanOrEqual(wait_ms);
    expect(run.elapsed_ms).toBeLessThan(wait_ms + 1_000);
  });

  test('honours a hint inside the stream, too', async () => {
    const run = await simulate(cutText({ kind: 'error_rate_limited', at: { event: 4 }, retry_after_s: 3 }), {
      random: () => 0,
    });

    expect(run.stream.text).toBe(TEXT);
    expect(run.elapsed_ms).toBeGreaterThanOrEqual(3_000);
  });
});

test('the log has every interruption and recovery, and no content', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const busy: Fault = {
    kind: 'status',
    status: 503,
    body: { error: { message: 'busy with: a secret prompt' } },
  };
  const request = { messages: [{ role: 'user', content: 'a secret prompt' }] };
  await simulate(cutText(reset(4), busy), { log, request });

  expect(lines.map(({ msg, cause, plan, attempt }) => ({ msg, cause, plan, attempt }))).toEqual([
    { msg: 'interrupted', cause: 'connection_reset', plan: 'R1', attempt: 1 },
    { msg: 'interrupted', cause: 'provider_5xx', plan: 'R1', attempt: 2 },
    { msg: 'recovered', cause: 'provider_5xx', plan: 'R1', attempt: 3 },
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/secret|Kelp/);
});

test('the calls that an answer ends with are of the attempt that made them, not of one that could not come back to it', async () => {
  const parts: readonly Part[] = [
    { tool: { id: 'call_a', name: 'now', arguments: '' } },
    { tool: { id: 'call_b', name: 'now', arguments: '' } },
  ];
  const faults: readonly Fault[] = [{ kind: 'error_ollama', at: { event: 3 } }];
  const { attempts, stream, journal } = await simulate(
    { parts, tool_shape: 'whole', faults },
    { dialect: 'llamacpp', events: 'chunks', request: { tools: TOOLS } },
  );
  expect(attempts.map(({ body }) => body !== undefined)).toEqual([true, false]);
  expect(stream.finish).toBe('tool_calls');
  expect(stream.advisories).toMatchObject([
    { type: 'ToolCallCancel', id: 'call_b', reason: 'connection_reset' },
  ]);
  expect(journal.segments.map(({ attempt }) => attempt)).toEqual([1]);
});

describe('what is logged of a run when it ends', () => {
  test('is the model, the size of the answer and its attempts', async () => {
    const { client } = await simulate({ parts: [{ text: TEXT }] });
    expect(client.logFields).toEqual({ model: 'model', characters: TEXT.length, attempts: 1 });
  });

  test('is what interrupted it as well, and the longest silence, and nothing that was said', async () => {
    const faults: readonly Fault[] = [reset(4), { kind: 'status', status: 503 }];
    const { client, stream } = await simulate(cutText(...faults));
    expect(stream.text).toBe(TEXT);
    expect(client.logFields).toEqual({
      model: 'model',
      characters: TEXT.length,
      attempts: 3,
      interruptions: [
        { upstream: 'default', cause: 'connection_reset', phase: 'text', evidence: 'transport' },
        {
          ...{ upstream: 'default', cause: 'provider_5xx', phase: 'connect' },
          evidence: 'status',
          status: 503,
        },
      ],
      gap_ms: expect.any(Number),
    });
  });

  test('names the first ten interruptions of a run that has more', async () => {
    const faults = Array.from({ length: 12 }, (): Fault => ({ kind: 'status', status: 503 }));
    const { client } = await simulate(cutText(...faults), { recovery: { max_attempts: 13 } });
    expect(client.logFields?.attempts).toBe(13);
    expect(client.logFields?.interruptions).toHaveLength(10);
  });
});

describe('a run that cannot even begin', () => {
  const FAULT = new Error('of the wire');
  const broken = () => {
    const run = runOf({}, new AbortController().signal);
    const facts = () => {
      throw FAULT;
    };
    return { ...run, wire: { ...run.wire, facts } };
  };
  /** An observer, and the ends of runs that it has seen. */
  const observed = () => {
    const ended: ObservedEnd[] = [];
    const observation = {
      ended: (result: ObservedEnd) => void ended.push(result),
    } as unknown as RunObservation;
    return { ended, observer: { begin: () => observation } };
  };

  test('is not shown as under way any more', async () => {
    const { context } = new Fleet({ parts: [{ text: TEXT }] }).replica();
    const { ended, observer } = observed();

    await expect(relay(broken(), new RecordingClient(), { ...context, observer })).rejects.toBe(FAULT);
    expect(ended).toEqual([{ outcome: 'failed' }]);
  });

  test('is left to another replica if it was taken over', async () => {
    const { context } = new Fleet({ parts: [{ text: TEXT }] }).replica();
    const { store } = context;
    await store.release(await store.acquire(RUN, OWNER));
    const lease = await store.acquire(RUN, OWNER, 2);
    const stored = await store.read(RUN, OWNER, 0);
    if (!stored) throw new Error('there is no such run');

    await expect(relay(broken(), new RecordingClient(), context, { lease, stored, tail: [] })).rejects.toBe(
      FAULT,
    );
    expect((await store.read(RUN, OWNER, 0))?.holder.state).toBe('released');
  });
});
