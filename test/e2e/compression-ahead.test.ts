import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { estimatedPromptTokens } from '../../src/plans/tokens.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import type { Fault } from '../provider/fault.ts';
import { expectCompressed, SUMMARY } from './compressed-conversation.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { callsIn, historyOn, MESSAGE_WIRES, type MessageWire, requestOn } from './long-conversation.ts';
import {
  always,
  messagesOf,
  OverflowDeployment,
  type Say,
  type Sent,
  type SentBody,
  takes,
} from './overflow-deployment.ts';
import { post } from './raw-client.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';
import { saidBy } from './talk.ts';

const TEXT = 'Tomorrow it is at nine in Brest, and a little later in Lorient.';
const WHOLE = { text: TEXT, finish: 'stop', done: true, error: undefined };
const AWAY: Fault = { kind: 'status', status: 503 };
/** Half the context window of the target behind `ahead-*`. */
const TOKENS_MAX = 1000;
/** Puts the conversation far above that limit on every wire. */
const ROUNDS = 16;

const whole: Say = () => ({ parts: [{ text: TEXT }] });
const summary: Say = () => ({ parts: [{ text: SUMMARY }] });

let deployment: OverflowDeployment;
beforeAll(async () => {
  deployment = await OverflowDeployment.startTwo();
  deployment.say('scribe', 'scribe', summary);
}, 60_000);
afterAll(async () => {
  await deployment.close();
});

const modelOf = (route: string, wire: MessageWire, name: string) =>
  `${route}-${name}-${wire}${wire === 'messages' ? '-claude-sonnet-4-5' : ''}`;

/** The requests for a summary of a conversation with this model. */
const askedFor = (model: string): readonly SentBody[] =>
  deployment.sent('scribe', 'scribe').filter((body) => JSON.stringify(body).includes(`about ${model}.`));

/** The same conversation for every test, apart from the first message, which names the model. */
const historyFor = (wire: MessageWire, model: string, rounds = ROUNDS): readonly Sent[] =>
  historyOn(wire, rounds).map((message, index) =>
    index === 0 ? { ...message, content: `This is about ${model}.` } : message,
  );

const tokensOf = (wire: MessageWire, body: object): number =>
  estimatedPromptTokens(WIRES[wire].facts(WIRES[wire].request(body as SentBody)).promptSize());

const inTask = (task: string) => ({ 'holdfast-task': task, 'holdfast-task-session': 'first' });

