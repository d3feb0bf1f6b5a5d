import { describe, expect, it, vi } from 'vitest';
import { NESTING_MAX } from '../../../src/lib/json.ts';
import type { Client } from '../../../src/proxy/downstream/client.ts';
import type { Run } from '../../../src/proxy/run/context/run.ts';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../../replica.ts';

/** A valid request, except for the nesting depth of its metadata. */
const deepBody = (levels: number): string =>
  `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"the secret prompt"}],"metadata":${'['.repeat(levels)}${']'.repeat(levels)}}`;

const REQUEST = { model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'the secret prompt' }] };
const UPSTREAM = upstreamsAt(NO_UPSTREAM_URL);

interface ErrorAnswer {
  error: { message: string; type: string; param: string | null; code: string };
}

const post = (replica: Replica, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  fetch(`${replica.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });

async function refusal(response: Response) {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const { error } = (await response.json()) as ErrorAnswer;
  return { status: response.status, ...error };
}

describe('a request that cannot be served is refused in the OpenAI error shape', () => {
  it.each([
    ['malformed JSON', '{"model": "secret prompt', 400, 'invalid_json', null],
    ['an empty body', '', 400, 'invalid_json', null],
    ['JSON that is no object', '[]', 400, 'invalid_json', null],
    ['JSON that nests too deep', deepBody(100_000), 400, 'invalid_json', null],
    ['JSON one level deeper than is read', deepBody(NESTING_MAX), 400, 'invalid_json', null],
    [
      'JSON of more values than are read',
      JSON.stringify({ ...REQUEST, metadata: Array(500_000).fill(1) }),
      400,
      'invalid_json',
      null,
    ],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 400, 'invalid_json', null],
    ['no model', JSON.stringify({ ...REQUEST, model: undefined }), 400, 'missing_field', 'model'],
    ['an empty model', JSON.stringify({ ...REQUEST, model: '' }), 400, 'invalid_field', 'model'],
    [
      'an endless model name',
      JSON.stringify({ ...REQUEST, model: 'm'.repeat(257) }),
      400,
      'invalid_field',
      'model',
    ],
    ['no messages', JSON.stringify({ ...REQUEST, messages: undefined }), 400, 'missing_field', 'messages'],
    ['empty messages', JSON.stringify({ ...REQUEST, messages: [] }), 400, 'invalid_field', 'messages'],
    [
      'a message without a role',
      JSON.stringify({ ...REQUEST, messages: [{}] }),
      400,
      'invalid_field',
      'messages[0]',
    ],
    ['tools that are no list', JSON.stringify({ ...REQUEST, tools: {} }), 400, 'invalid_field', 'tools'],
    [
      'bad stream options',
      JSON.stringify({ ...REQUEST, stream_options: 1 }),
      400,
      'invalid_field',
      'stream_options',
    ],
    ['a bad stop', JSON.stringify({ ...REQUEST, stop: [1] }), 400, 'invalid_field', 'stop'],
  ])('%s', async (_, body, status, code, param) => {
    const replica = await startReplica(UPSTREAM);
    const answer = await refusal(await post(replica, body));
    expect(answer).toMatchObject({ status, code, param, type: 'invalid_request_error' });
    expect(answer.message).not.toContain('secret');
  });

  it('a wrong content type', async () => {
    const replica = await startReplica(UPSTREAM);
    const answer = await refusal(await post(replica, 'hello', { 'content-type': 'text/plain' }));
    expect(answer).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });

  it('a compressed body', async () => {
    const replica = await startReplica(UPSTREAM);
    const answer = await refusal(await post(replica, '{}', { 'content-encoding': 'gzip' }));
    expect(answer).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });

  it('a body over the limit, which the client can read the answer to even while it is sending', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { body_bytes: 2048 } });
    const answer = await refusal(await post(replica, ' '.repeat(20_000_000)));
    expect(answer).toMatchObject({ status: 413, code: 'body_too_large' });
    expect(answer.message).toContain('2048');
  });

  it('a model that no route serves, streaming or not', async () => {
    const routes = [{ model: 'gpt-*', targets: [{ upstream: 'provider' }] }];
    const replica = await startReplica({ ...UPSTREAM, routes });
    for (const stream of [true, false]) {
      const answer = await refusal(
        await post(replica, JSON.stringify({ ...REQUEST, stream, model: 'llama-4' })),
      );
      expect(answer).toMatchObject({ status: 404, code: 'model_not_found' });
      expect(answer.message).toContain("'llama-4'");
    }
  });

  it('an unknown kind of events', async () => {
    const replica = await startReplica(UPSTREAM);
    const answer = await refusal(await post(replica, JSON.stringify(REQUEST), { 'holdfast-events': 'all' }));
    expect(answer).toMatchObject({ status: 400, code: 'invalid_field', param: 'Holdfast-Events' });
  });

  it('a path outside the API', async () => {
    const replica = await startReplica(UPSTREAM);
    expect(await refusal(await fetch(`${replica.api}/v2/models`))).toMatchObject({
      status: 404,
      code: 'not_found',
    });
    expect(await refusal(await fetch(`${replica.api}/%zz`))).toMatchObject({
      status: 400,
      code: 'bad_request',
    });
  });
});

describe('a stream', () => {
  it('becomes a run with the body as it came, its owner and the headers to send', async () => {
    const runs: Run[] = [];
    const replica = await startReplica(
      upstreamsAt(NO_UPSTREAM_URL, { api_key: 'the configured key' }),
      async (run, client) => {
        runs.push(run);
        client.open({ 'Holdfast-Run-Id': run.id });
        client.write('data: 1\n\n');
        client.end('data: [DONE]\n\n');
        return 'complete';
      },
    );
    const body = ` ${JSON.stringify({ ...REQUEST, seed: 0 })}\n`;
    const response = await post(replica, body, {
      authorization: 'Bearer a client',
      'holdfast-events': 'chunks',
    });

    expect(await response.text()).toBe('data: 1\n\ndata: [DONE]\n\n');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'private, no-cache, no-store',
      'holdfast-run-id': runs[0]?.id,
    });
    expect(runs).toMatchObject([
      { body, events: 'chunks', target: { name: 'provider' }, request: { model: 'gpt-4o', seed: 0 } },
    ]);
    expect(runs[0]?.id).toMatch(/^run_[\w-]{22}$/);
    expect(runs[0]?.owner).toMatch(/^[0-9a-f]{64}$/);
    expect(runs[0]?.target.headers).toMatchObject({
      authorization: 'Bearer the configured key',
      'accept-encoding': 'identity',
    });
    expect(Object.keys(runs[0]?.target.headers ?? {})).not.toContain('holdfast-events');
  });

  it('goes to the first target of the first route that matches', async () => {
    const targets: Run['target'][] = [];
    const replica = await startReplica(
      {
        upstreams: { first: { base_url: NO_UPSTREAM_URL }, second: { base_url: NO_UPSTREAM_URL } },
        routes: [
          { model: 'a.c', targets: [{ upstream: 'first' }] },
          { model: 'a*', targets: [{ upstream: 'second', model: 'other' }, { upstream: 'first' }] },
        ],
      },
      async (run, client) => {
        targets.push(run.target);
        client.open({});
        client.end('');
        return 'complete';
      },
    );
    for (const model of ['a.c', 'abc'])
      await (await post(replica, JSON.stringify({ ...REQUEST, model }))).text();
    expect(targets).toMatchObject([{ name: 'first' }, { name: 'second', model: 'other' }]);
  });

  it('is counted, by how it ended', async () => {
    const replica = await startReplica(UPSTREAM);
    await (await post(replica, JSON.stringify(REQUEST))).text();
    const metrics = await (await fetch(`${replica.admin}/metrics`)).text();
    expect(metrics).toContain('holdfast_runs_total{wire="chat_completions",outcome="complete"} 1');
    expect(metrics).toContain('holdfast_runs_active 0');
  });

  it('whose relay fails before it opened is answered with 500 and nothing of the reason', async () => {
    const replica = await startReplica(UPSTREAM, () => Promise.reject(new Error('internals')));
    expect(await refusal(await post(replica, JSON.stringify(REQUEST)))).toEqual({
      status: 500,
      code: 'internal_error',
      type: 'server_error',
      param: null,
      message: 'An unexpected error occurred.',
      holdfast: { run_id: expect.stringMatching(/^run_/) },
    });
    expect(await replica.log()).toContain('internals');
  });

  it('whose relay fails after it opened breaks off without an end of message', async () => {
    const replica = await startReplica(UPSTREAM, async (_run, client) => {
      client.open({});
      client.write('data: 1\n\n');
      throw new Error('internals');
    });
    const response = await post(replica, JSON.stringify(REQUEST));
    await expect(response.text()).rejects.toThrow('terminated');
  });

  it('whose relay forgets to end it breaks off as well', async () => {
    const replica = await startReplica(UPSTREAM, async (_run, client) => {
      client.open({});
      client.write('data: 1\n\n');
      return 'complete';
    });
    const response = await post(replica, JSON.stringify(REQUEST));
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await replica.log()).toContain('left open');
  });

  it('aborts its run when the client goes, and is counted as a disconnect', async () => {
    const aborted = Promise.withResolvers<void>();
    const replica = await startReplica(UPSTREAM, async (run, client) => {
      client.open({});
      client.write('data: 1\n\n');
      await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
      aborted.resolve();
      return 'cancelled';
    });
    const leave = new AbortController();
    await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(REQUEST),
      signal: leave.signal,
    });
    leave.abort();
    await aborted.promise;
    await replica.server.close();
    const metrics = await replica.metrics.registry.metrics();
    expect(metrics).toContain('holdfast_client_disconnects_total 1');
    expect(metrics).toContain('outcome="cancelled"} 1');
  });
});

describe('a stream that can be resumed', () => {
  /** A run whose client left after the first event. */
  async function leftRun(headers: Record<string, string>, detached_ms: number) {
    const started = Promise.withResolvers<{ run: Run; client: Client; finish: () => void }>();
    const finished = Promise.withResolvers<void>();
    const replica = await startReplica({ ...UPSTREAM, resume: { detached_ms } }, async (run, client) => {
      client.open({ 'holdfast-run-id': run.id });
      client.write('data: 1\n\n');
      const { promise, resolve } = Promise.withResolvers<void>();
      started.resolve({ run, client, finish: resolve });
      run.signal.addEventListener('abort', () => resolve());
      await promise;
      client.write('data: 2\n\n');
      client.end('data: [DONE]\n\n');
      finished.resolve();
      return run.signal.aborted ? 'cancelled' : 'complete';
    });
    const leave = new AbortController();
    const response = await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(REQUEST),
      signal: leave.signal,
    });
    leave.abort();
    const relayed = await started.promise;
    return { replica, response, ...relayed, finished: finished.promise };
  }

  const outcomes = async ({ replica }: { replica: Replica }) => {
    await replica.server.close();
    return (await replica.metrics.registry.metrics()).match(/outcome="\w+"(?=\} [1-9])/g);
  };

  it('says where the rest of it is', async () => {
    const left = await leftRun({ 'holdfast-resume': '1', 'holdfast-thread': 'a thread' }, 60_000);
    const { run, response } = left;
    expect(run).toMatchObject({ resumable: true, thread: 'a thread' });
    expect(response.headers.get('location')).toBe(`/holdfast/v1/runs/${run.id}/stream`);
    left.finish();
    await left.finished;
  });

  it('continues without its client to its end', async () => {
    const left = await leftRun({ 'holdfast-resume': '1' }, 60_000);
    await vi.waitFor(() => expect(left.client.write('')).toBe(true));
    expect(left.run.signal.aborted).toBe(false);
    left.finish();
    await left.finished;
    expect(await outcomes(left)).toEqual(['outcome="complete"']);
  });

  it('continues for detached_ms, and then for as long as a client reads it', async () => {
    const left = await leftRun({ 'holdfast-resume': '1' }, 50);
    const { replica, run } = left;
    await replica.store.notes.put(run.owner, { kind: 'reader', name: run.id }, '', 400);
    const since_ms = performance.now();
    await left.finished;
    expect(performance.now() - since_ms).toBeGreaterThan(350);
    expect(await outcomes(left)).toEqual(['outcome="cancelled"']);
  });

  it('can be cancelled meanwhile', async () => {
    const left = await leftRun({ 'holdfast-resume': '1' }, 60_000);
    const { replica, run } = left;
    await replica.store.acquire(run.id, run.owner);
    const path = `${replica.api}/holdfast/v1/runs/${run.id}`;
    expect(await (await fetch(path, { method: 'DELETE' })).json()).toMatchObject({ status: 'cancelled' });
    await left.finished;
    expect(run.signal.aborted).toBe(true);
  });
});

it('neither keys nor prompts are logged, whatever happens', async () => {
  const replica = await startReplica(
    upstreamsAt(NO_UPSTREAM_URL, { api_key: 'sk-configured' }),
    async (run, client, { log }) => {
      log.info({ headers: run.target.headers, body: run.body, run }, 'a careless line');
      client.open({});
      client.write('data: 1\n\n');
      throw new Error('failed');
    },
  );
  const headers = { authorization: 'Bearer sk-client', 'x-api-key': 'sk-client' };
  await (await post(replica, JSON.stringify(REQUEST), headers)).text().catch(() => {});
  await (await post(replica, JSON.stringify({ ...REQUEST, stream: false, n: 2 }), headers)).text();
  await (await post(replica, 'the secret prompt', headers)).text();
  const log = await replica.log();
  expect(log).toContain('a careless line');
  expect(log).toContain('pass-through failed');
  expect(log).not.toMatch(/sk-client|sk-configured|secret prompt/);
});
