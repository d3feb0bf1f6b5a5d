import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import type { Plan } from '../provider/script.ts';
import { expectCompressed, KEPT, SUMMARY } from './compressed-conversation.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import {
  callsIn,
  historyOn,
  INSTRUCTIONS,
  MESSAGE_WIRES,
  type MessageWire,
  QUESTION,
  requestOn,
} from './long-conversation.ts';
import {
  always,
  messagesOf,
  OverflowDeployment,
  type Say,
  type Sent,
  type SentBody,
  sizeOf,
  takes,
} from './overflow-deployment.ts';
import { post } from './raw-client.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';
import { saidBy } from './talk.ts';

const TEXT =
  'Tomorrow it is at nine in Brest, and a little later in Lorient, as far as can be told from the past days.';
const WHOLE = { text: TEXT, finish: 'stop', done: true, error: undefined };
const UNAUTHORISED: Fault = {
  kind: 'status',
  status: 401,
  body: { error: { message: 'Who are you?', code: 'invalid_api_key' } },
};
const CUT: Fault = { kind: 'reset', at: { event: 10 } };

const says = (faults: readonly Fault[] = []): Plan => ({ parts: [{ text: TEXT }], faults });
const whole: Say = () => says();
const summary: Say = () => ({ parts: [{ text: SUMMARY }] });
/** The requests for a summary of a conversation with this model. */
const askedFor = (model: string): readonly SentBody[] =>
  deployment.sent('scribe', 'scribe').filter((body) => JSON.stringify(body).includes(`about ${model}.`));

const modelOf = (route: string, wire: MessageWire, name: string) =>
  `${route}-${name}-${wire}${wire === 'messages' ? '-claude-sonnet-4-5' : ''}`;

/** The same conversation for every test, apart from the first message, which names the model. */
const historyFor = (wire: MessageWire, model: string, rounds?: number): readonly Sent[] =>
  historyOn(wire, rounds).map((message, index) =>
    index === 0 ? { ...message, content: `This is about ${model}.` } : message,
  );

let deployment: OverflowDeployment;
beforeAll(async () => {
  deployment = await OverflowDeployment.start();
  deployment.say('scribe', 'scribe', summary);
}, 60_000);
afterAll(() => deployment.close());

