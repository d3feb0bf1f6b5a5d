import { describe, expect, it, vi } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import type { Reader } from '../../../src/proxy/resume/reader.ts';
import type { Run } from '../../../src/proxy/run/context/run.ts';
import type { Relay } from '../../../src/proxy/run/context/run-context.ts';
import { HEADER, HEADER_RECORD, SMALL_RUN, textRecord } from '../../checkpoint/fixtures.ts';
import { startReplica } from '../../replica.ts';
import {
  BODY,
  CREDENTIAL,
  deploy,
  errorOf,
  fetchRun,
  notingFollow,
  OWNER,
  postChat,
  resume,
  STRANGER,
  textRun,
  UPSTREAM,
} from '../run-deployment.ts';

const TWO_TARGETS = {
  upstreams: {
    ...UPSTREAM.upstreams,
    other: { base_url: 'http://127.0.0.1:9/other', api_key: 'key of the other' },
  },
  routes: [{ model: '*', targets: [{ upstream: 'provider' }, { upstream: 'other' }] }],
};

describe('a run that a client comes back to', () => {
  /** The runs that would be relayed after a takeover. */
  async function revived(headers: Record<string, string>, header = HEADER) {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin([{ ...HEADER_RECORD, header }]);
    const runs: (Run | undefined)[] = [];
    const posted = await postChat(replica, { ...headers, 'holdfast-run-id': run });
    await posted.text();
    const streamed = await fetchRun(replica, `${run}/stream`, { headers });
    await streamed.text();
    for (const reader of readers) runs.push(reader.revive(header));
    return { run, posted: runs[0], streamed: runs[1] };
  }

  it('is revived from the request that comes again', async () => {
    const { run, posted, streamed } = await revived({ 'holdfast-resume': '1', 'last-event-id': '0' });
    expect(posted).toMatchObject({
      id: run,
      owner: OWNER,
      body: BODY,
      request: { model: 'gpt-test' },
      target: { name: 'provider' },
      events: 'none',
      resumable: true,
    });
    expect(posted?.target.headers).toMatchObject({
      authorization: 'Bearer sk-configured',
      'content-type': 'application/json',
    });
    expect(Object.keys(posted?.target.headers ?? {})).not.toContain('last-event-id');
    // This request doesn't say what was asked.
    expect(streamed).toBeUndefined();
  });

  it('is revived from the request that was stored, with the headers of the one that comes now', async () => {
    const stored = JSON.stringify({
      model: 'other',
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
    });
    const header = { ...HEADER, body: stored, events: 'chunks', thread: 'a thread' } as const;
    const { posted, streamed } = await revived({}, header);
    for (const run of [posted, streamed]) {
      expect(run).toMatchObject({
        body: stored,
        request: { model: 'other' },
        events: 'chunks',
        thread: 'a thread',
        resumable: false,
      });
      expect(run?.target.headers).toMatchObject({ 'content-type': 'application/json' });
    }
  });

  it('continues where it was begun, with the other targets of its route behind that', async () => {
    const { replica, begin, readers } = await deploy({}, TWO_TARGETS);
    const { run } = await begin(textRun);
    await (await postChat(replica, { 'holdfast-run-id': run })).text();
    const revived = (upstream: string) => {
      const { target, targets } = readers[0]?.revive({ ...HEADER, upstream }) ?? {};
      return {
        target: target?.name,
        key: target?.headers.authorization,
        all: targets?.map(({ name }) => name),
      };
    };
    const all = ['provider', 'other'];
    expect(revived('other')).toEqual({ target: 'other', key: 'Bearer key of the other', all });
    expect(revived('provider')).toEqual({ target: 'provider', key: 'Bearer sk-configured', all });
    expect(revived('no longer configured').target).toBe('provider');
  });

  it('with its id in a POST, is followed from the start or from the last event', async () => {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin(textRun);
    await (await postChat(replica, { 'holdfast-run-id': run })).text();
    await (await postChat(replica, { 'holdfast-run-id': run, 'last-event-id': `${run}.1.2` })).text();
    expect(readers).toMatchObject([{ cursor: 0 }, { cursor: 2, epoch: '1' }]);
  });

  it('with its id in a POST of another request, is not: no answer is put together from two', async () => {
    const begun: Run[] = [];
    const relay: Relay = async (run, client, { store }) => {
      begun.push(run);
      const header = { ...HEADER, ...(run.digest !== undefined && { digest: run.digest }) };
      await store.append(await store.acquire(run.id, run.owner), [{ ...HEADER_RECORD, header }]);
      client.open({ 'holdfast-run-id': run.id });
      client.end('data: first\n\n');
      return 'failed';
    };
    const { replica, readers } = await deploy({ relay });
    await (await postChat(replica)).text();
    const back = { 'holdfast-run-id': begun[0]?.id ?? '' };

    const other = await postChat(replica, back, BODY.replace('hi', 'other'));
    expect(await errorOf(other)).toMatchObject({ status: 422, code: 'run_mismatch' });
    expect(readers).toEqual([]);
    expect(await (await postChat(replica, { ...back, 'holdfast-events': 'chunks' })).text()).toContain(
      'after 0',
    );
    expect(readers[0]?.revive(undefined)?.digest).toBeDefined();
  });

  it('by repeating its request, is followed from the start when it was orphaned', async () => {
    const relayed: Run[] = [];
    const relay: Relay = async (run, client, { store }) => {
      relayed.push(run);
      await store.acquire(run.id, run.owner).then((lease) => store.append(lease, textRun));
      client.open({});
      client.end('data: first\n\n');
      return 'complete';
    };
    const runs = new MemoryRuns();
    const readers: Reader[] = [];
    const [first, second] = await Promise.all(
      [1, 2].map(() => startReplica(UPSTREAM, { relay, follow: notingFollow(readers), runs })),
    );
    if (!first || !second) throw new Error('there is no deployment');
    expect(await (await postChat(first)).text()).toBe('data: first\n\n');
    await first.store.close();
    const last = { 'last-event-id': 'of another stream' };
    expect(await (await postChat(second, last)).text()).toBe('data: after 0 of 2\n\n');
    expect(readers).toMatchObject([{ run: relayed[0]?.id, cursor: 0 }]);
    // As if the second replica had died, too.
    expect(await (await postChat(second)).text()).toBe('data: after 0 of 2\n\n');
    expect(await (await postChat(second, STRANGER)).text()).toBe('data: first\n\n');
    expect(relayed).toHaveLength(2);
  });

  it('by its key, is followed from the start, and refused with another request', async () => {
    const relayed: Run[] = [];
    const { replica, readers } = await deploy({
      relay: async (run, client, { store }) => {
        relayed.push(run);
        const lease = await store.acquire(run.id, run.owner);
        await store.append(lease, SMALL_RUN);
        await store.finish(lease, { status: 'complete', at_ms: 0 });
        client.open({});
        client.end('data: first\n\n');
        return 'complete';
      },
    });
    const key = { 'idempotency-key': 'a key' };
    expect(await (await postChat(replica, key)).text()).toBe('data: first\n\n');
    expect(await (await postChat(replica, key)).text()).toBe('data: after 0 of 7\n\n');
    const other = BODY.replace('hi', 'other');
    expect(await errorOf(await postChat(replica, key, other))).toMatchObject({
      status: 422,
      code: 'idempotency_mismatch',
    });
    expect(await (await postChat(replica, { ...key, ...STRANGER }, other)).text()).toBe('data: first\n\n');
    expect(relayed).toHaveLength(2);
    expect(readers).toMatchObject([{ run: relayed[0]?.id, cursor: 0 }]);
    expect(Object.keys(relayed[0]?.target.headers ?? {})).not.toContain('idempotency-key');
  });
});

