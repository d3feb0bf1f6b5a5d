import { describe, expect, it } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { keyNote } from '../../../src/proxy/resume/run-lookup.ts';
import type { Relay } from '../../../src/proxy/run/context/run-context.ts';
import { leaveThreadNote, threadKey, threadNote } from '../../../src/proxy/run/notices/thread-notice.ts';
import { HEADER, newRunId, SMALL_RUN, textRecord } from '../../checkpoint/fixtures.ts';
import { type Replica, ReplicaStore, startReplica } from '../../replica.ts';
import {
  BODY,
  CREDENTIAL,
  deploy,
  errorOf,
  fetchRun,
  OWNER,
  postChat,
  resume,
  STRANGER,
  textRun,
  UPSTREAM,
} from '../run-deployment.ts';

describe('a run that is not there', () => {
  const requests: readonly (readonly [string, RequestInit])[] = [
    ['', {}],
    ['', { method: 'DELETE' }],
    ['/stream', {}],
    ['/stream?starting_after=1', {}],
    [
      '/resume',
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cursor: 1, tail: ['{}'] }),
      },
    ],
  ];

  it.each(requests)('unknown, foreign or no id at all, is the same at %s %o', async (path, init) => {
    const { replica, begin, readers, other } = await deploy();
    const { run } = await begin(textRun);
    const answers = await Promise.all(
      [
        [newRunId(), CREDENTIAL],
        [run, STRANGER],
        [run, {}],
        ['run_short', CREDENTIAL],
        [`run_${'x'.repeat(2000)}`, CREDENTIAL],
        ['..%2f..%2fsecret', CREDENTIAL],
      ].map(async ([id, credential]) => {
        const headers = { authorization: '', ...(init.headers as object), ...(credential as object) };
        const response = await fetchRun(replica, `${id}${path}`, { ...init, headers });
        const { date: _, ...rest } = Object.fromEntries(response.headers);
        return { status: response.status, headers: rest, body: await response.text() };
      }),
    );
    expect(answers[0]?.status).toBe(404);
    expect(answers[0]?.body).toBe(
      `{"error":{"message":"This run doesn't exist, or it has expired.","type":"invalid_request_error","param":null,"code":"run_not_found"}}`,
    );
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(readers).toEqual([]);
    expect((await other.read(run, OWNER, 0))?.status).toBe('running');
  });

  it('is what a POST with its id is told, too', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    for (const [id, credential] of [
      [newRunId(), CREDENTIAL],
      [run, STRANGER],
      ['nonsense', CREDENTIAL],
    ] as const) {
      const response = await postChat(replica, { ...credential, 'holdfast-run-id': id });
      expect(await errorOf(response)).toMatchObject({ status: 404, code: 'run_not_found' });
    }
  });
});

it('what is not served under /holdfast is not found', async () => {
  const { replica } = await deploy();
  for (const path of ['/holdfast', '/holdfast/v1/run', `/holdfast/v1/runs/${newRunId()}/elsewhere`]) {
    expect(await errorOf(await fetch(replica.api + path))).toMatchObject({ status: 404, code: 'not_found' });
  }
});

it('a request with two different credentials is answered by neither owner, and begins nothing', async () => {
  const { replica, begin } = await deploy();
  const { run } = await begin(textRun);
  const both = { ...CREDENTIAL, 'x-api-key': 'of a stranger' };
  const refused = { status: 400, code: 'conflicting_credentials' };
  expect(await errorOf(await fetchRun(replica, run, { headers: both }))).toMatchObject(refused);
  expect(await errorOf(await postChat(replica, both))).toMatchObject(refused);
  const same = { ...CREDENTIAL, 'x-api-key': 'the owner' };
  expect((await fetchRun(replica, run, { headers: same })).status).toBe(200);
});

it('an empty credential beside another one does not make strangers one owner', async () => {
  const { replica, begin } = await deploy();
  const { run } = await begin(textRun);
  const headers = (key: string) => ({ authorization: '', 'x-api-key': key });
  expect((await fetchRun(replica, run, { headers: headers('the owner') })).status).toBe(200);
  expect((await fetchRun(replica, run, { headers: headers('a stranger') })).status).toBe(404);
});