describe.each(MESSAGE_WIRES)('on %s, a conversation that is too long', (wire) => {
  test('is refused where nothing is configured about it', async () => {
    const model = modelOf('plain', wire, 'refused');
    deployment.say('main', model, takes(100, wire, whole));
    const { status, body } = await deployment.ask(wire, requestOn(wire, model, historyFor(wire, model)));
    expect(status).toBe(400);
    expect(JSON.parse(body).error.message).toBe('prompt is too long: 210000 tokens > 200000 maximum');
    expect(deployment.sent('main', model)).toHaveLength(1);
    expect(askedFor(model)).toEqual([]);
  });

  test('is continued in fewer words, before the first token', async () => {
    const model = modelOf('short', wire, 'first');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
    const { reading, headers } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const [first, second, ...others] = deployment.sent('main', model) as [SentBody, SentBody];
    expect(first).toEqual(request);
    expectCompressed(second, request);
    expect(others).toEqual([]);

    const [asked, ...again] = askedFor(model);
    expect(again).toEqual([]);
    expect(asked).toMatchObject({ model: 'scribe', stream: true, max_tokens: 256 });
    const [{ content = '' } = {}] = asked?.messages ?? [];
    expect(content).toContain("High water at Brest on day 3 is at 3 o'clock.");
    expect(content).toContain('"port":"Lorient"');
    for (const kept of [QUESTION, INSTRUCTIONS, 'day 7']) expect(content).not.toContain(kept);

    const run = headers.get('holdfast-run-id');
    const line = await deployment.holdfast.logged(
      ({ msg, run: of }) => msg === 'context compressed' && of === run,
    );
    expect(line).toMatchObject({
      upstream: 'scribe',
      model: 'scribe',
      messages_left_out: expect.any(Number),
    });
    expect(Number(line.characters_after)).toBeLessThan(Number(line.characters_before) / 2);
  });

  test('is continued in the middle of the answer', async () => {
    const model = modelOf('short', wire, 'recovery');
    const request = requestOn(wire, model, historyFor(wire, model));
    // There is room for the question, but not for one more word.
    const room = sizeOf(request as SentBody) + 4;
    deployment.say(
      'main',
      model,
      takes(room, wire, (_, before) => says(before === 0 ? always(CUT) : [])),
    );
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const sent = deployment.sent('main', model);
    const last = sent.at(-1) as SentBody;
    const messages = messagesOf(last);
    const partial = messages.findIndex(
      ({ role, content }) =>
        role === 'assistant' && String(content) !== '' && TEXT.startsWith(String(content)),
    );
    expect(partial).toBeGreaterThan(0);
    expect(JSON.stringify(messages)).toContain(SUMMARY);
    expect(messages.slice(partial - KEPT, partial)).toEqual(messagesOf(request as SentBody).slice(-KEPT));
    expect(askedFor(model)).toHaveLength(1);
  });

  test('keeps the task of an agent that has been at it for long, with the summary beside it', async () => {
    const model = modelOf('short', wire, 'agent');
    const steps = historyFor(wire, model).filter(
      ({ role }, index) => index === 0 || role !== 'user' || wire === 'messages',
    );
    // After the first message, keep only calls and results, with a result at the end.
    const calls = steps.filter(
      (message, index) =>
        index === 0 || callsIn([message]).calls.length + callsIn([message]).results.length > 0,
    );
    const request = requestOn(wire, model, calls);
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const messages = messagesOf(deployment.sent('main', model)[1] as SentBody);
    const users = messages.filter(
      (message) => message.role === 'user' && callsIn([message]).results.length === 0,
    );
    expect(users).toHaveLength(1);
    expect(JSON.stringify(users[0])).toMatch(/This is about short-agent-.*The user asks for high water/);
    expect(callsIn(messages).calls).toEqual(callsIn(messages).results);
    expect(messages.slice(-KEPT)).toEqual(calls.slice(-KEPT));
  });

  test('is not put in fewer words where a target takes more', async () => {
    const model = modelOf('short2', wire, 'elsewhere');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, takes(100, wire, whole));
    deployment.say('larger', model, whole);
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('larger', model)).toEqual([request]);
    expect(askedFor(model)).toEqual([]);
  });

  test('is put in fewer words where no target takes it', async () => {
    const model = modelOf('short2', wire, 'nowhere');
    const request = requestOn(wire, model, historyFor(wire, model));
    const room = sizeOf(request as SentBody) - 1000;
    deployment.say('main', model, takes(room, wire, whole));
    deployment.say('larger', model, takes(room, wire, whole));
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const [first, second] = deployment.sent('larger', model) as [SentBody, SentBody];
    expect(first).toEqual(request);
    expectCompressed(second, request);
    expect(deployment.sent('main', model)).toHaveLength(1);
  });
});

describe('where there is no summary', () => {
  const wire = 'chat_completions';
  const refusal: Fault = { kind: 'status', status: 503 };
  const WHY: ReadonlySet<string> = new Set(['no summary', 'the summary is no shorter']);
  /** The reason, the summarising model's plan, and the expected number of requests to it. */
  const scribes: readonly [string, Plan, number][] = [
    ['who summarises is away', { parts: [], faults: always(refusal) }, 2],
    ['who summarises refuses', { parts: [], faults: always(UNAUTHORISED) }, 1],
    ['it is empty', { parts: [{ text: ' \n' }] }, 1],
    ['it was cut', { parts: [{ text: SUMMARY }], faults: always({ kind: 'reset', at: { event: 4 } }) }, 2],
    ['it is filtered', { parts: [{ text: SUMMARY }], finish: 'content_filter' }, 1],
    ['it is longer than what it is of', { parts: [{ text: 'and so on '.repeat(390) }], chunk: 'part' }, 1],
    ['it never ends', { parts: [{ text: 'and so on '.repeat(900) }], chunk: 'part' }, 1],
  ];

  test.each(scribes)('since %s, the refusal comes as it is', async (name, plan, times) => {
    const model = modelOf('short', wire, name.replaceAll(' ', '_'));
    const request = requestOn(wire, model, historyFor(wire, model, 3));
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 100, wire, whole));
    deployment.say('scribe', 'scribe', () => plan);
    const lines = deployment.holdfast.log.length;
    const { status, body, headers } = await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    expect(status).toBe(400);
    expect(JSON.parse(body).error.code).toBe('context_length_exceeded');
    expect(deployment.sent('main', model)).toHaveLength(1);
    expect(askedFor(model)).toHaveLength(times);
    expect(headers.get('content-type')).toContain('application/json');
    await deployment.holdfast.logged(({ msg }) => WHY.has(msg), lines);
  });

  test('a failure that passes is none', async () => {
    const model = modelOf('short', wire, 'passing');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
    const before = deployment.sent('scribe', 'scribe').length;
    deployment.say('scribe', 'scribe', (_, count) => ({
      parts: [{ text: SUMMARY }],
      faults: count === before ? always(refusal) : [],
    }));
    const { reading } = await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    expect(reading).toMatchObject(WHOLE);
    expect(askedFor(model)).toHaveLength(2);
  });

  test('an answer that has begun is as long as it may be', async () => {
    const model = modelOf('short', wire, 'cut-and-away');
    const request = requestOn(wire, model, historyFor(wire, model));
    const room = sizeOf(request as SentBody) + 4;
    deployment.say(
      'main',
      model,
      takes(room, wire, (_, before) => says(before === 0 ? always(CUT) : [])),
    );
    deployment.say('scribe', 'scribe', () => ({ parts: [], faults: always(refusal) }));
    const { reading } = await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    expect(reading).toMatchObject({ finish: 'length', done: true, error: undefined });
    expect(TEXT.startsWith(reading.text)).toBe(true);
  });
});

