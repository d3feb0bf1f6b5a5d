import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { segmentName } from '../../src/checkpoint/file/names.ts';
import type { RunId } from '../../src/checkpoint/store.ts';
import { linesOf } from '../checkpoint/file/damaged-run.ts';
import { needs } from '../needs.ts';
import { completionRequest } from '../provider/request.ts';
import type { Plan } from '../provider/script.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { Deployment } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post } from './raw-client.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';
import {
  ALL_OF_TALK,
  beginTalk,
  fetchRun,
  RESUMABLE,
  repeatTalk,
  saidBy,
  TALK,
  talkRequest,
} from './talk.ts';

const AGENT = fileURLToPath(new URL('clients/agent-process.ts', import.meta.url));
const LEASE_MS = 1000;
const SALVAGE_AFTER_MS = 500;
const ONCE = { prefill: 'vllm', delay_ms: 8 } as const;
const TEXT = Array.from({ length: 150 }, (_, index) => `row ${index}, the tide`).join('; ');
const TEXT_TALK: Plan = { parts: [{ text: TEXT }], ...ONCE };

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({
    replicas: 2,
    checkpoint: { lease_ms: LEASE_MS },
    resume: { detached_ms: 60_000, salvage_after_ms: SALVAGE_AFTER_MS },
  });
});
afterAll(() => deployment.close());

/** The prefix in each request to the provider. */
const prefixes = (question: string, asked: Deployment = deployment) =>
  asked.requests(question).map(({ body }) => {
    const last = completionRequest(body)?.messages.at(-1);
    return last?.role === 'assistant' ? String(last.content) : undefined;
  });

/** Checks that nothing was paid for twice: one request, and one for the rest, from where the first one was left. */
function expectPaidOnce(question: string, whole: string, seen: string): void {
  const [first, rest, ...more] = prefixes(question);
  expect(first).toBeUndefined();
  expect(more).toEqual([]);
  expect(whole.startsWith(rest ?? ' ')).toBe(true);
  expect(rest?.length).toBeGreaterThanOrEqual(seen.trimEnd().length);
}

const endOf = (replica: HoldfastProcess, run: string) =>
  replica.logged((line) => line.msg === 'run ended' && line.run === run);

/** Repeats the request, and summarises the response. */
async function repeated(replica: HoldfastProcess, question: string, headers: Record<string, string> = {}) {
  const response = await post(replica.url, talkRequest(question), headers);
  return {
    status: response.status,
    replayed: response.headers.get('holdfast-replayed'),
    run: response.headers.get('holdfast-run-id'),
    said: saidBy(payloadsOf(await response.text())),
  };
}

