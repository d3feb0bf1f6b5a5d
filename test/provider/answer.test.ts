import { describe, expect, test } from 'vitest';
import { answer } from './answer.ts';
import { expectedAnswer } from './expected.ts';
import type { Fault } from './fault.ts';
import { callsOf, chunksOf, contentOf, finishOf } from './reading.ts';
import type { CompletionRequest } from './request.ts';
import type { Plan, ToolShape } from './script.ts';
import type { Step } from './steps.ts';

const OCCASION = { attempt: 1, serial: 7, created: 1_700_000_000 };
const REQUEST: CompletionRequest = {
  model: 'm',
  stream: true,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'What is the weather?' }] },
  ],
};
const CALLS = [
  { id: 'call_a', name: 'weather', arguments: '{"city":"Köln","days":3}' },
  { id: 'call_b', name: 'now', arguments: '' },
  { id: 'call_c', name: 'weather', arguments: '{"city":"東京"}' },
];
const PLAN: Plan = {
  parts: [
    { reasoning: 'They want the weather.' },
    { text: 'Let me look that up, extraordinarily quickly 😀: ' },
    { tools: CALLS },
  ],
};

const bodyOf = (steps: readonly Step[]) =>
  Buffer.concat(steps.flatMap((step) => (step.kind === 'send' ? [step.bytes] : [])));
const bodyWith = (plan: Plan, request = REQUEST) => bodyOf(answer(plan, request, OCCASION)).toString();
const chunksWith = (plan: Plan, request = REQUEST) => chunksOf(bodyWith(plan, request));

