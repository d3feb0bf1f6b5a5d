import { request as httpRequest } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RunId } from '../../src/checkpoint/store.ts';
import type { RunObservation } from '../../src/proxy/run/context/run-observer.ts';
import type { FeedSnapshot, FeedUpdate } from '../../src/status/snapshot.ts';
import { connect, received } from '../http-peer.ts';
import { NO_UPSTREAM_URL, type Replica, startReplica, upstreamsAt } from '../replica.ts';
import { openFeed } from './feed-reader.ts';
import { type Answer, attempt, observedRun, RESET } from './observed.ts';

interface Begun {
  readonly run: RunId;
  readonly watch: RunObservation;
  readonly answer: Answer;
  end(): Promise<void>;
}

/** A replica whose runs last until the test ends them, with the test in control of what their observer reports. */
async function startWatched(tree: Record<string, unknown> = {}) {
  const begun: PromiseWithResolvers<Begun>[] = [];
  const replica = await startReplica(
    { ...upstreamsAt(NO_UPSTREAM_URL), ...tree },
    async (run, client, context) => {
      const observed = observedRun({ run: run.id, model: run.request.model });
      const watch = context.observer.begin(observed);
      const ended = Promise.withResolvers<void>();
      run.signal.addEventListener('abort', () => ended.resolve());
      client.open({});
      client.write('data: 1\n\n');
      if (!watch) throw new Error('nobody watches');
      begun.shift()?.resolve({
        run: run.id,
        watch,
        answer: observed.answer,
        end: async () => {
          ended.resolve();
          await response.then((each) => each.text());
        },
      });
      await ended.promise;
      client.end('data: [DONE]\n\n');
      return 'complete';
    },
  );
  let response: Promise<Response>;
  const begin = (model = 'gpt-4o'): Promise<Begun> => {
    const waiting = Promise.withResolvers<Begun>();
    begun.push(waiting);
    response = fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    });
    return waiting.promise;
  };
  return { replica, begin };
}

const json = async (replica: Replica, path: string): Promise<Record<string, unknown>> =>
  (await (await fetch(replica.admin + path)).json()) as Record<string, unknown>;