describe('a run that was begun while its store failed, so that nothing is known of it', () => {
  const MESSAGES = JSON.stringify({
    model: 'gpt-test',
    max_tokens: 9,
    stream: true,
    messages: [{ role: 'user', content: 'hi' }],
  });
  const REQUEST = { path: '/v1/messages', body: MESSAGES };
  const MESSAGE = { cursor: 1, tail: [JSON.stringify({ type: 'message_start', message: { id: 'msg_1' } })] };
  const chunk = (delta: object, finish_reason?: string) =>
    JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] });

  async function orphaned() {
    const deployment = await deploy();
    const { run } = await deployment.begin([]);
    await deployment.other.close();
    return { ...deployment, run };
  }

  it('is asked for with its request, before a stream is opened', async () => {
    const { replica, run, readers } = await orphaned();
    const unknown = { status: 409, code: 'not_resumable' };
    expect(await errorOf(await resume(replica, run, { cursor: 0 }))).toMatchObject(unknown);
    expect(await errorOf(await resume(replica, run, MESSAGE))).toMatchObject(unknown);
    expect(await errorOf(await fetchRun(replica, `${run}/stream`))).toMatchObject(unknown);
    expect(readers).toEqual([]);
  });

  it('is revived from the request that is brought', async () => {
    const { replica, run, readers } = await orphaned();
    const headers = { 'holdfast-resume': '1', 'holdfast-events': 'chunks' };
    const response = await resume(replica, run, { ...MESSAGE, request: REQUEST }, headers);
    expect(await response.text()).toBe('data: after 1 of 0\n\n');
    expect(readers).toMatchObject([{ ...MESSAGE, asked: { wire: 'messages', events: 'chunks' } }]);
    const { wire, ...revived } = readers[0]?.revive(undefined) ?? {};
    expect(wire?.name).toBe('messages');
    expect(revived).toMatchObject({ id: run, body: MESSAGES, events: 'chunks', resumable: true });
  });

  it('needs no request if what its client brings has its end', async () => {
    const { replica, run, readers } = await orphaned();
    const tail = [chunk({ content: 'Hello' }), chunk({}, 'stop')];
    expect((await resume(replica, run, { cursor: 2, tail })).status).toBe(200);
    expect(readers).toHaveLength(1);
  });

  it('is waited for while its replica lives', async () => {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin([]);
    expect((await resume(replica, run, { cursor: 0 })).status).toBe(200);
    expect(readers).toHaveLength(1);
  });

  it('is not joined to events that no replica has, with or without a request', async () => {
    const { replica, run } = await orphaned();
    for (const more of [{}, { request: REQUEST }]) {
      const response = await resume(replica, run, { ...MESSAGE, cursor: 2, ...more });
      expect(await errorOf(response)).toMatchObject({ status: 409, code: 'tail_incomplete' });
    }
  });

  it('does not continue after the beginning of a call that was to be shown whole', async () => {
    const { replica, run } = await orphaned();
    const call = { type: 'tool_use', id: 'toolu_1', name: 'forecast', input: {} };
    const start = JSON.stringify({ type: 'content_block_start', index: 0, content_block: call });
    const had = { cursor: 2, tail: [...MESSAGE.tail, start], request: REQUEST };
    expect(await errorOf(await resume(replica, run, had))).toMatchObject({ code: 'tail_mismatch' });
    expect((await resume(replica, run, had, { 'holdfast-events': 'chunks' })).status).toBe(200);
  });
});