describe('an answer', () => {
  test('begins with the role and ends with a finish reason and [DONE]', () => {
    const chunks = chunksWith(PLAN);
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '', refusal: null });
    expect(finishOf(chunks)).toEqual(['tool_calls']);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');
    expect(bodyWith(PLAN).endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('has one id and the model that was asked for, unless the script names them', () => {
    const names = (plan: Plan) => new Set(chunksWith(plan).map(({ id, model }) => `${id} ${model}`));
    expect(names(PLAN)).toEqual(new Set(['chatcmpl-7 m']));
    expect(names({ ...PLAN, id: 'gen', model: 'other' })).toEqual(new Set(['gen-7 other']));
  });

  test('gives words with the space before them, long ones in halves', () => {
    const pieces = chunksWith({ parts: [{ text: 'An extraordinary  day\n\n😀' }] }).map((chunk) =>
      contentOf([chunk]),
    );
    expect(pieces).toEqual(['', 'An', ' extrao', 'rdinary', ' ', ' day', '\n', '\n', '😀', '']);
  });

  test.each([
    ['part', 1],
    [1, 48],
    [10, 5],
  ] as const)('can be split otherwise: %s', (chunk, count) => {
    const text = 'Let me look that up, extraordinarily quickly 😀: ';
    const chunks = chunksWith({ parts: [{ text }], chunk });
    expect(contentOf(chunks)).toBe(text);
    expect(chunks).toHaveLength(count + 2);
  });

  test.each<[ToolShape, (number | undefined)[]]>([
    ['openai', [0, 1, 2]],
    ['whole', [0, 1, 2]],
    ['no_index', [undefined, undefined, undefined]],
    ['repeated_index', [0, 0, 0]],
    ['id_repeated', [0, 1, 2]],
  ])('says the same calls in the shape %s', (tool_shape, indexes) => {
    const chunks = chunksWith({ ...PLAN, tool_shape });
    expect(callsOf(chunks)).toEqual(CALLS);
    const starts = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    const firsts = starts.filter(
      (start, place) => starts.findIndex((other) => other.id === start.id) === place && start.id,
    );
    expect(firsts.map((start) => start.index)).toEqual(indexes);
  });

  test('interleaves the arguments of parallel calls', () => {
    const deltas = chunksWith(PLAN).flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    expect(deltas.map((delta) => delta.index).slice(0, 7)).toEqual([0, 1, 2, 0, 2, 0, 2]);
  });
});

describe('usage', () => {
  const asking = { ...REQUEST, stream_options: { include_usage: true } };
  // 3 + ceil(9 / 4) for the system message, and 3 + ceil(20 / 4) for the question.
  const prompt_tokens = 6 + 8;

  test('comes only if asked for, in a chunk of its own', () => {
    expect(bodyWith(PLAN)).not.toContain('usage');
    const chunks = chunksWith(PLAN, asking);
    const deltas = chunks.length - 3;
    const usage = { prompt_tokens, completion_tokens: deltas, total_tokens: prompt_tokens + deltas };
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    expect(expectedAnswer(PLAN, asking).usage).toEqual(usage);
  });

  test('can come with the finish reason, or not at all', () => {
    const chunks = chunksWith({ ...PLAN, usage: 'finish_chunk' }, asking);
    expect(chunks.at(-1)).toMatchObject({
      usage: { prompt_tokens },
      choices: [{ finish_reason: 'tool_calls' }],
    });
    expect(bodyWith({ ...PLAN, usage: 'none' }, asking)).not.toContain('usage');
  });
});

describe('expectedAnswer', () => {
  test('is what the deltas add up to', () => {
    expect(expectedAnswer({ parts: [...PLAN.parts, { refusal: 'No.' }] }, REQUEST)).toMatchObject({
      text: 'Let me look that up, extraordinarily quickly 😀: ',
      refusal: 'No.',
      reasoning: 'They want the weather.',
      toolCalls: CALLS,
      finish: 'tool_calls',
    });
  });

  test('is what a request without a stream is answered with', () => {
    const [head, body] = answer(PLAN, { ...REQUEST, stream: false }, OCCASION);
    expect(head).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
    const { choices } = JSON.parse(bodyOf(body ? [body] : []).toString()) as {
      choices: { message: object }[];
    };
    expect(choices[0]?.message).toMatchObject({
      content: 'Let me look that up, extraordinarily quickly 😀: ',
    });
  });

  test.each([
    [{ max_tokens: 4 }, 'Let me look that', 'length'],
    [{ max_completion_tokens: 1, max_tokens: 9 }, 'Let', 'length'],
    [{ max_tokens: 400 }, 'Let me look that up.', 'stop'],
    [{ stop: 'ok th' }, 'Let me lo', 'stop'],
    [{ stop: ['up', 'look'] }, 'Let me ', 'stop'],
    [{ stop: ['down'] }, 'Let me look that up.', 'stop'],
  ])('keeps to %j', (limits, text, finish) => {
    const plan = { parts: [{ text: 'Let me look that up.' }] };
    expect(expectedAnswer(plan, { ...REQUEST, ...limits })).toMatchObject({ text, finish });
    const chunks = chunksWith(plan, { ...REQUEST, ...limits });
    expect([contentOf(chunks), ...finishOf(chunks)]).toEqual([text, finish]);
  });
});

describe('faults', () => {
  const struck = (fault: Fault, attempt = 1, request = REQUEST) =>
    answer({ ...PLAN, faults: [fault, null] }, request, { ...OCCASION, attempt });
  const whole = bodyWith(PLAN);
  const events = whole.split(/(?<=\n\n)/);
  const tail = (fault: Fault) => bodyOf(struck(fault)).toString().slice(events.slice(0, 2).join('').length);
  const at = { event: 2 };

  test('strike the attempt they were meant for', () => {
    const fault: Fault = { kind: 'reset', at };
    expect(struck(fault).at(-1)).toEqual({ kind: 'cut', how: 'reset' });
    expect(struck(fault, 2).at(-1)).toEqual({ kind: 'end' });
    expect(struck(fault, 3).at(-1)).toEqual({ kind: 'end' });
  });

  test('strike after events, bytes or the finish reason', () => {
    const told = (fault: Fault) => bodyOf(struck(fault)).toString('latin1');
    const bytes = Buffer.from(whole).toString('latin1');
    expect(told({ kind: 'reset', at: { event: 3 } })).toBe(
      Buffer.from(events.slice(0, 3).join('')).toString('latin1'),
    );
    expect(told({ kind: 'reset', at: { event: 0 } })).toBe('');
    expect(told({ kind: 'reset', at: { event: 1000 } })).toBe(bytes);
    expect(told({ kind: 'reset', at: { byte: 100_000 } })).toBe(bytes);
    for (let byte = 0; byte <= bytes.length; byte += 1) {
      expect(told({ kind: 'reset', at: { byte } })).toBe(bytes.slice(0, byte));
      expect(told({ kind: 'silence', for_ms: 1, at: { byte } })).toBe(bytes);
    }
    const finished = told({ kind: 'reset', at: { after_finish: true } });
    expect(bytes.slice(finished.length)).toBe('data: [DONE]\n\n');
    expect(struck({ kind: 'reset', at: { before_headers: true } })).toEqual([{ kind: 'cut', how: 'reset' }]);
  });

  test('that speak never break into an event', () => {
    const byte = events.slice(0, 2).join('').length + 5;
    expect(tail({ kind: 'error_openai', at: { byte } })).toMatch(/^data: {"error":/);
  });

  test.each<[Fault, RegExp]>([
    [{ kind: 'clean_eof', at }, /^$/],
    [{ kind: 'done_without_finish', at }, /^data: \[DONE\]\n\n$/],
    [
      { kind: 'error_openai', at },
      /^data: {"error":{"message":"The server had .*"type":"server_error",.*}}\n\n$/,
    ],
    [
      { kind: 'error_openrouter', at },
      /^data: {"id":.*"delta":{"content":""}.*"finish_reason":"error"}\].*"error":{"code":502,.*}}\n\n$/,
    ],
    [{ kind: 'error_vllm', at }, /^data: {"error":{.*"code":500}}\n\ndata: \[DONE\]\n\n$/],
    [{ kind: 'error_tgi', at }, /^data: {"error":{.*"http_status_code":422}}\n\ndata: \[DONE\]\n\n$/],
    [{ kind: 'error_ollama', at }, /^data: {.*"model":"".*"content":"".*"finish_reason":null}\]}\n\n$/],
    [{ kind: 'error_gemini', at }, /^{\n {2}"error": {\n {4}"code": 503,\n.*"UNAVAILABLE"\n {2}}\n}\n$/s],
    [
      { kind: 'error_anthropic', at },
      /^event: error\ndata: {"type":"error","error":{.*"type":"overloaded_error".*},"request_id":"req_.*"}\n\n$/,
    ],
    [{ kind: 'error_string', at }, /^data: {"error":"The service is currently unavailable"}\n\n$/],
    [{ kind: 'error_rate_limited', at }, /^data: {"error":{.*"code":"rate_limit_exceeded"}}\n\n$/],
    [
      { kind: 'error_rate_limited', at, retry_after_s: 1.5 },
      /^data: {"error":{"message":".*Please try again in 1.5s.".*"retry_after":1.5}}\n\n$/,
    ],
    [{ kind: 'error_quota', at }, /^data: {"error":{.*"type":"insufficient_quota".*}}\n\n$/],
    [{ kind: 'finish_abort', at }, /^data: {.*"finish_reason":"abort"}\]}\n\ndata: \[DONE\]\n\n$/],
    [
      { kind: 'finish_insufficient_system_resource', at },
      /"finish_reason":"insufficient_system_resource"}\]}\n\ndata: \[DONE\]\n\n$/,
    ],
    [
      { kind: 'finish_overloaded_error', at },
      /"finish_reason":"overloaded_error"}\]}\n\ndata: \[DONE\]\n\n$/,
    ],
  ])('%j', (fault, said) => {
    expect(tail(fault)).toMatch(said);
    expect(struck(fault).at(-1)).toEqual({ kind: 'end' });
  });

  test('malformed_event puts one event that does not parse between the others', () => {
    const [bad = '', ...rest] = tail({ kind: 'malformed_event', at }).split(/(?<=\n\n)/);
    expect(() => JSON.parse(bad.slice('data: '.length))).toThrow(SyntaxError);
    expect(rest).toEqual(events.slice(2));
  });

  test('silence, comments and pings hold the connection, for ever or for a while', () => {
    const hold = (fault: Fault) => struck(fault).find((step) => step.kind === 'hold');
    expect(struck({ kind: 'silence', at }).at(-1)).toEqual({ kind: 'hold', every_ms: 100 });
    expect(hold({ kind: 'silence', at, for_ms: 30 })).toEqual({ kind: 'hold', every_ms: 100, for_ms: 30 });
    expect(tail({ kind: 'silence', at, for_ms: 30 })).toBe(events.slice(2).join(''));
    expect(hold({ kind: 'comments', at, every_ms: 20 })).toMatchObject({
      every_ms: 20,
      sign: Buffer.from(': keep-alive\n\n'),
    });
    const sign = (fault: Fault) => String((hold(fault) as { sign?: Buffer }).sign);
    expect(chunksOf(sign({ kind: 'pings', at }))[0]?.choices[0]).toMatchObject({
      delta: {},
      finish_reason: null,
    });
    expect(sign({ kind: 'pings', at, shape: 'event' })).toBe('event: ping\ndata: {"type": "ping"}\n\n');
  });

  test('goaway_graceful does not touch the body', () => {
    expect(bodyOf(struck({ kind: 'goaway_graceful', at })).toString()).toBe(whole);
    expect(struck({ kind: 'goaway_graceful', at }).filter((step) => step.kind === 'goaway')).toHaveLength(1);
  });

  test.each<[Fault, number, string, RegExp]>([
    [{ kind: 'status', status: 529 }, 529, 'application/json', /"The scripted status is 529."/],
    [{ kind: 'status', status: 400, body: [{ error: 1 }] }, 400, 'application/json', /^\[{"error":1}\]$/],
    [{ kind: 'json_200' }, 200, 'application/json', /^{"code":".*unavailable","error":/],
    [{ kind: 'html_200' }, 200, 'text/html; charset=utf-8', /^<!doctype html>/],
  ])('%j comes instead of a stream', (fault, status, type, body) => {
    const steps = struck(fault);
    expect(steps[0]).toMatchObject({ kind: 'head', status, headers: { 'content-type': type } });
    expect(bodyOf(steps).toString()).toMatch(body);
  });

  test('status takes headers', () => {
    const [head] = struck({ kind: 'status', status: 429, headers: { 'retry-after': '2' } });
    expect(head).toMatchObject({ headers: { 'retry-after': '2', 'content-type': 'application/json' } });
  });
});
