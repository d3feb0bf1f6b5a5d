import { describe, expect, it } from 'vitest';
import type { Client } from '../../src/proxy/downstream/client.ts';
import { HAND_OVER, type Run } from '../../src/proxy/run/context/run.ts';
import { connect, providerRequests, received, receivedUntil, startProvider } from '../http-peer.ts';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../replica.ts';

const UPSTREAM = upstreamsAt(NO_UPSTREAM_URL);
const STREAM = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'gpt-4o', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
};

/** A replica whose runs end on demand, or when their client leaves. */
async function startHeldReplica(limits: Record<string, number> = {}) {
  const started = Promise.withResolvers<{ run: Run; client: Client; end: () => void }>();
  const replica = await startReplica({ ...UPSTREAM, limits }, async (run, client) => {
    const ending = Promise.withResolvers<void>();
    run.signal.addEventListener('abort', () => ending.resolve());
    client.open({});
    client.write('data: 1\n\n');
    started.resolve({ run, client, end: () => ending.resolve() });
    await ending.promise;
    if (run.signal.aborted) return run.signal.reason === HAND_OVER ? 'handed_over' : 'cancelled';
    client.end('data: [DONE]\n\n');
    return 'complete';
  });
  const response = await fetch(`${replica.api}/v1/chat/completions`, STREAM);
  return { replica, response, ...(await started.promise) };
}

const readiness = async (replica: Replica) => {
  const response = await fetch(`${replica.admin}/readyz`);
  return { status: response.status, body: await response.json() };
};