describe('the state of a run', () => {
  it('is told to its owner, and kept by no cache', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    const response = await fetchRun(replica, run);
    expect(response.headers.get('cache-control')).toBe('private, no-cache, no-store');
    expect(await response.json()).toMatchObject({
      id: run,
      object: 'holdfast.run',
      status: 'running',
      cursor: 2,
      text: 'Hello',
      holder: 'alive',
    });
  });

  it('is that of its end once the client has the whole answer, although the store is written behind it', async () => {
    const stored = Promise.withResolvers<void>();
    const runs = new MemoryRuns();
    const store = new ReplicaStore(runs);
    const relay: Relay = async ({ id, owner }, client) => {
      const lease = await store.acquire(id, owner);
      await store.append(lease, textRun);
      client.open({ 'holdfast-run-id': id });
      client.end('data: [DONE]\n\n');
      await stored.promise;
      await store.finish(lease, { status: 'complete', at_ms: 0 });
      return 'complete';
    };
    const replica = await startReplica(UPSTREAM, { relay, runs });
    const answer = await postChat(replica);
    await answer.text();
    const state = fetchRun(replica, answer.headers.get('holdfast-run-id') as string);
    // Enough time for a response that doesn't wait.
    setTimeout(stored.resolve, 100);
    expect(await (await state).json()).toMatchObject({ status: 'complete', text: 'Hello' });
  });

  it('cannot be told while the store does not answer', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    replica.store.fault = new Error('connection lost');
    const response = await fetchRun(replica, run);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'retry-after': '1',
      'retry-after-ms': '1000',
    });
    expect(await errorOf(response)).toMatchObject({ status: 503, code: 'store_unavailable' });
    expect(await errorOf(await fetchRun(replica, `${run}/stream`))).toMatchObject({ status: 503 });
  });
});

describe('the stream of a run', () => {
  it('is followed from the cursor on', async () => {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin(textRun);
    const response = await fetchRun(replica, `${run}/stream?starting_after=1`);
    expect(await response.text()).toBe('data: after 1 of 2\n\n');
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('location')).toBeNull();
    expect(readers).toMatchObject([{ run, owner: OWNER, cursor: 1, tail: [], resumable: false }]);
  });

  /** While the store is away, even write-ahead durability delivers events without storing them. */
  it.each(['interval', 'write_ahead'])(
    'that was taken over is not joined to events that are only counted: they may be others (%s)',
    async (durability) => {
      const { replica, begin, other } = await deploy({}, { checkpoint: { durability } });
      const { run } = await begin(textRun);
      await other.append(await other.acquire(run, OWNER, 1), [textRecord(2, '!')]);
      const response = await fetchRun(replica, `${run}/stream?starting_after=3`);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect([response.status, error.code]).toEqual([409, 'cursor_ahead']);
      expect(error.message).toMatch(/cursor 3 .* ends at 2;/);
      expect((await fetchRun(replica, `${run}/stream?starting_after=2`)).status).toBe(200);
    },
  );

  it.each([
    ['nothing', '', {}, { cursor: 0, resumable: false }],
    ['Last-Event-ID alone', '', { 'last-event-id': '2' }, { cursor: 2, resumable: false }],
    ['both, of which the header is newer', '?starting_after=1', { 'last-event-id': '2' }, { cursor: 2 }],
    [
      'an id of ours, which wants more of them',
      '',
      { 'last-event-id': 'ID.1.2' },
      { epoch: '1', resumable: true },
    ],
    ['Holdfast-Resume', '?starting_after=2', { 'holdfast-resume': '1' }, { cursor: 2, resumable: true }],
  ])('from %s', async (_, query, headers: Record<string, string>, reader) => {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin(textRun);
    const id = headers['last-event-id']?.replace('ID', run);
    const sent = id === undefined ? headers : { ...headers, 'last-event-id': id };
    const response = await fetchRun(replica, `${run}/stream${query}`, { headers: sent });
    await response.text();
    expect(readers).toMatchObject([reader]);
    const location = readers[0]?.resumable ? `/holdfast/v1/runs/${run}/stream` : null;
    expect(response.headers.get('location')).toBe(location);
  });

  it.each([
    ['?starting_after=-1', {}, 'starting_after'],
    ['?starting_after=', {}, 'starting_after'],
    ['', { 'last-event-id': 'seven' }, 'Last-Event-ID'],
    ['', { 'last-event-id': `${newRunId()}.1.1` }, 'Last-Event-ID'],
  ])('a cursor that is none is named: %s %o', async (query, headers: Record<string, string>, param) => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    const response = await fetchRun(replica, `${run}/stream${query}`, { headers });
    expect(await errorOf(response)).toEqual({ status: 400, code: 'invalid_field', param });
  });

  it('a cursor ahead of a run that no replica delivers is refused', async () => {
    const { replica, begin, other } = await deploy();
    const { run } = await begin(textRun);
    await other.close();
    expect(await errorOf(await fetchRun(replica, `${run}/stream?starting_after=3`))).toMatchObject({
      status: 409,
      code: 'cursor_ahead',
    });
  });

  it('a cursor ahead of a live run is waited for', async () => {
    const { replica, begin, other, readers } = await deploy();
    const lease = await begin(textRun);
    const response = fetchRun(replica, `${lease.run}/stream?starting_after=3`);
    await other.append(lease, [textRecord(2, '!')]);
    expect(await (await response).text()).toBe('data: after 3 of 3\n\n');
    expect(readers).toHaveLength(1);
  });

  it('a cursor that a live run does not reach in time is refused', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    const response = await fetchRun(replica, `${run}/stream?starting_after=4`);
    expect(await errorOf(response)).toMatchObject({ status: 409, code: 'cursor_ahead' });
  });
});