describe.each(MESSAGE_WIRES)('on %s, a conversation that takes more than its share', (wire) => {
  test('is put in fewer words before its provider is asked', async () => {
    const model = modelOf('ahead', wire, 'first');
    const request = requestOn(wire, model, historyFor(wire, model));
    expect(tokensOf(wire, request)).toBeGreaterThan(TOKENS_MAX);
    deployment.say('main', model, whole);
    const { reading, headers } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    const [sent, ...others] = deployment.sent('main', model) as [SentBody];
    expect(others).toEqual([]);
    expectCompressed(sent, request);
    expect(tokensOf(wire, sent)).toBeLessThan(TOKENS_MAX);
    expect(askedFor(model)).toHaveLength(1);

    const { holdfast } = deployment;
    const run = headers.get('holdfast-run-id');
    await holdfast.logged(({ msg, run: of }) => msg === 'context compressed' && of === run);
    const record = await fetch(`${holdfast.url.replace(/\/v1$/, '')}/holdfast/v1/runs/${run}`, {
      headers: { authorization: 'Bearer client-key' },
    });
    const { segments } = (await record.json()) as { segments: readonly object[] };
    const messages = messagesOf(request as SentBody).length - (messagesOf(sent).length - 1);
    expect(segments).toMatchObject([{ compressed: { messages, summary_characters: SUMMARY.length } }]);
  });

  test('goes out as it came while it takes no more than that', async () => {
    const model = modelOf('ahead', wire, 'small');
    const request = requestOn(wire, model, historyFor(wire, model, 4));
    expect(tokensOf(wire, request)).toBeLessThan(TOKENS_MAX);
    deployment.say('main', model, whole);
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('main', model)).toEqual([request]);
    expect(askedFor(model)).toEqual([]);
  });

  test('goes out as it came where the first target has room, whatever the others have', async () => {
    const model = modelOf('ahead2', wire, 'roomy');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('larger', model, whole);
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('larger', model)).toEqual([request]);
    expect(askedFor(model)).toEqual([]);
  });

  test('goes out as it came where what could be left out is no longer than a summary', async () => {
    const model = modelOf('ahead', wire, 'one-long');
    const history = historyFor(wire, model, 3);
    const question = 'When is high water? '.repeat(300);
    const request = requestOn(wire, model, [...history.slice(0, -1), { role: 'user', content: question }]);
    expect(tokensOf(wire, request)).toBeGreaterThan(TOKENS_MAX);
    deployment.say('main', model, whole);
    const { reading } = await deployment.ask(wire, request);
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('main', model)).toEqual([request]);
    expect(askedFor(model)).toEqual([]);
  });

  test('goes out as it came where no summary is to be had', async () => {
    const model = modelOf('ahead', wire, 'away');
    const request = requestOn(wire, model, historyFor(wire, model));
    deployment.say('main', model, whole);
    deployment.say('scribe', 'scribe', () => ({ parts: [], faults: always(AWAY) }));
    const { reading, headers } = await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    expect(reading).toMatchObject(WHOLE);
    expect(deployment.sent('main', model)).toEqual([request]);
    expect(askedFor(model)).toHaveLength(2);
    const run = headers.get('holdfast-run-id');
    await deployment.holdfast.logged(({ msg, run: of }) => msg === 'no summary' && of === run);
  });

  test('is put in fewer words once more where the provider refuses it all the same', async () => {
    const model = modelOf('ahead', wire, 'refused');
    const request = requestOn(wire, model, historyFor(wire, model));
    const long = 'High water is at the hour of the day. '.repeat(20);
    const refusesFirst: Say = (body, before) => takes(before === 0 ? 0 : 100_000, wire, whole)(body, before);
    deployment.say('main', model, refusesFirst);
    deployment.say('scribe', 'scribe', (body) =>
      JSON.stringify(body).includes(long.slice(0, 100))
        ? { parts: [{ text: SUMMARY }] }
        : { parts: [{ text: long }] },
    );
    await deployment.ask(wire, request);
    deployment.say('scribe', 'scribe', summary);
    const [first, second, ...others] = deployment.sent('main', model) as [SentBody, SentBody];
    expect(others).toEqual([]);
    expect(JSON.stringify(first)).toContain(long.trim());
    // The second summary has half the length limit of the first.
    const limits = deployment
      .sent('scribe', 'scribe')
      .slice(-2)
      .map(({ max_tokens }) => max_tokens);
    expect(limits).toEqual([256, 128]);
    expect(JSON.stringify(second)).toContain(SUMMARY);
    expect(JSON.stringify(second).length).toBeLessThan(JSON.stringify(first).length);
  });

  test('is summarised once for a task, whichever replica has its next step', async () => {
    const model = modelOf('ahead', wire, 'task');
    const task = inTask(model);
    deployment.say('main', model, whole);
    const [one, other] = deployment.replicas as [HoldfastProcess, HoldfastProcess];
    const reused = await summariesReused(other);
    const steps = [ROUNDS, ROUNDS + 1, ROUNDS + 2].map((rounds) =>
      requestOn(wire, model, historyFor(wire, model, rounds)),
    );
    for (const [index, request] of steps.entries()) {
      const { reading } = await deployment.ask(wire, request, task, index % 2 === 0 ? one : other);
      expect(reading).toMatchObject(WHOLE);
    }
    const sent = deployment.sent('main', model);
    expect(sent).toHaveLength(3);
    for (const [index, request] of steps.entries()) expectCompressed(sent[index] as SentBody, request);
    // What the model has already read is sent again unchanged, and read from its prompt cache.
    const [first = [], ...later] = sent.map(messagesOf);
    const read = first.slice(0, -1);
    for (const messages of later) expect(messages.slice(0, read.length)).toEqual(read);
    expect(askedFor(model)).toHaveLength(1);

    expect((await summariesReused(other)) - reused).toBe(1);

    // A replay sends no request.
    const again = { ...task, 'holdfast-task-session': 'second' };
    const replayed = await deployment.ask(wire, steps[1] as object, again, one);
    expect(replayed.headers.get('holdfast-replayed')).toBe('true');
    expect(replayed.reading).toMatchObject(WHOLE);
    expect(deployment.sent('main', model)).toHaveLength(3);
    expect(askedFor(model)).toHaveLength(1);
  });

  test('is summarised for a task from the last summary on, once it takes too much with that', async () => {
    const model = modelOf('ahead', wire, 'grown');
    const task = inTask(model);
    deployment.say('main', model, whole);
    await deployment.ask(wire, requestOn(wire, model, historyFor(wire, model)), task);
    const first = String(deployment.sent('scribe', 'scribe').at(-1)?.messages?.[0]?.content);
    const request = requestOn(wire, model, historyFor(wire, model, 3 * ROUNDS));
    const { reading } = await deployment.ask(wire, request, task);
    expect(reading).toMatchObject(WHOLE);
    const second = String(deployment.sent('scribe', 'scribe').at(-1)?.messages?.[0]?.content);
    expect(second).toContain(`<summary>\n${SUMMARY}\n</summary>`);
    const daysIn = (asked: string) =>
      new Set([...asked.matchAll(/at Brest on day (\d+)/g)].map(([, day]) => Number(day)));
    const days = [...daysIn(first), ...daysIn(second)];
    expect(days).toEqual(Array.from({ length: days.length }, (_, day) => day));
    expect(days.length).toBeGreaterThan(2 * ROUNDS);
    const sent = deployment.sent('main', model).at(-1) as SentBody;
    expectCompressed(sent, request);
    expect(JSON.stringify(sent).split(SUMMARY)).toHaveLength(2);
  });

  test('is summarised anew for a task whose conversation has changed', async () => {
    const model = modelOf('ahead', wire, 'changed');
    const task = inTask(model);
    deployment.say('main', model, whole);
    const history = historyFor(wire, model);
    await deployment.ask(wire, requestOn(wire, model, history), task);
    const edited = history.map((message, index) =>
      index === 0 ? { ...message, content: `This, again, is about ${model}.` } : message,
    );
    const { reading } = await deployment.ask(wire, requestOn(wire, model, edited), task);
    expect(reading).toMatchObject(WHOLE);
    const asked = askedFor(model).map((body) => JSON.stringify(body));
    expect(asked).toHaveLength(2);
    expect(asked[1]).toContain('This, again, is about');
    expect(asked[1]).not.toContain(SUMMARY);
  });

  test('is summarised anew for a task that was deleted', async () => {
    const model = modelOf('ahead', wire, 'deleted');
    const task = inTask(model);
    deployment.say('main', model, whole);
    const request = requestOn(wire, model, historyFor(wire, model));
    await deployment.ask(wire, request, task);
    // The task is stored shortly after its answer.
    await vi.waitFor(async () => expect((await askTask('GET', model)).status).toBe(200));
    expect((await askTask('DELETE', model)).status).toBe(200);
    await deployment.ask(wire, request, task);
    expect(askedFor(model)).toHaveLength(2);
  });

  test('costs an agent of ten steps three summaries at most, where it would pay for one with each request', async () => {
    const model = modelOf('ahead', wire, 'agent');
    const without = await tokensPaid(wire, modelOf('plain', wire, 'agent'), inTask('plain'));
    const alone = await tokensPaid(wire, model, {});
    const withTask = await tokensPaid(wire, model, inTask(model));
    expect(without.summaries).toBe(0);
    expect(alone.summaries).toBeGreaterThanOrEqual(5);
    expect(withTask.summaries).toBeLessThanOrEqual(3);
    expect(Math.max(...withTask.prompts)).toBeLessThan(TOKENS_MAX);
    expect(withTask.sent).toBeLessThan(0.6 * without.sent);
    expect(withTask.sent + withTask.summarised).toBeLessThan(0.7 * (alone.sent + alone.summarised));
  });
});

