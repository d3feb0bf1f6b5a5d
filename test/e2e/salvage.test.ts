import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { completionRequest } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post, type RawAnswer, rawAnswer, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';
import { StreamClient } from './stream-client.ts';

/** Short enough for a test, long enough for a busy machine to renew it. */
const LEASE_MS = 1000;
const SALVAGE_AFTER_MS = 500;
const ALWAYS = 10;
const MODEL = modelOf('h1');
const EVENTS_BEFORE_DEATH = 25;
const SYSTEM = { role: 'system', content: 'Be brief.' };
const TOOLS = [{ type: 'function', function: TIDES }];
const BREST = callTo('call_brest', 'Brest');

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index} 🌊`).join(' ');
/** Outlives every process here. */
const ENDLESS: Plan = { parts: [{ text: words(3000) }], delay_ms: 4 };
const SILENT: Plan = { parts: [{ text: 'No.' }], faults: [{ kind: 'silence', at: { event: 0 } }] };
const SHORT: Plan = { parts: [{ text: 'The tide is out.' }] };

interface Status {
  readonly status: string;
  readonly text: string;
  readonly partial: boolean;
  readonly end: { readonly status: string; readonly at: number; readonly cause: string | null } | null;
}

async function statusOf({ url }: HoldfastProcess, run: string): Promise<Status> {
  const runs = url.replace(/\/v1$/, '/holdfast/v1/runs');
  const response = await fetch(`${runs}/${run}`, { headers: { authorization: 'Bearer client-key' } });
  return (await response.json()) as Status;
}

/** Asks a new question, and returns the messages that the provider received. */
async function heard(
  deployment: Deployment,
  { url }: HoldfastProcess,
  question: string,
  headers: Readonly<Record<string, string>>,
  stream = true,
): Promise<readonly object[]> {
  deployment.plan(question, SHORT);
  const messages = [SYSTEM, { role: 'user', content: question }];
  const response = await post(url, { ...streamRequest(MODEL, question, { messages }), stream }, headers);
  expect(response.status).toBe(200);
  await response.text();
  return completionRequest(deployment.requests(question)[0]?.body)?.messages ?? [];
}

const unnoticed = (question: string) => [SYSTEM, { role: 'user', content: question }];
const noticed = (question: string, told: object) => [
  SYSTEM,
  { role: 'system', content: expect.toSatisfy((content: string) => tells(content, told)) },
  { role: 'user', content: question },
];

/** The notice has a fixed form: a name, compact JSON, one sentence. */
function tells(content: string, told: object): boolean {
  const [, json = ''] = /^last_partial_recovery: (\{.*\}) Your previous answer .*\.$/.exec(content) ?? [];
  expect(JSON.parse(json)).toEqual(told);
  return true;
}

describe('a process that is killed in mid-stream and started again', () => {
  let deployment: Deployment;
  let holdfast: HoldfastProcess;
  let partial: StreamClient;
  let unthreaded: StreamClient;
  let mute: StreamClient;
  let finished: RawAnswer;
  let killed_at_ms: number;

  beforeAll(async () => {
    deployment = await Deployment.start({
      checkpoint: { lease_ms: LEASE_MS, interval_ms: 50 },
      resume: { salvage_after_ms: SALVAGE_AFTER_MS },
    });
    const open = async (question: string, plan: Plan, thread?: string) => {
      deployment.plan(question, plan);
      const request = streamRequest(MODEL, question);
      return StreamClient.open(
        deployment.holdfast.url,
        request,
        thread === undefined ? {} : { 'holdfast-thread': thread },
      );
    };
    deployment.plan('whole', SHORT);
    [partial, unthreaded, mute, finished] = await Promise.all([
      open('partial', ENDLESS, 'thread'),
      open('unthreaded', ENDLESS),
      // The headers leave with the first keep-alive.
      open('mute', SILENT, 'mute'),
      rawAnswer(deployment.holdfast.url, streamRequest(MODEL, 'whole')),
    ]);
    await Promise.all([partial, unthreaded].map((client) => client.read()));
    await Promise.all([partial, unthreaded].map((client) => client.received(EVENTS_BEFORE_DEATH)));
    killed_at_ms = Date.now();
    await deployment.holdfast.kill('SIGKILL');
    holdfast = await deployment.addReplica();
    for (const { run } of [partial, unthreaded, mute]) {
      await holdfast.logged((line) => line.msg === 'run salvaged' && line.run === run);
    }
  }, 60_000);
  afterAll(() => deployment.close());

  test('finalises what it left, with a status that says what it is', async () => {
    for (const { run } of [partial, unthreaded]) {
      const status = await statusOf(holdfast, run);
      expect(status).toMatchObject({
        status: 'recovered_from_partial',
        partial: true,
        end: { status: 'recovered_from_partial', at: expect.any(Number), cause: 'replica_lost' },
      });
      expect(status.text).toMatch(/^w0 🌊 w1 🌊/);
      expect(words(3000).startsWith(status.text)).toBe(true);
    }
    expect(await statusOf(holdfast, mute.run)).toMatchObject({
      status: 'failed',
      text: '',
      end: { status: 'failed', cause: 'replica_lost' },
    });
    expect(await statusOf(holdfast, finished.headers.get('holdfast-run-id') ?? '')).toMatchObject({
      status: 'complete',
      partial: false,
    });
  });

  test('counts and logs it once, without a word of what was said', async () => {
    const metrics = await holdfast.metrics();
    expect(metrics.get('holdfast_salvaged_runs_total{status="recovered_from_partial"}')).toBe(2);
    expect(metrics.get('holdfast_salvaged_runs_total{status="failed"}')).toBe(1);
    const lines = holdfast.log.filter(({ msg }) => msg === 'run salvaged');
    expect(lines).toHaveLength(3);
    expect(lines.find(({ run }) => run === partial.run)).toMatchObject({
      status: 'recovered_from_partial',
      cause: 'replica_lost',
      events: expect.any(Number),
    });
    expect(JSON.stringify(holdfast.log)).not.toContain('🌊');
  });

  test('ends the stream of a client that asks for a partial with an error, not as if it were an answer', async () => {
    const runs = holdfast.url.replace(/\/v1$/, '/holdfast/v1/runs');
    const headers = { authorization: 'Bearer client-key' };
    const response = await fetch(`${runs}/${partial.run}/stream`, { headers });
    const body = await response.text();
    expect(body).toContain('"code":"run_salvaged"');
    expect(body).not.toContain('[DONE]');
  });

  test('informs the model in the same thread, once, and no other', async () => {
    const thread = { 'holdfast-thread': 'thread' };
    const strangers: readonly [string, Readonly<Record<string, string>>][] = [
      ['another credential', { ...thread, authorization: 'Bearer other-key' }],
      ['another thread', { 'holdfast-thread': 'other' }],
      ['no thread', {}],
      ['the thread of a run that said nothing', { 'holdfast-thread': 'mute' }],
      ['a client that will not have it', { ...thread, 'holdfast-notices': 'none' }],
    ];
    for (const [question, headers] of strangers) {
      expect(await heard(deployment, holdfast, question, headers)).toEqual(unnoticed(question));
    }
    const { text } = await statusOf(holdfast, partial.run);
    const told = {
      status: 'recovered_from_partial',
      // The time of the last checkpoint, which precedes the kill by up to the checkpoint interval and any delay on a
      // busy machine.
      interrupted_at: expect.toSatisfy((at: string) => Math.abs(Date.parse(at) - killed_at_ms) < LEASE_MS),
      model: MODEL,
      cause: 'replica_lost',
      partial_tail: text.slice(-400).replace(/^[\udc00-\udfff]/, ''),
    };
    expect(await heard(deployment, holdfast, 'next', thread)).toEqual(noticed('next', told));
    expect(await heard(deployment, holdfast, 'after that', thread)).toEqual(unnoticed('after that'));
  });
});

describe('two replicas that live on', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await Deployment.start({
      replicas: 3,
      checkpoint: { lease_ms: LEASE_MS, interval_ms: 50 },
      resume: { salvage_after_ms: SALVAGE_AFTER_MS },
      recovery: { max_attempts: 2 },
    });
  }, 60_000);
  afterAll(() => deployment.close());

  test('finalise the runs of the third once, and any of them tells the model', async () => {
    const [dying, ...living] = deployment.replicas;
    if (!dying) throw new Error('there is nobody to kill');
    const clients = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const question = `orphan ${index}`;
        deployment.plan(question, ENDLESS);
        const headers = { 'holdfast-thread': question };
        const client = await StreamClient.open(dying.url, streamRequest(MODEL, question), headers);
        await client.read();
        return client;
      }),
    );
    await Promise.all(clients.map((client) => client.received(EVENTS_BEFORE_DEATH)));
    await dying.kill('SIGKILL');
    const salvaged = () => living.flatMap(({ log }) => log.filter(({ msg }) => msg === 'run salvaged'));
    while (salvaged().length < clients.length) {
      const before = living.map(({ log }) => log.length);
      await Promise.race(living.map((each, index) => each.logged(() => true, before[index])));
    }
    // Wait for any duplicate, from whichever replica.
    await setTimeout(2 * SALVAGE_AFTER_MS);
    const runs = salvaged().map(({ run }) => run);
    expect(runs).toHaveLength(clients.length);
    expect(new Set(runs)).toEqual(new Set(clients.map(({ run }) => run)));
    const told = await Promise.all(
      clients.map((_, index) => {
        const thread = { 'holdfast-thread': `orphan ${index}` };
        const replica = living[index % living.length] as HoldfastProcess;
        return heard(deployment, replica, `after ${index}`, thread, index < 5);
      }),
    );
    for (const messages of told) expect(messages).toHaveLength(3);
  });

  test('tell the model of an answer on which a clock ran out', async () => {
    const [first, second] = deployment.replicas.slice(1) as [HoldfastProcess, HoldfastProcess];
    const faults = [6, ...Array<number>(ALWAYS).fill(0)].map(
      (event): Fault => ({ kind: 'silence', at: { event } }),
    );
    deployment.plan('stalled', { parts: [{ text: words(50) }], faults });
    const thread = { 'holdfast-thread': 'stalled' };
    const response = await post(first.url, streamRequest(modelOf('impatient'), 'stalled'), thread);
    expect(await response.text()).toContain('"cause":"idle_stall"');
    const run = response.headers.get('holdfast-run-id') ?? '';
    const question = 'stalled, again';
    const told = await heard(deployment, second, question, thread);
    expect(told).toEqual(
      noticed(question, {
        status: 'timeout_partial',
        interrupted_at: expect.any(String),
        model: modelOf('impatient'),
        cause: 'idle_stall',
        partial_tail: expect.stringMatching(/^w0 🌊/),
      }),
    );
    expect(await statusOf(second, run)).toMatchObject({
      status: 'timeout_partial',
      partial: true,
      end: { status: 'timeout_partial', cause: 'idle_stall' },
    });
  });

  test('tell the model of a call that was cut beside one whose result is brought', async () => {
    const [first, second] = deployment.replicas.slice(1) as [HoldfastProcess, HoldfastProcess];
    const question = 'half called';
    deployment.plan(question, {
      parts: [{ text: 'I look.' }, { tool: BREST }, { tool: callTo('call_lorient', 'Lorient') }],
      faults: [{ kind: 'reset', at: { event: 14 } }],
    });
    const request = streamRequest(MODEL, question, { tools: TOOLS });
    const answer = await rawAnswer(first.url, request);
    expect(answer).toMatchObject({ toolCalls: [BREST], finish: 'tool_calls', done: true });
    const messages = [
      ...request.messages,
      {
        role: 'assistant',
        content: answer.text,
        tool_calls: answer.toolCalls.map(({ id, name, arguments: json }) => ({
          id,
          type: 'function',
          function: { name, arguments: json },
        })),
      },
      { role: 'tool', tool_call_id: BREST.id, content: 'High water at noon.' },
    ];
    const hint = { role: 'user', content: expect.stringMatching(/one more, to `tides`, was cut off/) };
    const before = deployment.requests(question).length;
    for (const replica of [second, first]) await (await post(replica.url, { ...request, messages })).text();
    const [told, again] = deployment.requests(question).slice(before);
    expect(completionRequest(told?.body)?.messages).toEqual([...messages, hint]);
    expect(completionRequest(again?.body)?.messages).toEqual(messages);
  });
});