describe('the runs on the admin port', () => {
  it('are listed, live and ended, and each has its timeline', async () => {
    const { replica, begin } = await startWatched();
    const { run, watch, answer } = await begin();
    watch.attempt(attempt(1));
    watch.answering();
    answer.characters = 42;
    expect(await json(replica, '/runs')).toMatchObject({
      version: 1,
      live: [{ run, model: 'gpt-4o', state: 'answering', characters: 42 }],
      ended: [],
    });
    watch.attemptEnded({ outcome: 'interrupted', added: 42, interruption: RESET });
    expect(await json(replica, '/status')).toMatchObject({
      version: 1,
      name: 'holdfast',
      status: 'serving',
      active_requests: 1,
      content: false,
      runs: { live: 1, recovering: 1, ended: {} },
      interruptions: [{ upstream: 'first', cause: 'connection_reset', count: 1 }],
      recovery_gaps: { count: 0 },
      store: { name: 'memory', state: 'ok', failed_appends: 0 },
      targets: [
        { upstream: 'provider', attempts: 0 },
        { upstream: 'first', model: '', state: 'closed', alone: true, attempts: 1, errors: 1 },
      ],
    });
    watch.ended({ outcome: 'failed' });
    expect(await json(replica, '/runs')).toMatchObject({ live: [], ended: [{ run, outcome: 'failed' }] });
    const kinds = ['attempt', 'answering', 'interrupted', 'ended'];
    expect(await json(replica, `/runs/${run}`)).toMatchObject({
      version: 1,
      run,
      timeline: kinds.map((kind) => ({ kind })),
    });
  });

  it.each(['/runs/run_unknown', '/runs/run_0000000000000000000000', '/runs/..%2f..%2fetc%2fpasswd'])(
    '%s: there is no such run',
    async (path) => {
      const { replica } = await startWatched();
      const response = await fetch(replica.admin + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: 'run_not_found' } });
    },
  );

  it('are sent to viewers: a snapshot, then what changes', async () => {
    const { replica, begin } = await startWatched();
    const before = await begin();
    const feed = await openFeed(replica.admin);
    const first = await feed.next<FeedSnapshot>('snapshot');
    expect(first).toMatchObject({
      version: 1,
      status: { runs: { live: 1 } },
      runs: { live: [{ run: before.run }] },
    });
    before.watch.attempt(attempt(1));
    const update = await feed.until<FeedUpdate>('update', ({ changed }) => changed !== undefined);
    expect(update).toMatchObject({
      changed: [{ run: before.run, state: 'asking', attempt: 1 }],
      entries: [{ run: before.run, key: first.runs.live[0]?.key, kind: 'attempt' }],
    });
    before.answer.characters = 9;
    const more = await feed.until<FeedUpdate>('update', ({ progress }) => progress !== undefined);
    expect(more.progress).toEqual([{ key: first.runs.live[0]?.key, characters: 9, tool_calls: 0 }]);
    before.watch.ended({ outcome: 'complete' });
    const last = await feed.until<FeedUpdate>('update', ({ changed }) => changed !== undefined);
    expect(last).toMatchObject({ changed: [{ outcome: 'complete' }], status: { runs: { live: 0 } } });
  });

  it('are sent to so many viewers at once, and to another once one has left', async () => {
    const { replica } = await startWatched();
    const feeds = await Promise.all(Array.from({ length: 20 }, () => openFeed(replica.admin)));
    const refused = await fetch(`${replica.admin}/runs/events`);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ error: { code: 'too_many_viewers' } });
    feeds[0]?.close();
    await expect
      .poll(async () => (await openFeed(replica.admin, false)).status, { timeout: 10_000 })
      .toBe(200);
  });

  it('do not keep the replica from stopping', async () => {
    const { replica } = await startWatched();
    const feed = await openFeed(replica.admin);
    await feed.next('snapshot');
    const drained = replica.server.drain();
    const { status } = await feed.until<FeedUpdate>('update', (update) => update.status !== undefined);
    expect(status?.status).toBe('draining');
    await drained;
    await replica.server.close();
    await feed.ended;
  });

  it('say how the store does', async () => {
    const { replica } = await startWatched();
    replica.store.fault = new Error('disk full');
    expect(await json(replica, '/status')).toMatchObject({
      store: { state: 'failing', reason: 'disk full' },
    });
    const { replica: silent } = await startWatched();
    silent.store.isSilent = true;
    expect(await json(silent, '/status')).toMatchObject({
      store: { state: 'failing', reason: 'it does not answer' },
    });
  });
});