/**
 * The token cost of a ten-step task that alternates between the replicas and whose conversation grows by three rounds
 * per step.
 */
async function tokensPaid(wire: MessageWire, model: string, headers: object) {
  deployment.say('main', model, whole);
  const before = {
    main: deployment.sent('main', model).length,
    scribe: deployment.sent('scribe', 'scribe').length,
  };
  for (let step = 1; step <= 10; step++) {
    // After the first message, keep only calls, results and reasoning.
    const history = historyFor(wire, model, 3 * step).filter((message, index) => {
      const { calls, results } = callsIn([message]);
      return index === 0 || message.type === 'reasoning' || calls.length + results.length > 0;
    });
    const replica = deployment.replicas[step % 2];
    const { reading } = await deployment.ask(wire, requestOn(wire, model, history), headers, replica);
    expect(reading).toMatchObject(WHOLE);
  }
  const prompts = deployment
    .sent('main', model)
    .slice(before.main)
    .map((body) => tokensOf(wire, body));
  const summaries = deployment
    .sent('scribe', 'scribe')
    .slice(before.scribe)
    .map((body) => tokensOf('chat_completions', body));
  return { prompts, sent: sum(prompts), summaries: summaries.length, summarised: sum(summaries) };
}

const summariesReused = async (replica: HoldfastProcess): Promise<number> =>
  (await replica.metrics()).get('holdfast_compressions_total{outcome="reused"}') ?? 0;

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