describe('where the summary does not help', () => {
  const wire = 'chat_completions';

  test('the refusal is that of the request as the client made it', async () => {
    const model = modelOf('short', wire, 'hopeless');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, (_, before) => {
      const body = { error: { message: `refusal ${before}`, code: 'context_length_exceeded' } };
      return says(always({ kind: 'status', status: 400, body }));
    });
    const { status, body } = await deployment.ask(wire, request);
    expect(status).toBe(400);
    expect(JSON.parse(body).error.message).toBe('refusal 0');
    // There is no second summary: it could only cover the first one, and would have to be shorter.
    expect(deployment.sent('main', model)).toHaveLength(2);
    expect(askedFor(model)).toHaveLength(1);
  });

  test('a second one is asked for that has to be shorter, and no third', async () => {
    const model = modelOf('short', wire, 'twice');
    const request = requestOn(wire, model, historyFor(wire, model));
    let asked = 0;
    const long = `${SUMMARY} `.repeat(10);
    deployment.say('scribe', 'scribe', (body) => {
      if (!JSON.stringify(body).includes(SUMMARY)) return { parts: [{ text: long }] };
      asked++;
      expect(body.max_tokens).toBe(128);
      return { parts: [{ text: SUMMARY }] };
    });
    deployment.say('main', model, takes(1500, wire, whole));
    const { status } = await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    expect(asked).toBe(1);
    expect(status).toBe(400);
    const sizes = deployment.sent('main', model).map(sizeOf);
    expect(sizes).toHaveLength(3);
    expect(sizes).toEqual(sizes.toSorted((one, other) => other - one));
  });
});

test('what does not fit into one request is summarised in several, in order', async () => {
  const wire = 'chat_completions';
  const model = modelOf('pieces', wire, 'long');
  const request = requestOn(wire, model, historyFor(wire, model, 60));
  deployment.say('main', model, takes(sizeOf(request as SentBody) / 2, wire, whole));
  const before = deployment.sent('scribe', 'scribe').length;
  deployment.say('scribe', 'scribe', (_, count) => ({
    parts: [{ text: `${SUMMARY} Part ${count - before}.` }],
  }));
  const { reading } = await deployment.ask(wire, request);
  deployment.say('scribe', 'scribe', summary);
  expect(reading).toMatchObject(WHOLE);
  const pieces = deployment
    .sent('scribe', 'scribe')
    .slice(before)
    .map(({ messages }) => String(messages?.[0]?.content));
  expect(pieces.length).toBeGreaterThan(2);
  for (const [index, piece] of pieces.entries()) {
    expect(piece.length).toBeLessThanOrEqual(4 * 2048);
    if (index > 0) expect(piece).toContain(`<summary>\n${SUMMARY} Part ${index - 1}.`);
    else expect(piece).not.toContain('<summary>\n');
  }
  const days = pieces.flatMap((piece) =>
    [...piece.matchAll(/at Brest on day (\d+)/g)].map(([, day]) => Number(day)),
  );
  expect(days).toEqual(Array.from({ length: days.length }, (_, day) => day));
  expect(days.length).toBeGreaterThan(50);
  const compressed = messagesOf(deployment.sent('main', model)[1] as SentBody);
  expect(String(compressed[1]?.content)).toContain(`Part ${pieces.length - 1}.`);
});