describe('a draining replica', () => {
  it('lets a run end, and refuses new requests of every kind meanwhile', async () => {
    const { replica, response, run, end } = await startHeldReplica();
    let drained = false;
    const drain = replica.server.drain().then(() => {
      drained = true;
    });

    expect(await readiness(replica)).toEqual({
      status: 503,
      body: { status: 'not ready', failing: { draining: 'shutting down' } },
    });
    expect((await fetch(`${replica.admin}/livez`)).status).toBe(200);
    for (const [path, init] of [
      ['/v1/chat/completions', STREAM],
      ['/v1/models', {}],
      [`/holdfast/v1/runs/${run.id}`, {}],
      [`/holdfast/v1/runs/${run.id}/stream`, {}],
    ] as const) {
      const refused = await fetch(replica.api + path, init);
      expect(refused.status).toBe(503);
      expect(Object.fromEntries(refused.headers)).toMatchObject({
        'retry-after': '1',
        'retry-after-ms': '1000',
        connection: 'close',
      });
      expect(await refused.json()).toMatchObject({ error: { code: 'shutting_down', type: 'server_error' } });
    }
    expect(drained).toBe(false);

    end();
    await drain;
    await replica.server.close();
    expect(await response.text()).toBe('data: 1\n\ndata: [DONE]\n\n');
  });

  it('whose readiness is watched takes new requests for drain_delay_ms, and closes their connections', async () => {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const limits = { drain_delay_ms: 600_000, drain_ms: 600_000 };
    const replica = await startReplica({ ...upstreamsAt(root), limits });
    await readiness(replica);
    const drain = replica.server.drain();

    expect(await readiness(replica)).toMatchObject({ status: 503, body: { status: 'not ready' } });
    const stream = await fetch(`${replica.api}/v1/chat/completions`, STREAM);
    const passed = fetch(`${replica.api}/v1/models`);
    (await provider.next()).response.end('done');
    const unknown = await fetch(`${replica.api}/holdfast/v1/runs/run_unknown`);
    const statuses = [];
    for (const response of [stream, await passed, unknown]) {
      statuses.push(response.status);
      expect(response.headers.get('connection')).toBe('close');
      await response.text();
    }
    expect(statuses).toEqual([200, 200, 404]);
    await replica.server.close();
    await drain;
  });

  it('refuses new requests when drain_delay_ms is over', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { drain_delay_ms: 1 } });
    await readiness(replica);
    await replica.server.drain();
    expect((await fetch(`${replica.api}/v1/models`)).status).toBe(503);
  });

  it('answers a request that has arrived before, however long its body takes', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { drain_ms: 600_000 } });
    const socket = await connect(replica.api);
    const { headers, body } = STREAM;
    const lines = [
      'POST /v1/chat/completions HTTP/1.1',
      'host: x',
      `content-type: ${headers['content-type']}`,
    ];
    const head = [...lines, `content-length: ${body.length}`, 'expect: 100-continue', '', ''].join('\r\n');
    socket.write(head);
    await receivedUntil(socket, '100 Continue');
    const drain = replica.server.drain();
    expect((await fetch(`${replica.api}/v1/models`)).status).toBe(503);
    socket.write(body);
    expect(await receivedUntil(socket, '[DONE]')).toContain('HTTP/1.1 200 OK');
    await drain;
  });

  it('counts drain_delay_ms as a part of drain_ms', async () => {
    const { replica, run } = await startHeldReplica({ drain_ms: 300, drain_delay_ms: 60_000 });
    await readiness(replica);
    await replica.server.drain();
    await replica.server.close();
    expect(run.signal.reason).toBe(HAND_OVER);
  });

  it('whose readiness was never asked for has no balancer to wait for', async () => {
    const replica = await startReplica({
      ...UPSTREAM,
      limits: { drain_delay_ms: 600_000, drain_ms: 600_000 },
    });
    await replica.server.drain();
    expect((await fetch(`${replica.api}/v1/models`)).status).toBe(503);
  });

  it('waits for what is passed through as well', async () => {
    const provider = providerRequests();
    const replica = await startReplica(upstreamsAt(await startProvider(provider.listener)));
    const response = fetch(`${replica.api}/v1/models`);
    const up = await provider.next();
    const drain = replica.server.drain();
    up.response.end('done');
    await drain;
    await replica.server.close();
    expect(await (await response).text()).toBe('done');
  });

  it('waits no longer than drain_ms, and then hands over what is left', async () => {
    const { replica, response, run } = await startHeldReplica({ drain_ms: 50 });
    await replica.server.drain();
    expect(run.signal.aborted).toBe(false);
    await replica.server.close();
    expect(run.signal.reason).toBe(HAND_OVER);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await replica.metrics.registry.metrics()).toContain('outcome="handed_over"} 1');
    expect(await replica.log()).toContain('"active_requests":1,"msg":"requests cut off"');
  });

  it('answers a run that is handed over before it could begin', async () => {
    const started = Promise.withResolvers<void>();
    const replica = await startReplica({ ...UPSTREAM, limits: { drain_ms: 50 } }, async (run) => {
      started.resolve();
      await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
      return 'handed_over';
    });
    const response = fetch(`${replica.api}/v1/chat/completions`, STREAM);
    await started.promise;
    await replica.server.drain();
    await replica.server.close();
    const { status, headers } = await response;
    expect(status).toBe(503);
    expect(headers.get('retry-after-ms')).toBe('1000');
  });

  it('does not cut off a response that its client has not read yet', async () => {
    const size = 8_000_000;
    const replica = await startReplica(UPSTREAM, async (_run, client) => {
      client.open({});
      client.end(`data: ${'x'.repeat(size)}\n\n`);
      return 'complete';
    });
    const response = await fetch(`${replica.api}/v1/chat/completions`, STREAM);
    const drain = replica.server.drain();
    const [body] = await Promise.all([response.text(), drain.then(() => replica.server.close())]);
    expect(body).toHaveLength(size + 'data: \n\n'.length);
  });
});