const askTask = (method: 'GET' | 'DELETE', task: string): Promise<Response> =>
  fetch(`${deployment.holdfast.url.replace(/\/v1$/, '')}/holdfast/v1/tasks/${task}`, {
    method,
    headers: { authorization: 'Bearer client-key' },
  });

test('a summary that never comes leaves most of the time to the deadline for the answer', async () => {
  const wire = 'chat_completions';
  const model = modelOf('ahead', wire, 'deadline');
  const request = requestOn(wire, model, historyFor(wire, model));
  deployment.say('main', model, whole);
  const silence: Fault = { kind: 'silence', at: { event: 1 } };
  deployment.say('scribe', 'scribe', () => ({ parts: [{ text: SUMMARY }], faults: always(silence) }));
  const { reading } = await deployment.ask(wire, request, { 'holdfast-deadline-ms': '4000' });
  deployment.say('scribe', 'scribe', summary);
  expect(reading).toMatchObject(WHOLE);
  expect(deployment.sent('main', model)).toEqual([request]);
});

test('a client that waits for the summary is kept waiting, and has its answer then', async () => {
  const wire = 'chat_completions';
  const model = modelOf('ahead', wire, 'slow');
  const request = requestOn(wire, model, historyFor(wire, model));
  deployment.say('main', model, whole);
  const silence: Fault = { kind: 'silence', at: { event: 1 }, for_ms: 6000 };
  deployment.say('scribe', 'scribe', () => ({ parts: [{ text: SUMMARY }], faults: always(silence) }));
  const { reading, body } = await deployment.ask(wire, request);
  deployment.say('scribe', 'scribe', summary);
  expect(body).toMatch(/^: hb\n/);
  expect(reading).toMatchObject(WHOLE);
  expectCompressed(deployment.sent('main', model)[0] as SentBody, request);
});

test('a client that leaves before there is a summary has nothing asked for', async () => {
  const wire = 'chat_completions';
  const model = modelOf('ahead', wire, 'leaves');
  deployment.say('main', model, whole);
  deployment.say('scribe', 'scribe', () => ({
    parts: [],
    faults: always({ kind: 'silence', at: { event: 1 } }),
  }));
  const gone = new AbortController();
  const { requests } = deployment.scribe;
  const before = requests.length;
  const left = requests.filter(({ aborted_at_ms }) => aborted_at_ms !== undefined).length;
  const request = requestOn(wire, model, historyFor(wire, model));
  const answer = deployment.open(wire, request, {}, gone.signal);
  await deployment.scribe.waitForRequests(before + 1);
  const lines = deployment.holdfast.log.length;
  gone.abort();
  await expect(answer).rejects.toThrow();
  await deployment.scribe.waitForAborts(left + 1);
  deployment.say('scribe', 'scribe', summary);
  await deployment.holdfast.logged(({ msg }) => msg === 'run ended', lines);
  expect(deployment.sent('main', model)).toEqual([]);
});

test('a replica that takes a step over sends the conversation that the lost one has sent', {
  timeout: 60_000,
}, async () => {
  const two = await OverflowDeployment.startTwo();
  onTestFinished(() => two.close());
  const [dying, other] = two.replicas as [HoldfastProcess, HoldfastProcess];
  const wire = 'chat_completions';
  const model = modelOf('ahead', wire, 'taken-over');
  const request = requestOn(wire, model, historyFor(wire, model));
  const words = Array.from({ length: 150 }, (_, index) => `w${index}`).join(' ');
  two.say('main', model, () => ({ parts: [{ text: words }], delay_ms: 8 }));
  let summaries = 0;
  two.say('scribe', 'scribe', () => ({ parts: [{ text: `${SUMMARY} Number ${++summaries}.` }] }));
  const client = await StreamClient.open(dying.url, request, inTask(model));
  await client.read();
  await client.received(25);
  await dying.kill('SIGKILL');
  await client.ended();
  const again = { ...inTask(model), 'holdfast-task-session': 'second' };
  const response = await post(other.url, request, again);
  const said = saidBy(payloadsOf(await response.text()));
  expect(said).toMatchObject({ text: words, finish: ['stop'], done: true });
  const [first, rest, ...others] = two.sent('main', model) as [SentBody, SentBody];
  expect(others).toEqual([]);
  expectCompressed(first, request);
  const messages = messagesOf(first);
  expect(messagesOf(rest).slice(0, messages.length)).toEqual(messages);
  expect(messagesOf(rest).length).toBeGreaterThan(messages.length);
  expect(summaries).toBe(1);
});
