import { describe, expect, test, vi } from 'vitest';
import { foldJournal } from '../../src/checkpoint/journal-fold.ts';
import type { StoredRun } from '../../src/checkpoint/store.ts';
import { resumable } from '../../src/client/index.ts';
import { needs } from '../needs.ts';
import { type Chunk, chunksOf } from '../provider/reading.ts';
import { completionRequest, textOf as contentOfMessage } from '../provider/request.ts';
import type { Part, Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import type { Deployment } from './deployment.ts';
import { FailoverDeployment } from './failover-deployment.ts';
import { post } from './raw-client.ts';
import { callsOf, callTo, textOf } from './situations.ts';
import { payloadsOf } from './stream-client.ts';
import { beginTalk, fetchRun, RESUMABLE, repeatTalk, resumeTalk, saidBy, talkRequest } from './talk.ts';

vi.setConfig({ testTimeout: 180_000 });

const CALLS = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];
const words = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index} 🌊`).join(' ');

/** Slow enough for a failover in the middle. The model accepts prefills. */
const talk = (...parts: readonly Part[]): Plan => ({ parts, delay_ms: 6, prefill: 'vllm' });
/** An answer that outlives its replica: it stalls after this many events. */
const stalled = (plan: Plan, event: number): Plan => ({
  ...plan,
  faults: [{ kind: 'silence', at: { event } }],
});

const TALK = talk({ text: words('w', 400) }, { tools: CALLS });
const STALLED_TALK = stalled(TALK, 700);

/** What an application has of the whole answer. */
const all = (plan: Plan) => ({
  text: textOf(plan),
  calls: callsOf(plan),
  finish: ['tool_calls'],
  done: true,
});

/** The content of each event. Of text events, only the text is stored. */
const sayings = (payloads: readonly string[]) =>
  payloads.map((payload) => {
    if (payload === '[DONE]') return payload;
    const { choices, usage } = JSON.parse(payload) as Chunk;
    const { delta, finish_reason } = choices[0] ?? {};
    return { ...delta, finish_reason, usage: usage ?? undefined };
  });

/** Checks for a single answer: one id, one model, one role, one usage report and one end. */
function expectOneAnswer(payloads: readonly string[]): void {
  const chunks = chunksOf(payloads.map((payload) => `data: ${payload}`).join('\n'));
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  expect(new Set(chunks.map(({ model }) => model)).size).toBe(1);
  expect(chunks.filter(({ choices }) => choices[0]?.delta.role !== undefined)).toHaveLength(1);
  expect(chunks.filter(({ usage }) => usage)).toHaveLength(1);
  expect(payloads.filter((payload) => payload === '[DONE]')).toHaveLength(1);
}

/** The part of its answer that the model was given when asked for the rest, which happens once. */
function continuedFrom(deployment: Deployment, question: string): string {
  const [, second, ...others] = deployment.requests(question);
  expect(others).toEqual([]);
  const prefix = completionRequest(second?.body)?.messages.at(-1);
  expect(prefix?.role).toBe('assistant');
  return contentOfMessage(prefix);
}

function expectStored(stored: StoredRun, plan: Plan): void {
  expect(stored).toMatchObject({ status: 'complete', epoch: 2 });
  expect(stored).not.toHaveProperty('damage');
  const { text, tool_calls, finish, seq } = foldJournal(stored.records);
  expect({ text, finish }).toEqual({ text: textOf(plan), finish: 'tool_calls' });
  expect(tool_calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json }))).toEqual(CALLS);
  expect(seq).toBe(stored.seq);
}

async function expectAhead(response: Response, code = 'cursor_ahead'): Promise<void> {
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ error: { code } });
}

const binary = await redisBinary();

if ('missing' in binary) test('a failover of Redis', needs(binary), () => {});
else describe('a failover to a Redis that lacks the tail of the log', () => describeFailover(binary.path));

function describeFailover(redis: string): void {
  test('is healed by a client with what it has, and nothing is ever spliced without', async () => {
    const failover = await FailoverDeployment.start(redis);
    const { holdfast: deployment } = failover;
    const { holdfast, other } = deployment;
    const client = await beginTalk(deployment, 'lost', RESUMABLE, STALLED_TALK);
    deployment.plan('uncut', TALK);
    const uncut = repeatTalk(other, 'uncut');
    const { run } = client;
    const kept = await failover.failOver(run);
    await holdfast.logged(({ err }) => /has lost the events after/.test(String(Object(err).message)));
    await holdfast.kill('SIGKILL');
    await client.ended();
    const had = client.payloads;
    const cursor = had.length;
    const remains = await failover.stored(run);
    expect(remains).toMatchObject({ status: 'running', seq: kept, epoch: 1 });
    expect(saidBy(had)).toMatchObject({ finish: [], done: false });

    const id = (epoch: number) => ({ 'last-event-id': `${run}.${epoch}.${cursor}` });
    const resume = (tail: readonly string[]) =>
      fetchRun(other, `${run}/resume`, {
        method: 'POST',
        headers: { ...RESUMABLE, 'content-type': 'application/json' },
        body: JSON.stringify({ cursor, tail }),
      });
    const expectNothingSpliced = async () => {
      await expectAhead(await fetchRun(other, `${run}/stream?starting_after=${cursor}`));
      await expectAhead(await fetchRun(other, `${run}/stream`, { headers: id(1) }));
      await expectAhead(await resume([]));
      // Lacks one of the lost events.
      await expectAhead(await resume(had.slice(kept + 1)), 'tail_incomplete');
      // Starts with an event that differs from the stored one.
      await expectAhead(await resume(had.slice(kept - 1).with(0, had[kept - 2] ?? '')), 'tail_mismatch');
    };
    await expectNothingSpliced();
    expect(deployment.requests('lost')).toHaveLength(1);
    expect(await failover.stored(run)).toMatchObject({ epoch: 1, seq: kept, records: remains.records });

    const response = await resume(had.slice(kept));
    expect(response.status).toBe(200);
    const body = await response.text();
    const rest = payloadsOf(body);
    const whole = [...had, ...rest];
    expect(saidBy(whole)).toEqual(all(TALK));
    expect(saidBy(whole)).toEqual(saidBy((await uncut).payloads));
    expectOneAnswer(whole);
    const ids = body.match(/(?<=^id: ).*$/gm)?.map((sent) => sent.replace(/-[0-9a-f]{8}\./, '.'));
    expect(ids).toEqual(rest.map((_, index) => `${run}.2.${cursor + 1 + index}`));
    expect(continuedFrom(deployment, 'lost')).toBe(saidBy(had).text.trimEnd());

    const stored = await failover.sealed(run);
    expectStored(stored, TALK);
    expect(stored).toMatchObject({ takeovers: [{ seq: kept }], seq: whole.length });
    const replayed = await fetchRun(other, `${run}/stream?starting_after=0`);
    expect(sayings(payloadsOf(await replayed.text()))).toEqual(sayings(whole));
    await expectNothingSpliced();
    const repeated = await resume(had.slice(kept));
    expect(sayings(payloadsOf(await repeated.text()))).toEqual(sayings(rest));
    expect(deployment.requests('lost')).toHaveLength(2);
  });

  test('is not noticed by the fetch of holdfast/client', async () => {
    const failover = await FailoverDeployment.start(redis);
    const { holdfast: deployment } = failover;
    const { holdfast, other } = deployment;
    deployment.plan('lost', STALLED_TALK);
    const endpoints = deployment.replicas.map(({ url }) => url);
    const fetch = resumable({ endpoints, maxRetries: 100 });
    const response = await post(holdfast.url, talkRequest('lost'), {}, undefined, fetch);
    const run = response.headers.get('holdfast-run-id') ?? '';
    let said = '';
    const read = (async () => {
      for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) said += text;
    })();
    await vi.waitFor(() => expect(said).toContain('w15"'), { timeout: 20_000, interval: 5 });
    const kept = await failover.failOver(run);
    await holdfast.kill('SIGKILL');
    await read;

    const whole = payloadsOf(said);
    expect(saidBy(whole)).toEqual(all(TALK));
    expectOneAnswer(whole);
    const { from } = await other.logged(({ msg }) => msg === 'taken over');
    expect(from).toBe(kept);
    const prefix = continuedFrom(deployment, 'lost');
    expect(textOf(TALK).startsWith(prefix)).toBe(true);
    const stored = await failover.sealed(run);
    const { text } = foldJournal(stored.records.filter(({ seq }) => seq <= kept));
    expect(prefix.length).toBeGreaterThan(text.length);
    expectStored(stored, TALK);
    expect(stored).toMatchObject({ takeovers: [{ seq: kept }], seq: whole.length });
    const replayed = await fetchRun(other, `${run}/stream?starting_after=0`);
    expect(sayings(payloadsOf(await replayed.text()))).toEqual(sayings(whole));
  });

  test('has no call made again that its client was shown', async () => {
    const failover = await FailoverDeployment.start(redis);
    const { holdfast: deployment } = failover;
    const before = { text: words('w', 300) };
    const plan = talk(before, { tools: CALLS }, { text: words('x', 400) });
    const client = await beginTalk(deployment, 'settled', RESUMABLE, stalled(plan, 1000));
    const { run } = client;
    const settled = ({ records }: StoredRun) => foldJournal(records).tool_calls.length === CALLS.length;
    await failover.failOver(run, settled);
    expect(foldJournal((await failover.stored(run)).records).tool_calls).toEqual([]);
    await deployment.holdfast.kill('SIGKILL');
    await client.ended();
    const had = client.payloads;
    expect(saidBy(had).calls).toEqual(CALLS);

    await expectAhead(await fetchRun(deployment.other, `${run}/stream?starting_after=${had.length}`));
    const response = await resumeTalk(deployment.other, client, had.length);
    expect(response.status).toBe(200);
    const whole = [...had, ...payloadsOf(await response.text())];
    expect(saidBy(whole)).toEqual({ ...all(plan), text: saidBy(had).text });
    expectOneAnswer(whole);
    expect(deployment.requests('settled')).toHaveLength(1);
    const stored = await failover.sealed(run);
    expectStored(stored, { parts: [{ text: saidBy(had).text }] });
  });

  test('leaves a replica that survives it with a partial, and its client with the whole answer, which it can have stored again', async () => {
    const failover = await FailoverDeployment.start(redis);
    const { holdfast: deployment } = failover;
    const { other } = deployment;
    const client = await beginTalk(deployment, 'survived', RESUMABLE, TALK);
    const { run } = client;
    const kept = await failover.failOver(run);
    await client.ended();
    const { payloads } = client;
    expect(saidBy(payloads)).toEqual({ ...all(TALK), done: expect.anything() });
    expect(await failover.sealed(run)).toMatchObject({ status: 'recovered_from_partial', seq: kept });
    await expectAhead(await fetchRun(other, `${run}/stream?starting_after=${payloads.length}`));
    // From now on, what the client brings is a run of its own.
    const own = await Promise.all([1, 2].map(() => resumeTalk(other, client, payloads.length)));
    const fork = own[0]?.headers.get('holdfast-run-id') ?? '';
    expect(fork).not.toBe(run);
    expect(own.map(({ headers }) => headers.get('holdfast-run-id'))).toEqual([fork, fork]);
    for (const response of own) expect(payloadsOf(await response.text())).toEqual(['[DONE]']);
    const whole = await failover.sealed(fork);
    expect(whole).toMatchObject({ status: 'complete', seq: payloads.length + 1 });
    expect(foldJournal(whole.records).text).toBe(textOf(TALK));
    // A client with fewer events gets what is stored, and learns that it is incomplete.
    const partial = payloadsOf(await (await fetchRun(other, `${run}/stream?starting_after=0`)).text());
    expect(saidBy(partial)).toMatchObject({
      text: saidBy(payloads.slice(0, kept)).text,
      finish: [],
      done: false,
    });
    expect(JSON.parse(partial.at(-1) ?? '')).toHaveProperty('error.holdfast.partial', true);
    expect(deployment.requests('survived')).toHaveLength(1);
  });
}