describe('an agent that crashes and comes back, with a stock SDK, without a key', () => {
  const start = (replica: HoldfastProcess, question: string): ChildProcess =>
    spawn(process.execPath, [AGENT, replica.url, JSON.stringify(talkRequest(question))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  test.each([
    ['to the same replica', () => deployment.holdfast],
    ['to another one', () => deployment.other],
  ])('%s has the whole text, which was paid for once', async (where, replicaOf) => {
    const question = `agent ${where}`;
    deployment.plan(question, TEXT_TALK);
    const crashing = start(deployment.holdfast, question);
    let seen = '';
    for await (const piece of crashing.stdout ?? []) {
      seen += String(piece);
      if (seen.length > 200) crashing.kill('SIGKILL');
    }
    if (crashing.exitCode === null && crashing.signalCode === null) await once(crashing, 'exit');
    expect(crashing.signalCode).toBe('SIGKILL');
    expect(seen.length).toBeLessThan(TEXT.length);

    const again = start(replicaOf(), question);
    if (!again.stdout) throw new Error('the agent has no output');
    expect(await text(again.stdout)).toBe(TEXT);
    expectPaidOnce(question, TEXT, seen);
  });
});

describe('the same request', () => {
  test('after its client left has what was delivered and the rest, and says so', async () => {
    const client = await beginTalk(deployment, 'left', {}, TALK);
    const seen = saidBy(client.payloads).text;
    client.leave();
    const again = await repeated(deployment.holdfast, 'left');
    expect(again).toMatchObject({ status: 200, replayed: 'true', said: ALL_OF_TALK });
    expect(again.run).not.toBe(client.run);
    expectPaidOnce('left', ALL_OF_TALK.text, seen);
    const status = await fetchRun(deployment.holdfast, again.run ?? '');
    expect(await status.json()).toMatchObject({ status: 'complete', continues: client.run });
    const before = await fetchRun(deployment.holdfast, client.run);
    expect(await before.json()).toMatchObject({ status: 'cancelled', end: { cause: 'client_left' } });
  });

  test('with a key has it as well, on another replica, and then for good', async () => {
    const key = { 'idempotency-key': 'left with a key' };
    const client = await beginTalk(deployment, 'left with a key', key, TALK);
    const seen = saidBy(client.payloads).text;
    client.leave();
    const again = await repeated(deployment.other, 'left with a key', key);
    expect(again).toMatchObject({ status: 200, replayed: 'true', said: ALL_OF_TALK });
    expect(await repeated(deployment.holdfast, 'left with a key', key)).toEqual(again);
    expectPaidOnce('left with a key', ALL_OF_TALK.text, seen);
  });

  test('reports the recovery, if that is asked for', async () => {
    const events = { 'holdfast-events': 'comments' };
    const client = await beginTalk(deployment, 'left with events', events, TALK);
    client.leave();
    const response = await post(deployment.holdfast.url, talkRequest('left with events'), events);
    expect(await response.text()).toMatch(/^: holdfast \{"type":"Recovered","plan":"R1",/m);
  });

  test('without `stream` has the document of the answer that was cut', async () => {
    const client = await beginTalk(deployment, 'left, then whole', {}, TEXT_TALK);
    const seen = saidBy(client.payloads).text;
    client.leave();
    const {
      stream: _,
      stream_options: __,
      ...whole
    } = talkRequest('left, then whole') as Record<string, unknown>;
    const response = await post(deployment.holdfast.url, whole);
    const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
    expect(choices[0].message.content).toBe(TEXT);
    expect(response.headers.get('holdfast-replayed')).toBe('true');
    expectPaidOnce('left, then whole', TEXT, seen);
  });

  test('is attached to a run that continues without its client', async () => {
    const client = await beginTalk(deployment, 'detached', RESUMABLE, TALK);
    client.leave();
    const again = await repeated(deployment.other, 'detached', RESUMABLE);
    expect(again).toMatchObject({ replayed: 'true', run: client.run, said: ALL_OF_TALK });
    expect(deployment.requests('detached')).toHaveLength(1);
  });

  test('is answered with a run that was finished without its client', async () => {
    const client = await beginTalk(deployment, 'finished', RESUMABLE, TALK);
    client.leave();
    await endOf(deployment.holdfast, client.run);
    const again = await repeated(deployment.other, 'finished', RESUMABLE);
    expect(again).toMatchObject({ replayed: 'true', run: client.run, said: ALL_OF_TALK });
    // The client has now had the whole answer, so the next request asks for another sample.
    const sample = await repeated(deployment.other, 'finished', RESUMABLE);
    expect(sample).toMatchObject({ replayed: null, said: ALL_OF_TALK });
    expect(deployment.requests('finished')).toHaveLength(2);
  });

  test('is another run after the first one was cancelled, with or without a key', async () => {
    for (const headers of [{}, { 'idempotency-key': 'cancelled' }]) {
      const question = `cancelled ${Object.keys(headers).length}`;
      const client = await beginTalk(deployment, question, headers, TALK);
      await fetchRun(deployment.holdfast, client.run, { method: 'DELETE' });
      await client.ended();
      expect(await repeated(deployment.holdfast, question, headers)).toMatchObject({
        replayed: null,
        said: ALL_OF_TALK,
      });
      expect(prefixes(question)).toEqual([undefined, undefined]);
    }
  });

  test('of another owner, or with other content, is another run', async () => {
    const client = await beginTalk(deployment, 'owned', {}, TALK);
    client.leave();
    await endOf(deployment.holdfast, client.run);
    const stranger = await repeated(deployment.holdfast, 'owned', { authorization: 'Bearer a stranger' });
    expect(stranger).toMatchObject({ replayed: null, said: ALL_OF_TALK });
    const warmer = { ...talkRequest('owned'), temperature: 1 };
    const response = await post(deployment.holdfast.url, warmer);
    expect(response.headers.get('holdfast-replayed')).toBeNull();
    await response.text();
    expect(prefixes('owned')).toEqual([undefined, undefined, undefined]);
  });

  test('made several times side by side has an answer for each, whichever of them leaves', async () => {
    const question = 'samples';
    deployment.plan(question, TALK);
    const open = () => StreamClient.open(deployment.holdfast.url, talkRequest(question));
    const samples = await Promise.all([open(), open(), open()]);
    const [first, ...others] = samples;
    await Promise.all(samples.map((sample) => sample.read()));
    if (!first) throw new Error('there is no sample');
    first.leave();
    await endOf(deployment.holdfast, first.run);
    const [goesOn, ownOne] = await Promise.all([
      repeated(deployment.holdfast, question),
      repeated(deployment.holdfast, question),
    ]);
    await Promise.all(others.map((sample) => sample.ended()));
    // `payloads` doesn't include `[DONE]`.
    for (const sample of others) expect(saidBy(sample.payloads)).toEqual({ ...ALL_OF_TALK, done: false });
    for (const { said } of [goesOn, ownOne]) expect(said).toEqual(ALL_OF_TALK);
    const runs = [...samples.map(({ run }) => run), goesOn.run, ownOne.run];
    expect(new Set(runs).size).toBe(runs.length);
    // Only one request continues the run that was left.
    expect([goesOn, ownOne].filter(({ replayed }) => replayed === 'true')).toHaveLength(1);
  });
});

/** A place to store runs, and a way to damage a finished run in the middle. */
interface DamagedPlace {
  readonly options: Parameters<typeof Deployment.start>[0];
  damage(run: string, directory: string): Promise<void>;
  stop?(): Promise<void>;
}

const PLACES: Record<string, () => Promise<DamagedPlace>> = {
  files: async () => ({
    options: {},
    async damage(run, directory) {
      const path = join(directory, segmentName(1));
      const records = linesOf(readFileSync(path), run as RunId).filter(({ kind }) => kind === 'r');
      const middle = records[Math.floor(records.length / 2)];
      const file = openSync(path, 'r+');
      writeSync(file, 'x', (middle?.end ?? 0) - 3);
      closeSync(file);
    },
  }),
};

const redis = await redisBinary();
if ('missing' in redis) test('a damaged run in Redis', needs(redis), () => {});
else
  PLACES.Redis = async () => {
    const server = await RedisServer.start({ binary: redis.path });
    return {
      options: {
        secret: 'the secret that both replicas share',
        checkpoint: { store: server.url },
      },
      async damage(run) {
        const log = `holdfast:{${run}}:log`;
        const entries = await server.admin.xrange(log, '-', '+');
        await server.admin.xdel(log, entries[Math.floor(entries.length / 2)]?.[0] ?? '');
      },
      stop: () => server.stop(),
    };
  };

describe.each(Object.keys(PLACES))('a complete run whose journal is damaged, in %s', (name) => {
  let place: DamagedPlace;
  let damaged: Deployment;
  beforeAll(async () => {
    place = await (PLACES[name] as () => Promise<DamagedPlace>)();
    damaged = await Deployment.start({ ...place.options, replicas: 2 });
  });
  afterAll(async () => {
    await expect(damaged.close()).rejects.toThrow('is damaged in record');
    await place.stop?.();
  });

  test.each<[string, Record<string, string>, 'POST' | 'GET']>([
    ['whose request comes again with its key', { 'idempotency-key': 'damaged' }, 'POST'],
    ['whose request was kept', RESUMABLE, 'GET'],
  ])('%s keeps what is valid, and continues from there', async (what, headers, method) => {
    const question = `damaged, ${what}`;
    damaged.plan(question, TEXT_TALK);
    const { run } = await repeatTalk(damaged.holdfast, question, headers);
    if (run === null) throw new Error('the run has no id');
    await endOf(damaged.holdfast, run);
    await place.damage(run, damaged.store);
    const response =
      method === 'POST'
        ? await post(damaged.other.url, talkRequest(question), headers)
        : await fetchRun(damaged.other, `${run}/stream`);
    expect(response.headers.get('holdfast-replayed')).toBe('true');
    expect(response.headers.get('holdfast-run-id')).not.toBe(run);
    expect(saidBy(payloadsOf(await response.text())).text).toBe(TEXT);
    const [, rest] = prefixes(question, damaged);
    expect(TEXT.startsWith(rest ?? ' ')).toBe(true);
    const found = await damaged.other.logged(
      ({ msg, continues }) => msg === 'a new run continues what is left of another' && continues === run,
    );
    expect(found).toMatchObject({ from: expect.any(Number) });
  });
});

describe('a request whose replica was killed and whose run was salvaged', () => {
  test('has what was delivered, and the answer continues from there; its model gets no notice', async () => {
    const killed = await deployment.addReplica();
    const thread = { 'holdfast-thread': 'salvaged' };
    const client = await beginTalk(deployment, 'salvaged', thread, TALK, killed);
    await killed.kill('SIGKILL');
    const salvaged = (replica: HoldfastProcess) =>
      replica.logged(({ msg, run }) => msg === 'run salvaged' && run === client.run);
    await Promise.race([salvaged(deployment.holdfast), salvaged(deployment.other)]);
    const again = await repeated(deployment.other, 'salvaged', thread);
    expect(again).toMatchObject({ status: 200, replayed: 'true', said: ALL_OF_TALK });
    // The journal may lack the last events delivered.
    expectPaidOnce('salvaged', ALL_OF_TALK.text, 'w0');

    deployment.plan('afterwards', TEXT_TALK);
    await repeatTalk(deployment.other, 'afterwards', thread);
    expect(JSON.stringify(deployment.requests('afterwards')[0]?.body)).not.toContain('last_partial_recovery');
  });
});