describe('resuming with what the client has', () => {
  it('hands the tail over, which closes the gap', async () => {
    const { replica, begin, other, readers } = await deploy();
    const { run } = await begin(textRun);
    await other.close();
    const tail = ['lo', '!'].map((content) =>
      JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
    );
    const response = await resume(replica, run, { cursor: 3, tail });
    expect(await response.text()).toBe('data: after 3 of 2\n\n');
    expect(readers).toMatchObject([{ cursor: 3, tail, resumable: false }]);
  });

  it('takes the epoch from the id of the last event', async () => {
    const { replica, begin, readers } = await deploy();
    const { run } = await begin(textRun);
    await (await resume(replica, run, { cursor: 2 }, { 'last-event-id': `${run}.1.2` })).text();
    expect(readers).toMatchObject([{ cursor: 2, epoch: '1', resumable: true }]);
  });

  describe('an unknown run', () => {
    const tail = ['Hel', 'lo'].map((content) =>
      JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
    );
    const request = { path: '/v1/chat/completions', body: BODY };

    it('continues if the client brings the request and all of its events', async () => {
      const { replica, readers } = await deploy();
      const run = newRunId();
      const response = await resume(replica, run, { cursor: 2, tail, request });
      expect(await response.text()).toBe('data: after 2 of 0\n\n');
      expect(readers).toMatchObject([{ run, cursor: 2, tail }]);
      // So that it can be taken over at once.
      const stored = await replica.store.read(run, OWNER, 0);
      expect(stored).toMatchObject({ status: 'running', holder: { state: 'released' }, records: [] });
    });

    it.each([
      ['held', 'none'],
      ['live', 'live'],
    ] as const)('was sent its calls as the route of the request says: %s', async (tool_calls, events) => {
      const routes = [{ model: '*', targets: [{ upstream: 'provider' }], tool_calls }];
      const { replica, readers } = await deploy({}, { routes });
      await (await resume(replica, newRunId(), { cursor: 2, tail, request })).text();
      expect(readers).toMatchObject([{ asked: { wire: 'chat_completions', events } }]);
    });

    it.each([
      ['without the request', { cursor: 2, tail }],
      ['without some of its events', { cursor: 3, tail, request }],
    ])('stays unknown %s', async (_, body) => {
      const { replica } = await deploy();
      const run = newRunId();
      const response = await resume(replica, run, body);
      expect(await errorOf(response)).toMatchObject({ status: 404, code: 'run_not_found' });
      expect(await replica.store.read(run, OWNER, 0)).toBeNull();
    });

    it('is not another owner’s, which stays as it is', async () => {
      const { replica, begin, other } = await deploy();
      const { run } = await begin(textRun);
      await other.close();
      const before = await replica.store.read(run, OWNER, 0);
      const response = await resume(replica, run, { cursor: 2, tail, request }, STRANGER);
      expect(await errorOf(response)).toMatchObject({ status: 404, code: 'run_not_found' });
      expect(await replica.store.read(run, OWNER, 0)).toEqual(before);
    });

    it('cannot be begun while the store is away', async () => {
      const { replica } = await deploy();
      replica.store.acquire = () => Promise.reject(new Error('away'));
      const response = await resume(replica, newRunId(), { cursor: 2, tail, request });
      expect(await errorOf(response)).toMatchObject({ status: 503, code: 'store_unavailable' });
    });
  });

  it.each([
    [{}, 'cursor'],
    [{ cursor: 1, tail: ['a', 'b'] }, 'tail'],
    [{ cursor: 1, tail: [7] }, 'tail[0]'],
    [{ cursor: 1, tail: ['x'.repeat(2000)] }, 'tail'],
    [{ cursor: 1, request: { path: '/v1/models', body: '{}' } }, 'request.path'],
  ])('what cannot be that is named: %j', async (body, param) => {
    const { replica, begin } = await deploy({}, { limits: { run_bytes: 1024 } });
    const { run } = await begin(textRun);
    expect(await errorOf(await resume(replica, run, body))).toMatchObject({ status: 400, param });
  });

  it('takes a request that is larger in a string than it was', async () => {
    const { replica, begin, readers } = await deploy({}, { limits: { body_bytes: 2048 } });
    const { run } = await begin(textRun);
    const body = JSON.stringify({ ...JSON.parse(BODY), metadata: '"'.repeat(900) });
    const request = { path: '/v1/chat/completions', body };
    const tail = [JSON.stringify({ choices: [{ index: 0, delta: { content: 'lo' } }] })];
    await (await resume(replica, run, { cursor: 2, tail, request })).text();
    expect(readers).toMatchObject([{ asked: { wire: 'chat_completions', events: 'none' } }]);
    expect(readers[0]?.revive(undefined)).toMatchObject({ body, resumable: false });
  });

  it('a body that is no JSON, or too large', async () => {
    const { replica } = await deploy({}, { limits: { body_bytes: 2048 } });
    const send = (body: string, type = 'application/json') =>
      fetchRun(replica, `${newRunId()}/resume`, { method: 'POST', headers: { 'content-type': type }, body });
    expect(await errorOf(await send('{'))).toMatchObject({ status: 400, code: 'invalid_json' });
    expect(await errorOf(await send('{}', 'text/plain'))).toMatchObject({ status: 415 });
    expect(await errorOf(await send(' '.repeat(7000)))).toMatchObject({ status: 413 });
  });
});

