import { describe, expect, it, test } from 'vitest';
import { ownerOf } from '../../../src/checkpoint/owner.ts';
import { systemTime } from '../../../src/lib/time.ts';
import { SignedUrls } from '../../../src/proxy/api/signed-urls.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { HEADER, newRunId } from '../../checkpoint/fixtures.ts';
import { chunkEvent, providerRequests, startProvider, streamOneWord } from '../../http-peer.ts';
import { type Replica, SECRET, upstreamsAt } from '../../replica.ts';
import { openFeed } from '../../status/feed-reader.ts';
import {
  BODY,
  CREDENTIAL,
  deploy,
  errorOf,
  fetchRun,
  OWNER,
  postChat,
  STRANGER,
  textRun,
} from '../run-deployment.ts';
import { deployTasks } from './task-deployment.ts';

interface Urls {
  readonly read: string;
  readonly stop: string;
  readonly expires_at: number;
}

const BOTH = ['read', 'stop'];

const askForUrls = (replica: Replica, run: string, body: unknown, headers?: Record<string, string>) =>
  fetchRun(replica, `${run}/urls`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

async function urlsOf(replica: Replica, run: string, body: object = {}): Promise<Urls> {
  const response = await askForUrls(replica, run, { allow: BOTH, ...body });
  expect(response.status).toBe(200);
  return (await response.json()) as Urls;
}

const post = { method: 'POST' };

/** A run that its client has started and that isn't complete. */
async function beginRun() {
  const deployment = await deployTasks();
  deployment.provider.manner = 'begins';
  const answer = await postChat(deployment.replica, { 'holdfast-resume': '1' });
  return { ...deployment, answer, run: String(answer.headers.get('holdfast-run-id')) };
}

describe('signed URLs', () => {
  it('read a run and stop it without a credential, at every replica', async () => {
    const { replica, other, run, answer } = await beginRun();
    const urls = await urlsOf(replica, run);
    expect(urls).toEqual({
      id: run,
      object: 'holdfast.urls',
      read: expect.stringMatching(`^/holdfast/v1/runs/${run}/stream\\?signature=`),
      stop: expect.stringMatching(`^/holdfast/v1/runs/${run}/stop\\?signature=`),
      expires_at: expect.any(Number),
    });
    const reading = await fetch(other.api + urls.read);
    expect([reading.status, reading.headers.get('holdfast-run-id')]).toEqual([200, run]);
    const stopped = await fetch(other.api + urls.stop, post);
    expect([stopped.status, await stopped.json()]).toEqual([
      200,
      { id: run, object: 'holdfast.run', status: 'cancelled' },
    ]);
    expect(await reading.text()).toMatch(/kel.*run_cancelled/s);
    await answer.body?.cancel();
  });

  it('are given for what is asked for alone, and show for how long', async () => {
    const { replica } = await deploy();
    const run = newRunId();
    const before_s = Date.now() / 1000;
    const answer = await askForUrls(replica, run, { allow: ['stop'] });
    const urls = (await answer.json()) as Urls;
    expect(Object.keys(urls)).toEqual(['id', 'object', 'stop', 'expires_at']);
    expect(urls.expires_at - before_s).toBeGreaterThan(598);
    expect(urls.expires_at - before_s).toBeLessThan(660);
    const { expires_at } = await urlsOf(replica, run, { ttl_s: 86_400 });
    expect(expires_at - before_s).toBeGreaterThan(86_398);
  });

  it.each([
    [{}, 'allow'],
    [{ allow: [] }, 'allow'],
    [{ allow: ['write'] }, 'allow'],
    [{ allow: 'read' }, 'allow'],
    [{ allow: BOTH, ttl_s: 0 }, 'ttl_s'],
    [{ allow: BOTH, ttl_s: 1.5 }, 'ttl_s'],
    [{ allow: BOTH, ttl_s: 86_401 }, 'ttl_s'],
    [{ allow: BOTH, for: 'ever' }, 'for'],
  ])('are refused for %j, which names the field', async (body, param) => {
    const { replica } = await deploy();
    const refusal = await errorOf(await askForUrls(replica, newRunId(), body));
    expect(refusal).toEqual({ status: 400, code: 'invalid_field', param });
  });

  it('allow one thing each, with one run', async () => {
    const { replica, begin, readers } = await deploy();
    const [{ run }, { run: another }] = [await begin(textRun), await begin(textRun)];
    const urls = await urlsOf(replica, run);
    const signature = (url: string) => url.slice(url.indexOf('?'));
    const forged = [
      fetch(`${replica.api}/holdfast/v1/runs/${run}/stop${signature(urls.read)}`, post),
      fetch(`${replica.api}/holdfast/v1/runs/${run}/stream${signature(urls.stop)}`),
      fetch(`${replica.api}/holdfast/v1/runs/${another}/stream${signature(urls.read)}`),
      fetch(`${replica.api}/holdfast/v1/runs/${another}/stop${signature(urls.stop)}`, post),
      fetch(`${replica.api}/holdfast/v1/runs/none/stream${signature(urls.read)}`),
      fetch(`${replica.api}${urls.read}&signature=2`),
      fetch(`${replica.api}/holdfast/v1/runs/${run}/stream?signature=`),
    ];
    for (const answer of await Promise.all(forged))
      expect(await errorOf(answer)).toEqual({ status: 403, code: 'signature_invalid', param: null });
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/urls'],
    ]) {
      const url = `${replica.api}/holdfast/v1/runs/${run}${path}${signature(urls.read)}`;
      const json = { 'content-type': 'application/json' };
      const body = method === 'POST' ? { body: '{"allow":["read"]}', headers: json } : {};
      const answer = await fetch(url, { method: String(method), ...body });
      // A client without a credential is another owner, whose URL doesn't lead to this run either.
      if (path === '/urls') {
        const { read } = (await answer.json()) as Urls;
        expect((await fetch(replica.api + read)).status).toBe(404);
      } else expect(answer.status).toBe(404);
    }
    expect(readers).toEqual([]);
    expect((await fetch(replica.api + urls.read)).status).toBe(200);
    expect(readers).toHaveLength(1);
  });

  it('lead to nothing that their owner does not have', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    const answer = await askForUrls(replica, run, { allow: BOTH }, STRANGER);
    const { read, stop } = (await answer.json()) as Urls;
    expect((await errorOf(await fetch(replica.api + read))).code).toBe('run_not_found');
    expect((await errorOf(await fetch(replica.api + stop, post))).code).toBe('run_not_found');
  });

  it('are over when their time is', async () => {
    const clock = { ahead_ms: 0 };
    const time = { ...systemTime, wall: () => Date.now() + clock.ahead_ms };
    const { replica, begin } = await deploy({ time });
    const { run } = await begin(textRun);
    const { read, stop, expires_at } = await urlsOf(replica, run, { ttl_s: 60 });
    clock.ahead_ms = (expires_at - 1) * 1000 - Date.now();
    expect((await fetch(replica.api + read)).status).toBe(200);
    clock.ahead_ms = expires_at * 1000 - Date.now() + 1;
    const late = await Promise.all([fetch(replica.api + read), fetch(replica.api + stop, post)]);
    for (const answer of late)
      expect(await errorOf(answer)).toEqual({ status: 403, code: 'url_expired', param: null });
  });

  it.each([
    ['clients are named', { clients: [{ name: 'app', token: 'token-of-sixteen' }] }],
    ['tokens name the owner', { owner: { claim: 'sub', jwks_url: 'http://127.0.0.1:9/keys' } }],
    ['a header names the owner', { owner: { header: 'x-user' } }],
  ])('need nothing besides where %s', async (_, tree) => {
    const { replica, begin } = await deploy({}, tree);
    const { run } = await begin(textRun);
    const signature = new SignedUrls(SECRET).sign('read', run, OWNER, 2_000_000_000);
    const url = `${replica.api}/holdfast/v1/runs/${run}/stream?signature=${signature}`;
    const answer = await fetch(url, {
      headers: { 'x-user': 'mallory', authorization: 'Bearer of the page' },
    });
    expect([answer.status, await answer.text()]).toEqual([200, 'data: after 0 of 2\n\n']);
  });

  it('are in no log and on no status page', async () => {
    const { replica, begin } = await deploy();
    const { run } = await begin(textRun);
    const feed = await openFeed(replica.admin);
    const { read, stop } = await urlsOf(replica, run);
    for (const url of [read, `${read}x`, stop, `${stop}x`, `${read.replace('/stream', '/nothing')}`])
      await (await fetch(replica.api + url, url.includes('/stop') ? post : {})).text();
    replica.store.fault = new Error('away');
    await (await fetch(replica.api + read)).text();
    feed.close();
    await feed.ended;
    const said = (await replica.log()) + feed.text;
    expect(said).toContain('the store cannot be read');
    for (const url of [read, stop]) {
      const [expires = '', owner = '', key = '', mac = ''] = url.replace(/.*=/, '').split('.');
      expect([expires.length, owner.length, key.length, mac.length]).toEqual([10, 64, 8, 22]);
      for (const part of [owner, mac]) expect(said).not.toContain(part);
    }
  });
});