describe('a client that holds a connection and sends nothing useful', () => {
  it.each([
    ['no byte', ''],
    ['half a header section', 'POST /v1/models HTTP/1.1\r\nhost: x\r\n'],
  ])('%s: loses it after header_ms', async (_, bytes) => {
    const replica = await startReplica({ ...UPSTREAM, limits: { header_ms: 50 } });
    const socket = await connect(replica.api);
    socket.write(bytes);
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  });

  it('half a body: loses it after request_ms', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { header_ms: 50, request_ms: 100 } });
    const socket = await connect(replica.api);
    socket.write(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    );
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  });

  it('too many headers: 431', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { header_bytes: 1024 } });
    const socket = await connect(replica.api);
    socket.write(`GET /v1/models HTTP/1.1\r\nx: ${'y'.repeat(2000)}\r\n\r\n`);
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":"headers_too_large"/);
  });

  it('no HTTP: 400', async () => {
    const replica = await startReplica(UPSTREAM);
    const socket = await connect(replica.api);
    socket.write('hello\r\n\r\n');
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"bad_request"/);
  });

  it('garbage after a request gets no answer into the middle of the stream', async () => {
    const { replica } = await startHeldReplica();
    const socket = await connect(replica.api);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${STREAM.body.length}\r\n\r\n${STREAM.body}`,
    );
    await receivedUntil(socket, 'data: 1');
    const rest = received(socket);
    socket.write('garbage\r\n\r\n');
    expect(await rest).toBe('');
  });

  it('more connections than allowed are closed on arrival', async () => {
    const replica = await startReplica({ ...UPSTREAM, limits: { connections: 1 } });
    const first = await connect(replica.api);
    expect(await received(await connect(replica.api))).toBe('');
    first.write('GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await receivedUntil(first, '}}')).toContain('HTTP/1.1 404');
  });
});

it('a port in use is an error that names the key and the remedy', async () => {
  const taken = new URL(await startProvider(() => {})).port;
  await expect(startReplica({ ...UPSTREAM, listen: { port: 0, admin_port: Number(taken) } })).rejects.toThrow(
    `listen.admin_port: cannot listen on 127.0.0.1 port ${taken} (EADDRINUSE); it is in use`,
  );
});

describe('the admin port', () => {
  it('is ready while the store is, and says so when it is not', async () => {
    const replica = await startReplica(UPSTREAM);
    expect(await readiness(replica)).toEqual({ status: 200, body: { status: 'ready' } });
    replica.store.fault = new Error('disk full');
    expect(await readiness(replica)).toEqual({
      status: 503,
      body: { status: 'not ready', failing: { store: 'disk full' } },
    });
    expect((await fetch(`${replica.admin}/livez`)).status).toBe(200);
  });

  it('is ready, but degraded, while a store does not work that it may do without', async () => {
    const replica = await startReplica({
      ...UPSTREAM,
      checkpoint: { store: 'memory', on_unreachable: 'warn' },
      limits: { drain_delay_ms: 0 },
    });
    replica.store.fault = new Error('gone');
    expect(await readiness(replica)).toEqual({
      status: 200,
      body: { status: 'degraded', failing: { store: 'gone' } },
    });
    await replica.server.drain();
    expect(await readiness(replica)).toMatchObject({ status: 503, body: { status: 'not ready' } });
  });

  it('shows what is under way', async () => {
    const { replica, end } = await startHeldReplica();
    expect(await (await fetch(replica.admin)).json()).toMatchObject({
      name: 'holdfast',
      status: 'serving',
      active_requests: 1,
      store: 'memory',
    });
    end();
  });

  it('is read-only, and serves nothing of the API', async () => {
    const replica = await startReplica(UPSTREAM);
    expect((await fetch(replica.admin, { method: 'POST' })).status).toBe(404);
    expect((await fetch(`${replica.admin}/v1/models`)).status).toBe(404);
  });

  it('has the metrics of the process', async () => {
    const replica = await startReplica(UPSTREAM);
    replica.metrics.observeProcess();
    const response = await fetch(`${replica.admin}/metrics`);
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(await response.text()).toContain('process_cpu_seconds_total');
  });

  it('is not the API port', async () => {
    const replica = await startReplica(UPSTREAM);
    for (const path of ['/metrics', '/livez', '/readyz', '/']) {
      expect((await fetch(replica.api + path)).status).toBe(404);
    }
  });
});