describe('cancelling', () => {
  it('ends a run of another replica, whose lease is fenced', async () => {
    const { replica, begin, other } = await deploy();
    const lease = await begin(textRun);
    const response = await fetchRun(replica, lease.run, { method: 'DELETE' });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: 'cancelled', text: 'Hello', partial: true });
    await expect(other.append(lease, [textRecord(2, '!')])).rejects.toThrow('superseded');
  });

  it('ends a run that is delivered here, and its client is told', async () => {
    const { replica } = await deploy({
      relay: async (run, client, { store }) => {
        const lease = await store.acquire(run.id, run.owner);
        await store.append(lease, textRun);
        client.open({ 'holdfast-run-id': run.id });
        client.write('data: 1\n\n');
        await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
        await store.finish(lease, { status: 'cancelled', at_ms: 0 });
        return 'cancelled';
      },
    });
    const stream = await postChat(replica);
    const run = String(stream.headers.get('holdfast-run-id'));
    const response = await fetchRun(replica, run, { method: 'DELETE' });
    expect(await response.json()).toMatchObject({ status: 'cancelled', epoch: 1 });
    expect(await stream.text()).toBe(
      'data: 1\n\ndata: {"error":{"message":"The run was cancelled.","type":"stream_interrupted","param":null,"code":"run_cancelled"}}\n\n',
    );
  });

  it('leaves a run that has ended as it is', async () => {
    const { replica, begin, other } = await deploy();
    const lease = await begin(SMALL_RUN);
    await other.finish(lease, { status: 'complete', at_ms: 1000 });
    const response = await fetchRun(replica, lease.run, { method: 'DELETE' });
    expect(await response.json()).toMatchObject({ status: 'complete', end: { at: 1 } });
  });
});