it('a request that is brought to the run of another one is refused', async () => {
  const { replica, begin, other } = await deploy();
  const { run } = await begin([{ ...HEADER_RECORD, header: { ...HEADER, digest: 'of another request' } }]);
  await other.close();
  const request = { path: '/v1/chat/completions', body: BODY };
  expect(await errorOf(await resume(replica, run, { cursor: 0, request }))).toMatchObject({
    status: 422,
    code: 'run_mismatch',
  });
});

it('a client that leaves before it is known which run it wants gets none', async () => {
  const relayed: Run[] = [];
  const { replica, begin, readers } = await deploy({
    relay: async (run) => {
      relayed.push(run);
      return 'cancelled';
    },
  });
  const { run } = await begin(textRun);
  const headers = { 'content-type': 'application/json', ...CREDENTIAL };
  const waits = [
    { path: '/v1/chat/completions', init: { method: 'POST', headers, body: BODY }, isSilent: true },
    { path: `/holdfast/v1/runs/${run}/stream?starting_after=9`, init: { headers }, isSilent: false },
  ];
  for (const { path, init, isSilent } of waits) {
    replica.store.isSilent = isSilent;
    const leave = new AbortController();
    const asked = replica.store.asked();
    const response = fetch(replica.api + path, { ...init, signal: leave.signal });
    await asked;
    leave.abort();
    await expect(response).rejects.toThrow('aborted');
    await vi.waitFor(async () =>
      expect(await (await fetch(replica.admin)).json()).toMatchObject({ active_requests: 0 }),
    );
  }
  expect(relayed).toEqual([]);
  expect(readers).toEqual([]);
});