describe('the model that is asked for a summary', () => {
  const keysOf = (model: string) =>
    deployment.scribe.requests
      .filter(({ body }) => JSON.stringify(body).includes(`about ${model}.`))
      .map(({ headers, path }) => [path, headers.authorization]);

  const answered = async (wire: MessageWire, route: string, headers: object) => {
    const model = modelOf(route, wire, 'keys');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
    const { reading } = await deployment.ask(wire, request, headers);
    expect(reading).toMatchObject(WHOLE);
    return keysOf(model);
  };
  const PATH = '/v1/chat/completions';

  test('gets its own key', async () => {
    expect(await answered('chat_completions', 'short', {})).toEqual([[PATH, 'Bearer key of the scribe']]);
  });

  test("gets the client's where it has none", async () => {
    expect(await answered('chat_completions', 'unkeyed', {})).toEqual([[PATH, 'Bearer client-key']]);
    const [sent] = deployment.sent('scribe', 'scribe').slice(-1);
    expect(sent).toMatchObject({ max_completion_tokens: 256 });
  });

  test("gets the client's of the messages API where it looks for it", async () => {
    const { headers } = { headers: { 'x-api-key': 'key of messages', authorization: undefined } };
    const model = modelOf('unkeyed', 'messages', 'keys');
    const request = requestOn('messages', model, historyFor('messages', model));
    deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, 'messages', whole));
    const response = await fetch(`${deployment.holdfast.url}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': headers['x-api-key'] },
      body: JSON.stringify(request),
    });
    expect(response.status).toBe(200);
    await response.text();
    expect(keysOf(model)).toEqual([[PATH, 'Bearer key of messages']]);
  });
});

describe('what is not all in the request', () => {
  test.each([
    ['continues an answer that the provider keeps', { previous_response_id: 'resp_of_before' }],
    ['is part of a conversation that the provider keeps', { conversation: 'conv_of_before' }],
  ])('since it %s, is left as it is', async (name, more) => {
    const model = modelOf('short', 'responses', name.replaceAll(' ', '_'));
    deployment.say('main', model, takes(100, 'responses', whole));
    const { status } = await deployment.ask(
      'responses',
      requestOn('responses', model, historyFor('responses', model), more),
    );
    expect(status).toBe(400);
    expect(askedFor(model)).toEqual([]);
  });

  test('is left as it is on completions', async () => {
    const model = 'short-prompt';
    deployment.say('main', model, takes(100, 'completions', whole));
    const prompt = `This is about ${model}. `.repeat(100);
    const { status } = await deployment.ask('completions', { model, stream: true, prompt });
    expect(status).toBe(400);
    expect(askedFor(model)).toEqual([]);
  });
});

test('a client that leaves takes the summary with it', async () => {
  const wire = 'chat_completions';
  const model = modelOf('short', wire, 'leaves');
  deployment.say('main', model, takes(100, wire, whole));
  deployment.say('scribe', 'scribe', () => ({
    parts: [],
    faults: always({ kind: 'silence', at: { event: 1 } }),
  }));
  const gone = new AbortController();
  const { requests } = deployment.scribe;
  const before = requests.length;
  const left = requests.filter(({ aborted_at_ms }) => aborted_at_ms !== undefined).length;
  const answer = deployment.open(wire, requestOn(wire, model, historyFor(wire, model)), {}, gone.signal);
  await deployment.scribe.waitForRequests(before + 1);
  gone.abort();
  await expect(answer).rejects.toThrow();
  await deployment.scribe.waitForAborts(left + 1);
  deployment.say('scribe', 'scribe', summary);
  expect(deployment.sent('main', model)).toHaveLength(1);
});

test('a client that waits for a summary is kept waiting, not cut off', async () => {
  const wire = 'chat_completions';
  const model = modelOf('short', wire, 'slow');
  const request = requestOn(wire, model, historyFor(wire, model));
  deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
  const silence: Fault = { kind: 'silence', at: { event: 1 }, for_ms: 6000 };
  deployment.say('scribe', 'scribe', () => ({ parts: [{ text: SUMMARY }], faults: always(silence) }));
  const { reading, body } = await deployment.ask(wire, request);
  deployment.say('scribe', 'scribe', summary);
  expect(body).toMatch(/^: hb\n/);
  expect(reading).toMatchObject(WHOLE);
});

test('what the model is told besides is no part of what is summarised', async () => {
  const wire = 'chat_completions';
  const thread = { 'holdfast-thread': 'a thread' };
  const cut = modelOf('plain', wire, 'cut-for-good');
  deployment.say('main', cut, (_, before) => says(always(before === 0 ? CUT : UNAUTHORISED)));
  const { reading: broken } = await deployment.ask(wire, requestOn(wire, cut, historyFor(wire, cut)), thread);
  expect(broken.error).toBeDefined();

  const model = modelOf('short', wire, 'noticed');
  const request = requestOn(wire, model, historyFor(wire, model));
  deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
  const { reading } = await deployment.ask(wire, request, thread);
  expect(reading).toMatchObject(WHOLE);
  const NOTICE = 'last_partial_recovery';
  expect(JSON.stringify(deployment.sent('main', model).at(-1))).toContain(NOTICE);
  expect(askedFor(model)).toHaveLength(1);
  expect(JSON.stringify(askedFor(model))).not.toContain(NOTICE);
});

test('a client that wants no stream is answered all the same', async () => {
  const wire = 'chat_completions';
  const model = modelOf('short', wire, 'document');
  const request = requestOn(wire, model, historyFor(wire, model), { stream: false });
  deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
  const { status, body } = await deployment.ask(wire, request);
  expect(status).toBe(200);
  expect(JSON.parse(body).choices[0].message.content).toBe(TEXT);
  expect(askedFor(model)).toHaveLength(1);
});

test('a replica that takes a run over finds it too long as well', { timeout: 60_000 }, async () => {
  const two = await OverflowDeployment.startTwo();
  onTestFinished(() => two.close());
  const [dying, other] = two.replicas as [HoldfastProcess, HoldfastProcess];
  const wire = 'chat_completions';
  const model = modelOf('short', wire, 'taken-over');
  const request = requestOn(wire, model, historyFor(wire, model));
  const words = Array.from({ length: 150 }, (_, index) => `w${index}`).join(' ');
  const slow: Say = () => ({ parts: [{ text: words }], delay_ms: 8 });
  two.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, slow));
  two.say('scribe', 'scribe', summary);
  const client = await StreamClient.open(dying.url, request);
  await client.read();
  await client.received(25);
  await dying.kill('SIGKILL');
  await client.ended();
  const response = await post(other.url, request, { 'holdfast-run-id': client.run });
  const said = saidBy(payloadsOf(await response.text()));
  expect(said).toMatchObject({ text: words, finish: ['stop'], done: true });
  // Each replica sends the whole conversation first, and then a summary; the second one adds the text already
  // delivered.
  const sent = two.sent('main', model).map((body) => JSON.stringify(body).includes(SUMMARY));
  expect(sent).toEqual([false, true, false, true]);
});

test('the metrics, the log and the record of the run say so, and the log not what was said', async () => {
  const wire = 'chat_completions';
  const model = modelOf('short', wire, 'told');
  const request = requestOn(wire, model, historyFor(wire, model));
  deployment.say('main', model, takes(sizeOf(request as SentBody) - 1000, wire, whole));
  const { holdfast } = deployment;
  const series = async () => {
    const all = await holdfast.metrics();
    const value = (name: string) => all.get(name) ?? 0;
    return {
      compressed: value('holdfast_compressions_total{outcome="compressed"}'),
      repaid: value('holdfast_tokens_total{kind="repaid"}'),
    };
  };
  const before = await series();
  const { reading, headers } = await deployment.ask(wire, request);
  expect(reading).toMatchObject(WHOLE);
  const run = headers.get('holdfast-run-id');
  await holdfast.logged(({ msg, run: of }) => msg === 'run ended' && of === run);
  const after = await series();
  expect(after.compressed - before.compressed).toBe(1);
  expect(after.repaid - before.repaid).toBeGreaterThan(10);

  const root = holdfast.url.replace(/\/v1$/, '');
  const record = await fetch(`${root}/holdfast/v1/runs/${run}`, {
    headers: { authorization: 'Bearer client-key' },
  });
  const { segments } = (await record.json()) as { segments: readonly { compressed: object | null }[] };
  const sent = messagesOf(deployment.sent('main', model)[1] as SentBody);
  const left_out = messagesOf(request as SentBody).length - (sent.length - 1);
  expect(segments.at(-1)?.compressed).toEqual({
    messages: left_out,
    characters: expect.any(Number),
    summary_characters: SUMMARY.length,
  });
  for (const secret of [SUMMARY, 'high water', 'key of the scribe'])
    expect(JSON.stringify(holdfast.log)).not.toContain(secret);
});