describe('purging a run', () => {
  const purge = (replica: Replica, run: string, query = '?purge=true', headers = {}) =>
    fetchRun(replica, `${run}${query}`, { method: 'DELETE', headers });

  it('forgets it, and its pending notice', async () => {
    const { replica, begin, other } = await deploy();
    const { run } = await begin([
      { seq: 0, header: { ...HEADER, thread: 'thread' }, events: [] },
      textRecord(0, 'Hi'),
    ]);
    const note = { run, created_at_ms: 0, interrupted_at_ms: 0, model: 'm', text: 'Hi', calls: [] };
    const end = { status: 'recovered_from_partial' } as const;
    await leaveThreadNote(other.notes, OWNER, 'thread', threadNote({ ...note, end }), 60_000);
    const response = await purge(replica, run);
    expect(await response.json()).toEqual({ id: run, object: 'holdfast.run', purged: true });
    expect(await other.read(run, OWNER, 0)).toBeNull();
    expect(await other.notes.get(OWNER, threadKey('thread'))).toBeUndefined();
    expect(await errorOf(await purge(replica, run))).toMatchObject({ status: 404, code: 'run_not_found' });
  });

  it('cancels it before, where it is under way', async () => {
    const { replica, begin, other } = await deploy();
    const lease = await begin(textRun);
    expect((await purge(replica, lease.run)).status).toBe(200);
    await expect(other.append(lease, [textRecord(2, 'c')])).rejects.toThrow();
    expect(await other.read(lease.run, OWNER, 0)).toBeNull();
  });

  it('is for its owner alone, and asked for in one way', async () => {
    const { replica, begin, other } = await deploy();
    const { run } = await begin(textRun);
    expect(await errorOf(await purge(replica, run, '?purge=true', STRANGER))).toMatchObject({ status: 404 });
    expect(await errorOf(await purge(replica, run, '?purge=yes'))).toMatchObject({
      status: 400,
      code: 'invalid_field',
      param: 'purge',
    });
    expect(await other.read(run, OWNER, 0)).toMatchObject({ status: 'running' });
  });
});

describe('cancelling by the key of the request', () => {
  const cancel = (replica: Replica, headers: Record<string, string>) =>
    fetch(`${replica.api}/holdfast/v1/runs`, { method: 'DELETE', headers: { ...CREDENTIAL, ...headers } });

  it('ends a run whose client was not told anything yet', async () => {
    const begun = Promise.withResolvers<void>();
    const { replica } = await deploy({
      relay: async (run, _client, { store }) => {
        const lease = await store.acquire(run.id, run.owner);
        begun.resolve();
        await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
        await store.finish(lease, { status: 'cancelled', at_ms: 0 });
        return 'cancelled';
      },
    });
    const waiting = postChat(replica, { 'idempotency-key': 'mine' });
    await begun.promise;
    const response = await cancel(replica, { 'idempotency-key': 'mine' });
    expect(response.headers.get('cache-control')).toBe('private, no-cache, no-store');
    expect(await response.json()).toMatchObject({ status: 'cancelled', epoch: 1 });
    expect(await errorOf(await waiting)).toMatchObject({ status: 410, code: 'run_cancelled' });
  });

  it('ends a run of another replica, whose lease is fenced', async () => {
    const { replica, begin, other } = await deploy();
    const lease = await begin(textRun);
    await other.notes.put(OWNER, keyNote('mine'), JSON.stringify({ run: lease.run }), 60_000);
    const response = await cancel(replica, { 'idempotency-key': 'mine' });
    expect(await response.json()).toMatchObject({ id: lease.run, status: 'cancelled' });
    await expect(other.append(lease, [textRecord(2, '!')])).rejects.toThrow('superseded');
  });

  it('finds nothing under a key that was not used, or by another owner', async () => {
    const { replica, begin, other } = await deploy();
    const { run } = await begin(textRun);
    await other.notes.put(OWNER, keyNote('mine'), JSON.stringify({ run }), 60_000);
    for (const headers of [{ 'idempotency-key': 'another' }, { 'idempotency-key': 'mine', ...STRANGER }]) {
      expect(await errorOf(await cancel(replica, headers))).toMatchObject({
        status: 404,
        code: 'run_not_found',
      });
    }
    expect((await other.read(run, OWNER, 0))?.status).toBe('running');
  });

  it('wants a key, and a store', async () => {
    const { replica } = await deploy();
    expect(await errorOf(await cancel(replica, {}))).toEqual({
      status: 400,
      code: 'missing_field',
      param: 'Idempotency-Key',
    });
    replica.store.fault = new Error('connection lost');
    expect(await errorOf(await cancel(replica, { 'idempotency-key': 'mine' }))).toMatchObject({
      status: 503,
      code: 'store_unavailable',
    });
  });
});