it('an owner with too many runs is told to wait', async () => {
  const leave = new AbortController();
  const held: Relay = async (run, client) => {
    client.open({});
    client.write('data: 1\n\n');
    await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
    return 'cancelled';
  };
  const { replica, begin } = await deploy({ relay: held }, { limits: { runs_per_owner: 1 } });
  const { run } = await begin(textRun);
  const stream = await fetch(`${replica.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...CREDENTIAL },
    body: BODY,
    signal: leave.signal,
  });
  const refused = await postChat(replica);
  expect(refused.headers.get('retry-after-ms')).toBe('1000');
  expect(await errorOf(refused)).toMatchObject({ status: 429, code: 'too_many_runs' });
  expect((await fetchRun(replica, `${run}/stream`)).status).toBe(429);
  // Other owners and questions about a run aren't refused.
  expect((await fetchRun(replica, run)).status).toBe(200);
  const other = await postChat(replica, STRANGER);
  expect(other.status).toBe(200);
  await other.body?.cancel();
  leave.abort();
  await stream.text().catch(() => {});
});

it('neither the content of runs nor their clients are logged', async () => {
  const { replica, begin, other } = await deploy({
    follow: async (reader, _stored, _client, { log }) => {
      log.info({ reader, tail: reader.tail, run: reader.revive(undefined) }, 'a careless line');
      throw new Error('failed');
    },
  });
  const { run } = await begin([HEADER_RECORD, textRecord(0, 'the secret answer')]);
  const secrets = {
    authorization: CREDENTIAL.authorization,
    'holdfast-thread': 'the secret thread',
    'idempotency-key': 'the secret key',
  };
  const body = BODY.replace('hi', 'the secret prompt');
  await (await resume(replica, run, { cursor: 2, tail: ['the secret tail'] }, secrets)).text();
  await (await fetchRun(replica, `${run}/stream`, { headers: secrets })).text();
  await (await fetchRun(replica, run)).text();
  await (await postChat(replica, { ...secrets, 'holdfast-run-id': run }, body)).text();
  await (await postChat(replica, secrets, body)).text();
  await (await postChat(replica, secrets, body.replace('prompt', 'other prompt'))).text();
  await (await resume(replica, run, 'the secret tail', secrets)).text();
  replica.store.fault = new Error('connection lost');
  await (await fetchRun(replica, run, { headers: secrets })).text();
  await (await postChat(replica, secrets, body)).text();
  await other.close();
  const log = await replica.log();
  expect(log).toContain('a careless line');
  expect(log).toContain('connection lost');
  expect(log).not.toMatch(/secret|sk-configured|the owner/);
});
