import { readFileSync } from 'node:fs';
import { createServer, connect as openConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { finishOf } from '../provider/reading.ts';
import { promptTokens } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { HoldfastProcess } from './holdfast-process.ts';
import { post, type RawAnswer, rawAnswer, streamRequest } from './raw-client.ts';
import { RouteDeployment, type TwoTargets } from './route-deployment.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';
import { fetchRun, saidBy } from './talk.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
/** After the role and `The tide comes in twice`. */
const IN_TEXT = { event: 6 } as const;
/** As the scripted model counts them. */
const TOKENS = 21;
const ALWAYS = 20;

const says = (faults: readonly Fault[] = [], more: Partial<Plan> = {}): Plan => ({
  parts: [{ text: TEXT }],
  faults,
  ...more,
});
const always = (fault: Fault): readonly Fault[] => Array.from({ length: ALWAYS }, () => fault);
const refusal = (status: number, type: string, headers: Readonly<Record<string, string>> = {}): Fault => ({
  kind: 'status',
  status,
  headers,
  body: { error: { message: `Refused as ${type}.`, type, param: null, code: type } },
});
const UNAVAILABLE: Fault = { kind: 'status', status: 503 };
const CUT: Fault = { kind: 'reset', at: IN_TEXT };
const RATE_LIMIT = 'rate_limit_exceeded';
const OVERFLOW = refusal(400, 'context_length_exceeded');
const UNAUTHORISED = refusal(401, 'invalid_api_key');

/** One row of the table. */
interface Row {
  readonly first: readonly Fault[];
  readonly second?: Partial<Plan>;
  readonly route?: TwoTargets;
  /** Served by the process that never asks the same target twice in a row. */
  readonly isRestless?: true;
}

const withContexts = (first: number, second: number): TwoTargets => ({
  first: { context_tokens: first },
  second: { context_tokens: second },
});

const ROWS: Readonly<Record<string, Row>> = {
  'a 429 with `Retry-After`': { first: [refusal(429, RATE_LIMIT, { 'retry-after': '30' })] },
  'a 429 without it': { first: [refusal(429, RATE_LIMIT)] },
  'a 500, once': { first: [refusal(500, 'server_error')] },
  'a 503, every time': { first: always(UNAVAILABLE) },
  'a reset before the headers': { first: always({ kind: 'reset', at: { before_headers: true } }) },
  'no response at all': {
    first: always({ kind: 'silence', at: { before_headers: true } }),
    route: { upstream: { clocks: { first_byte_ms: 300 } } },
  },
  'no token in time': {
    first: always({ kind: 'comments', at: { event: 1 }, every_ms: 50 }),
    route: { upstream: { clocks: { first_token_ms: 600 } } },
  },
  'a cut in mid-answer': { first: [CUT] },
  'a cut in mid-answer, twice': { first: [CUT, CUT] },
  'a stall in mid-answer': {
    first: always({ kind: 'silence', at: IN_TEXT }),
    route: { upstream: { clocks: { idle_ms: 1500 } } },
  },
  'an event that does not parse': { first: [{ kind: 'malformed_event', at: IN_TEXT }] },
  'no `[DONE]`': { first: [{ kind: 'clean_eof', at: { after_finish: true } }] },
  'an overflow, the second takes more': { first: always(OVERFLOW), route: withContexts(8000, 128_000) },
  'an overflow, the second takes no more': { first: always(OVERFLOW), route: withContexts(8000, 8000) },
  'a content filter': { first: always(refusal(400, 'content_filter')) },
  'an invalid request': { first: always(refusal(400, 'invalid_request_error')) },
  "the client's key is refused": { first: always(UNAUTHORISED) },
  'a configured key is refused': {
    first: always(UNAUTHORISED),
    route: { upstream: { api_key: 'a key that nobody knows' } },
  },
  'a cut, then a 503; the second takes no prefill': {
    first: [CUT, ...always(UNAVAILABLE)],
    second: { continuation: 'rejects_prefill' },
  },
  'a cut at each, with `same_target_retries: 0`': {
    first: [CUT],
    second: { faults: [{ kind: 'reset', at: { event: 4 } }] },
    isRestless: true,
  },
};

const OUTAGE = 'an outage of a minute, 15 requests meanwhile';

/** The results that the table names, with the checks for each. */
const RESULTS: Readonly<Record<string, (answer: RawAnswer, question: string, row: Row) => void>> = {
  'the answer of the first': (answer, question) => expectWhole(answer, question, 'first'),
  'the answer of the second': (answer, question) => {
    expectWhole(answer, question, 'second');
    expect(answer.headers.get('holdfast-upstream')).toBe('second');
  },
  'the answer, in the name of the first': (answer, question) => expectWhole(answer, question, 'first'),
  'the refusal, unchanged': (answer, _, { first: [refused] }) => {
    const { status, body } = refused?.kind === 'status' ? refused : {};
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual(body);
  },
};

/** Checks for the uncut text, with one model name from beginning to end. */
function expectWhole(answer: RawAnswer, question: string, model: 'first' | 'second'): void {
  expect(answer).toMatchObject({ status: 200, text: TEXT, finish: 'stop', done: true });
  expect(finishOf(answer.chunks.filter(({ choices }) => choices))).toHaveLength(1);
  const names = answer.chunks.map((chunk) => `${chunk.id.replace(/-\d+$/, '')} ${chunk.model}`);
  expect(new Set(names)).toEqual(new Set([`id_of_${model} ${model}`]));
  expect(new Set(answer.chunks.map(({ id }) => id)).size).toBe(1);
  const prompt_tokens = promptTokens({ model, messages: [{ role: 'user', content: question }] });
  const usage = { prompt_tokens, completion_tokens: TOKENS, total_tokens: prompt_tokens + TOKENS };
  expect(answer.chunks.at(-1)?.usage).toEqual(usage);
}

/** The rows of the documentation's table, by their first cell. */
function documented(): ReadonlyMap<string, readonly string[]> {
  const path = fileURLToPath(new URL('../../docs/targets.md', import.meta.url));
  const [, table = ''] = readFileSync(path, 'utf8').split('<!-- asserted by test/e2e/targets.test.ts -->');
  const lines = table.trim().split('\n\n')[0]?.split('\n').slice(2) ?? [];
  const rows = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return new Map(rows.map(([name = '', ...cells]) => [name, cells]));
}

const plansOf = ({ first, second }: Row) => ({
  first: says(first, { model: 'first', id: 'id_of_first' }),
  second: says([], { model: 'second', id: 'id_of_second', ...second }),
});

/** Processes start slowly on a busy machine. */
const START = { timeout: 60_000 };
const FAST = { backoff_ms: 1, backoff_max_ms: 10 };

describe('the table in docs/targets.md', () => {
  const table = documented();
  let calm: RouteDeployment;
  let restless: RouteDeployment;

  beforeAll(async () => {
    const routes = (isRestless: boolean) => {
      const rows = Object.entries(ROWS).filter(([, row]) => (row.isRestless ?? false) === isRestless);
      return Object.fromEntries(rows.map(([name, { route = {} }]) => [name, route]));
    };
    const recovery = { ...FAST, same_target_retries: 0 };
    [calm, restless] = await Promise.all([
      RouteDeployment.start(routes(false), { recovery: FAST }),
      RouteDeployment.start(routes(true), { recovery }),
    ]);
  }, START.timeout);
  afterAll(async () => {
    // A refused key from the configuration is logged as an error, and must be the only one.
    await expect(calm.close()).rejects.toThrow(
      /^\{[^\n]*"cause":"unauthorised"[^\n]*"msg":"the configuration of a target is at fault"\}$/,
    );
    await restless.close();
  });

  test('has these rows', () => {
    expect([...table.keys()]).toEqual([...Object.keys(ROWS), OUTAGE]);
  });

  test.each(Object.entries(ROWS))('%s', async (name, row) => {
    const [result = '', first, second] = table.get(name) ?? [];
    const deployment = row.isRestless ? restless : calm;
    deployment.plan(name, plansOf(row));
    const answer = await rawAnswer(deployment.holdfast.url, streamRequest(name, name));
    expect(Object.keys(RESULTS)).toContain(result);
    RESULTS[result]?.(answer, name, row);
    const requests = deployment.requests(name);
    expect({ first: requests.first.length, second: requests.second.length }).toEqual({
      first: Number(first),
      second: Number(second),
    });
    for (const { headers } of requests.second) {
      expect(headers.authorization).toBe('Bearer key of the second');
    }
  });
});

describe('an outage', () => {
  /** Times here are this much shorter than the defaults and the times in the documentation. */
  const SCALE = 10;
  const EVERY_MS = 4000 / SCALE;
  const [, most = '', requests = ''] = documented().get(OUTAGE) ?? [];
  const BACK_REQUESTS = 30_000 / SCALE / EVERY_MS;

  test('is served by the second target meanwhile, costs few requests, and is over soon', {
    timeout: 120_000,
  }, async () => {
    const deployment = await RouteDeployment.start(
      { model: {} },
      { recovery: FAST, breaker: { open_ms: 5000 / SCALE, open_max_ms: 20_000 / SCALE } },
    );
    onTestFinished(() => deployment.close());
    let isDown = true;
    const { first, second } = deployment;
    first.respond(() => (isDown ? says(always(UNAVAILABLE)) : says()));
    second.respond(() => says());
    const ask = async (question: string) => {
      const before = first.requests.length;
      const [answer] = await Promise.all([
        rawAnswer(deployment.holdfast.url, streamRequest('model', question)),
        pause(EVERY_MS),
      ]);
      expect(answer).toMatchObject({ status: 200, text: TEXT, done: true });
      const served = answer.headers.get('holdfast-upstream');
      return { served, asked: first.requests.length - before };
    };

    /** The metrics of the first target that aren't 0. */
    const told = async () => {
      const metrics = await deployment.holdfast.metrics();
      const series = (name: string, state: string) =>
        metrics.get(`holdfast_target_${name}{upstream="first_0",model="",state="${state}"}`) ?? 0;
      const states = ['closed', 'open', 'half_open'].filter((state) => series('state', state) === 1);
      return {
        states,
        opened: series('transitions_total', 'open'),
        closed: series('transitions_total', 'closed'),
      };
    };
    expect(await told()).toEqual({ states: ['closed'], opened: 0, closed: 0 });

    const began_ms = performance.now();
    const meanwhile = [];
    for (let request = 0; request < Number(requests); request++) meanwhile.push(await ask(`down ${request}`));
    expect(new Set(meanwhile.map(({ served }) => served))).toEqual(new Set(['second']));
    // On a slow machine, the outage takes longer: allow one more request per open period of the breaker.
    const excess_ms = performance.now() - began_ms - Number(requests) * EVERY_MS;
    const allowed = Number(most.replace('at most ', '')) + Math.ceil(excess_ms / (20_000 / SCALE));
    expect(meanwhile.reduce((sum, { asked }) => sum + asked, 0)).toBeLessThanOrEqual(allowed);

    const down = await told();
    expect(down).toMatchObject({ states: [expect.stringMatching(/open/)], closed: 0 });
    expect(down.opened).toBeGreaterThan(0);

    isDown = false;
    const after = [];
    do after.push(await ask(`up ${after.length}`));
    while (after.at(-1)?.served === 'second' && after.length < BACK_REQUESTS);
    expect(after.at(-1)).toEqual({ served: 'first_0', asked: 1 });
    expect(await ask('up and well')).toEqual({ served: 'first_0', asked: 1 });
    expect(await told()).toMatchObject({ states: ['closed'], closed: 1 });
  });
});

describe('what the client, the log and the metrics say of it', () => {
  let deployment: RouteDeployment;
  beforeAll(async () => {
    deployment = await RouteDeployment.start({ model: {} }, { recovery: FAST });
  }, START.timeout);
  afterAll(() => deployment.close());

  test('names the upstream of every attempt', async () => {
    const { holdfast } = deployment;
    deployment.plan('accounts', plansOf({ first: [CUT, UNAVAILABLE] }));
    const response = await post(holdfast.url, streamRequest('model', 'accounts'), {
      'holdfast-events': 'comments',
    });
    const body = await response.text();
    // The headers left with the first content.
    expect(response.headers.get('holdfast-upstream')).toBe('first_0');
    const advisory = /^: holdfast (.*"Recovered".*)$/m.exec(body)?.[1] ?? '{}';
    expect(JSON.parse(advisory)).toMatchObject({ plan: 'R1', attempt: 3, upstream: 'second' });

    await holdfast.logged(({ msg }) => msg === 'run ended');
    const of = (msg: string) => holdfast.log.filter((line) => line.msg === msg);
    expect(of('interrupted').map(({ upstream }) => upstream)).toEqual(['first_0', 'first_0']);
    expect(of('recovered').map(({ upstream }) => upstream)).toEqual(['second']);
    const [usage] = of('usage');
    expect(usage?.usage).toMatchObject([
      { upstream: 'first_0', attempts: 2, unreported: 2 },
      { upstream: 'second', attempts: 1, unreported: 0 },
    ]);
    const metrics = await holdfast.metrics();
    const value = (series: string) => metrics.get(series);
    expect(value('holdfast_attempts_total{upstream="first_0",outcome="interrupted"}')).toBe(2);
    expect(value('holdfast_attempts_total{upstream="second",outcome="complete"}')).toBe(1);
    expect(
      value('holdfast_interruptions_total{cause="connection_reset",phase="text",upstream="first_0"}'),
    ).toBe(1);
    expect(
      value('holdfast_interruptions_total{cause="provider_5xx",phase="connect",upstream="first_0"}'),
    ).toBe(1);
  });

  test('a target that asks to be left alone is left alone by others with the same key', START, async () => {
    const keyed = await RouteDeployment.start(
      { model: { upstream: { api_key: 'ours' } } },
      { recovery: FAST },
    );
    onTestFinished(() => keyed.close());
    const limited = plansOf({ first: [refusal(429, RATE_LIMIT, { 'retry-after': '60' })] });
    for (const question of ['one', 'two']) {
      keyed.plan(question, limited);
      const answer = await rawAnswer(keyed.holdfast.url, streamRequest('model', question));
      expect(answer.headers.get('holdfast-upstream')).toBe('second');
    }
    expect(keyed.first.requests).toHaveLength(1);
  });
});

test('a replica that takes a run over asks any target of the route for the rest', START, async () => {
  const deployment = await RouteDeployment.start({ model: {} }, { recovery: FAST }, 2);
  onTestFinished(() => deployment.close());
  const [dying, other] = deployment.replicas as [HoldfastProcess, HoldfastProcess];
  const words = Array.from({ length: 150 }, (_, index) => `w${index}`).join(' ');
  const slow = { parts: [{ text: words }], delay_ms: 8 };
  deployment.plan('taken over', {
    first: { ...slow, model: 'first', faults: [null, ...always(UNAVAILABLE)] },
    second: { ...slow, model: 'second' },
  });
  const request = streamRequest('model', 'taken over');
  const client = await StreamClient.open(dying.url, request);
  await client.read();
  await client.received(25);
  await dying.kill('SIGKILL');
  await client.ended();
  const response = await post(other.url, request, { 'holdfast-run-id': client.run });
  const body = await response.text();
  expect(saidBy(payloadsOf(body))).toMatchObject({ text: words, finish: ['stop'], done: true });
  expect(body).not.toContain('"model":"second"');
  const { first, second } = deployment.requests('taken over');
  expect([first.length, second.length]).toEqual([3, 1]);

  const { text, segments } = (await (await fetchRun(other, client.run)).json()) as {
    text: string;
    segments: readonly { upstream: string; characters: { text: number } }[];
  };
  expect(segments).toMatchObject([
    { attempt: 1, epoch: 1, upstream: 'first_0', mode: 'first', from: 2 },
    { attempt: 4, epoch: 2, upstream: 'second', mode: 'prefill', plan: 'R1', cause: 'provider_5xx' },
  ]);
  expect(segments.reduce((sum, { characters }) => sum + characters.text, 0)).toBe(text.length);
});

test('two that have each other for an upstream do not pass a request on for ever', START, async () => {
  // The second process's address isn't known until the first one has started.
  let next: number | undefined;
  const way = createServer((socket) => {
    const onward = openConnection(next ?? 0, '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on('error', () => {});
  });
  await new Promise<void>((resolve) => way.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void way.close());
  const address = way.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const start = (base_url: string) =>
    HoldfastProcess.start({ upstreams: { other: { base_url } }, checkpoint: { store: 'memory' } });
  const one = await start(`http://127.0.0.1:${port}/v1`);
  onTestFinished(() => one.close());
  const other = await start(one.url);
  onTestFinished(() => other.close());
  next = Number(new URL(other.url).port);

  const streamed = await rawAnswer(one.url, streamRequest('model', 'round and round'));
  const passed = await fetch(`${one.url}/models`);
  for (const { status, body } of [streamed, { status: passed.status, body: await passed.text() }]) {
    expect(status).toBe(508);
    expect(JSON.parse(body)).toMatchObject({
      error: { type: 'invalid_request_error', code: 'loop_detected' },
    });
  }
  // Neither process made more than one attempt.
  for (const { log } of [one, other]) {
    expect(log.filter(({ msg }) => msg === 'interrupted')).toHaveLength(1);
  }
});