describe('the status page', () => {
  it('is there for browsers, and a short status for other clients', async () => {
    const { replica } = await startWatched();
    const page = await fetch(replica.admin, { headers: { accept: 'text/html,*/*;q=0.8' } });
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('vary')).toContain('accept');
    const html = await page.text();
    expect(html).toContain('<!doctype html>');
    const parts = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, url]) => url ?? '');
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      const { status, headers } = await fetch(new URL(part, replica.admin));
      expect([part, status, headers.get('x-content-type-options')]).toEqual([part, 200, 'nosniff']);
    }
    expect(await json(replica, '/')).toMatchObject({ name: 'holdfast', status: 'serving' });
  });

  it('and all that it is made of run, and are kept, nowhere else', async () => {
    const { replica } = await startWatched();
    for (const path of ['/', '/assets/main.js', '/status', '/runs', '/runs/unknown', '/assets/unknown']) {
      const { headers } = await fetch(replica.admin + path, { headers: { origin: 'https://example.com' } });
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      const policy = headers.get('content-security-policy');
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers.has('access-control-allow-origin')).toBe(false);
    }
    const feed = await openFeed(replica.admin);
    expect(feed.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(feed.headers.get('cache-control')).toBe('no-store');
  });

  it('has no script and no style of its own in its markup', async () => {
    const { replica } = await startWatched();
    const html = await (await fetch(replica.admin, { headers: { accept: 'text/html' } })).text();
    expect(html).not.toMatch(/<style|<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=|javascript:|https?:/i);
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'does nothing when it is asked to %s',
    async (method) => {
      const { replica, begin } = await startWatched();
      const { run } = await begin();
      for (const path of ['/', '/status', '/runs', `/runs/${run}`, '/runs/events', '/assets/main.js']) {
        expect((await fetch(replica.admin + path, { method })).status).toBe(404);
      }
    },
  );

  it('can be asked for by its headers alone', async () => {
    const { replica } = await startWatched();
    for (const path of ['/', '/status', '/runs', '/assets/main.js']) {
      const response = await fetch(replica.admin + path, { method: 'HEAD' });
      expect([path, response.status, await response.text()]).toEqual([path, 200, '']);
    }
  });

  it.each([
    '/assets/..%2findex.html',
    '/assets/../../server.ts',
    '/assets/%2e%2e/page-files.ts',
    '/assets/constructor',
  ])('has no %s', async (path) => {
    const { replica } = await startWatched();
    const socket = await connect(replica.admin);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe('a name that a page could point at the admin port', () => {
  const statusUnder = (admin: string, path: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asked = httpRequest(admin + path, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.on('error', reject).end();
      onTestFinished(() => void asked.destroy());
    });

  it.each([
    'attacker.example',
    'attacker.example:9090',
    'localhost.attacker.example',
    '127.0.0.1.nip.io',
    'x@y@z',
  ])('sees no runs: %j', async (host) => {
    const { replica } = await startWatched();
    for (const path of ['/', '/status', '/runs', '/runs/events', '/runs/x', '/assets/main.js', '/metrics'])
      expect([path, await statusUnder(replica.admin, path, host)]).toEqual([path, 421]);
    for (const path of ['/livez', '/readyz'])
      expect([path, await statusUnder(replica.admin, path, host)]).toEqual([path, 200]);
  });

  it.each([
    'localhost',
    'LOCALHOST:9090',
    'localhost.',
    '127.0.0.1:9090',
    '10.0.0.7',
    '[::1]:9090',
    'holdfast',
    'holdfast-admin.default.svc',
    'holdfast-admin.default.svc.cluster.local:9090',
    'holdfast.internal',
    'Status.Example.com',
  ])('is another one than %s', async (host) => {
    const { replica } = await startWatched({ status_page: { hosts: ['status.example.com'] } });
    expect(await statusUnder(replica.admin, '/runs', host)).toBe(200);
  });
});

describe('content on the admin port', () => {
  const SECRETS = ['the answer itself', 'hello'];

  it.each([false, true])('status_page.content %j', async (content) => {
    const { replica, begin } = await startWatched(content ? { status_page: { content } } : {});
    const feed = await openFeed(replica.admin);
    await feed.next('snapshot');
    const { run, watch, answer } = await begin();
    answer.text = 'the answer itself';
    watch.attempt(attempt(1));
    await feed.until<FeedUpdate>('update', ({ changed }) => changed !== undefined);
    watch.ended({ outcome: 'complete' });
    await feed.until<FeedUpdate>('update', ({ changed }) => changed !== undefined);
    const paths = ['/', '/status', '/runs', '/metrics'];
    const told = [
      feed.text,
      ...(await Promise.all(paths.map(async (path) => (await fetch(replica.admin + path)).text()))),
    ];
    for (const secret of SECRETS) expect(told.join('\n')).not.toContain(secret);
    const detail = await json(replica, `/runs/${run}`);
    expect(detail.text).toBe(content ? 'the answer itself' : undefined);
    expect(await json(replica, '/status')).toMatchObject({ content });
  });
});