describe('a page', () => {
  it('of a configured origin may use a signed URL, and no other page', async () => {
    const cors_origins = ['https://app.example.com'];
    const { replica, begin } = await deploy({}, { listen: { port: 0, admin_port: 0, cors_origins } });
    const { run } = await begin(textRun);
    const { read, stop } = await urlsOf(replica, run);
    const ask = (path: string, origin: string, init: RequestInit = {}) =>
      fetch(replica.api + path, { ...init, headers: { origin } });
    const answer = await ask(read, 'https://app.example.com');
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
      200,
      'https://app.example.com',
    ]);
    for (const [path, init] of [
      [read, {}],
      [stop, post],
    ] as const)
      expect((await errorOf(await ask(path, 'https://other.example.com', init))).code).toBe(
        'origin_not_allowed',
      );
    expect((await stateOf(replica, run)).status).toBe('running');
    expect((await ask(stop, 'https://app.example.com', post)).status).toBe(200);
  });
});

const stateOf = async (replica: Replica, run: string) =>
  (await (await fetchRun(replica, run)).json()) as { status: string };

describe('a run whose replica is lost', () => {
  const header = { ...HEADER, body: BODY };
  const payload = chunkEvent({ role: 'assistant', content: 'Hel' }).slice('data: '.length).trim();
  const begun = [
    { seq: 0, header, events: [] },
    { seq: 1, events: [{ deltas: [{ kind: 'text', text: 'Hel' } as const], payload }] },
  ];

  /** A replica that reads such a run by a signed URL, and the provider that is asked for the rest. */
  async function readLost(upstream: Record<string, unknown>) {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const { replica, begin, other } = await deploy(
      { relay, follow: undefined as never },
      upstreamsAt(`${root}/v1`, upstream),
    );
    const lease = await begin(begun);
    await other.release(lease);
    const { read } = await urlsOf(replica, lease.run);
    const answer = await fetch(replica.api + read, { headers: { authorization: 'Bearer of the page' } });
    return { provider, answer, replica, run: lease.run };
  }

  test('is continued for a signed URL with the key of the operator', async () => {
    const { provider, answer } = await readLost({ api_key: 'sk-operator' });
    const { request, response } = await provider.next();
    expect(request.headers.authorization).toBe('Bearer sk-operator');
    request.resume();
    streamOneWord(response, 'lo');
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('[DONE]');
  });

  test('is left as it is where there is none, for its client to come back with the key', async () => {
    const { answer, replica, run } = await readLost({});
    expect(await answer.text()).toContain('run_not_routed');
    expect((await stateOf(replica, run)).status).toBe('running');
  });
});

describe('a signature', () => {
  const run = newRunId();
  const [expires_s, now_ms] = [1_800_000_000, 1_799_999_999_000];
  const owner = ownerOf(SECRET, CREDENTIAL);
  const signature = new SignedUrls(SECRET).sign('read', run, owner, expires_s);

  test('is checked by whatever has the secret, and by nothing else', () => {
    expect(new SignedUrls(SECRET).ownerOf('read', run, signature, now_ms)).toBe(owner);
    const others = new SignedUrls('another secret of sixteen');
    expect(() => others.ownerOf('read', run, signature, now_ms)).toThrow("doesn't allow");
  });

  test('does not hold when any of its characters is another one', () => {
    const urls = new SignedUrls(SECRET);
    for (let at = 0; at < signature.length; at++) {
      const character = signature[at] === '1' ? '2' : '1';
      const forged = signature.slice(0, at) + character + signature.slice(at + 1);
      expect(() => urls.ownerOf('read', run, forged, now_ms), forged).toThrow("doesn't allow");
    }
    for (const forged of [`${signature}=`, signature.slice(1), ` ${signature}`, undefined, [signature, '2']])
      expect(() => urls.ownerOf('read', run, forged, now_ms)).toThrow("doesn't allow");
  });
});
