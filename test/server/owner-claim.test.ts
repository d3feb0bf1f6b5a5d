import type { IncomingHttpHeaders } from 'node:http';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { startProvider } from '../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../replica.ts';

const [ISSUER, AUDIENCE] = ['https://login.example.com', 'holdfast'];
/** Longer than a replica remembers that a key doesn't exist. */
const COOLDOWN_MS = 10_000;
/** Longer than a replica trusts a key set without fetching it again. */
const KEYS_MS = 700_000;

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

let [first, second]: KeyPair[] = [];

beforeAll(async () => {
  [first, second] = [await newKeys('RS256'), await newKeys('ES256')];
});

afterEach(() => void vi.useRealTimers());

const newKeys = (algorithm: string) => generateKeyPair(algorithm, { extractable: true });

type KeyServer = Awaited<ReturnType<typeof serveKeys>>['set'];

/** Serves a key set at a URL. The other fields of `set` change how it answers. */
async function serveKeys(keys: Record<string, KeyPair>) {
  const set = { keys, fetched: 0, status: 200, text: '', hangs: false };
  const root = await startProvider(async (_request, response) => {
    set.fetched += 1;
    if (set.hangs) return;
    const entries = Object.entries(set.keys);
    const known = entries.map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid }));
    response.writeHead(set.status, { 'content-type': 'application/json' });
    response.end(set.text || JSON.stringify({ keys: await Promise.all(known) }));
  });
  return { set, url: `${root}/keys` };
}

/** A replica that identifies owners by their `sub`, and a provider that accepts any key. */
async function deploy(owner: Record<string, unknown> = {}, upstream: Record<string, unknown> = {}) {
  const { set, url } = await serveKeys({ first: first as KeyPair });
  const asked: IncomingHttpHeaders[] = [];
  const root = await startProvider((request, response) => {
    asked.push(request.headers);
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    response.write(chunk({ role: 'assistant', content: 'kelp' }, null));
    if (request.headers['x-endless'] === undefined) response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
  });
  const replica = await startReplica(
    {
      upstreams: { main: { base_url: `${root}/v1`, ...upstream } },
      owner: { claim: 'sub', jwks_url: url, issuer: ISSUER, audience: AUDIENCE, ...owner },
    },
    { relay },
  );
  return { replica, asked, keys: set };
}

interface Signing {
  readonly by?: KeyPair['privateKey'] | Uint8Array;
  readonly header?: { readonly alg?: string; readonly kid?: string };
  readonly expires_s?: number;
}

let serial = 0;

/** Every token is unique. */
function tokenOf(claims: Record<string, unknown>, { by, header, expires_s = 3600 }: Signing = {}) {
  serial += 1;
  const now_s = Math.floor(Date.now() / 1000);
  return new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: now_s + expires_s, jti: String(serial), ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'first', ...header })
    .sign(by ?? (first as KeyPair).privateKey);
}

type Sent = Record<string, string>;

const bearer = (token: string): Sent => ({ authorization: `Bearer ${token}` });

const ask = ({ api }: Replica, headers: Sent): Promise<Response> =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  });

async function begin(replica: Replica, headers: Sent): Promise<string> {
  const response = await ask(replica, headers);
  expect(await response.text()).toContain('kelp');
  return String(response.headers.get('holdfast-run-id'));
}

const runAt = ({ api }: Replica, path: string, headers: Sent, init: RequestInit = {}): Promise<Response> =>
  fetch(`${api}/holdfast/v1/runs${path}`, { ...init, headers });

const statusOf = async (replica: Replica, run: string, token: string): Promise<number> =>
  (await runAt(replica, `/${run}`, bearer(token))).status;

async function refusalOf(answer: Response | Promise<Response>) {
  const response = await answer;
  const { error } = (await response.json()) as { error: { code: string; message: string; type: string } };
  return { status: response.status, ...error };
}

const listed = (replica: Replica, headers: Sent) => refusalOf(runAt(replica, '', headers));

it('a run is that of the subject of the token, whichever token the subject has by then', async () => {
  const { replica, asked } = await deploy();
  const [began, rotated] = [await tokenOf({ sub: 'ada' }), await tokenOf({ sub: 'ada' })];
  expect(rotated).not.toBe(began);
  const run = await begin(replica, bearer(began));
  expect(asked.map(({ authorization }) => authorization)).toEqual([`Bearer ${began}`]);

  expect(await statusOf(replica, run, rotated)).toBe(200);
  const list = await runAt(replica, '', bearer(rotated));
  expect(await list.text()).toContain(run);
  const resume = { method: 'POST', body: JSON.stringify({ cursor: 0 }) };
  const json = { 'content-type': 'application/json' };
  const resumed = await runAt(replica, `/${run}/resume`, { ...bearer(rotated), ...json }, resume);
  expect(await resumed.text()).toContain('kelp');
  expect(resumed.status).toBe(200);

  for (const other of [{ sub: 'bob' }, { sub: 'Ada' }]) {
    const token = await tokenOf(other);
    expect(await statusOf(replica, run, token)).toBe(404);
    const refused = await runAt(replica, `/${run}/resume`, { ...bearer(token), ...json }, resume);
    expect(refused.status).toBe(404);
    expect((await runAt(replica, `/${run}`, bearer(token), { method: 'DELETE' })).status).toBe(404);
  }
  expect(asked).toHaveLength(1);
});

it('a run under way is cancelled with a later token of its subject, and with no other', async () => {
  const { replica } = await deploy();
  const response = await ask(replica, { ...bearer(await tokenOf({ sub: 'ada' })), 'x-endless': '1' });
  const run = String(response.headers.get('holdfast-run-id'));
  const cancel = async (sub: string) =>
    (await runAt(replica, `/${run}`, bearer(await tokenOf({ sub })), { method: 'DELETE' })).status;
  expect(await cancel('bob')).toBe(404);
  expect(await cancel('ada')).toBe(200);
  expect(await response.text()).toContain('run_cancelled');
});

it('a subject is one of its issuer, and of its claim', async () => {
  const { replica } = await deploy({ issuer: undefined, audience: undefined });
  const run = await begin(replica, bearer(await tokenOf({ sub: 'ada' })));
  expect(await statusOf(replica, run, await tokenOf({ sub: 'ada', aud: 'others' }))).toBe(200);
  expect(await statusOf(replica, run, await tokenOf({ sub: 'ada', iss: 'https://other.example' }))).toBe(404);
  expect(await statusOf(replica, run, await tokenOf({ sub: 'ada', iss: undefined }))).toBe(404);
  expect(await statusOf(replica, run, await tokenOf({ sub: `ada\n${ISSUER}` }))).toBe(404);
});

it('the key of the operator goes upstream in place of the token', async () => {
  const { replica, asked } = await deploy({}, { api_key: 'sk-of-the-operator' });
  await begin(replica, bearer(await tokenOf({ sub: 'ada' })));
  expect(asked.map(({ authorization }) => authorization)).toEqual(['Bearer sk-of-the-operator']);
});

it.each<[string, () => Promise<string>]>([
  ['has expired', () => tokenOf({ sub: 'ada' }, { expires_s: -60 })],
  ['is not valid yet', () => tokenOf({ sub: 'ada', nbf: Math.floor(Date.now() / 1000) + 600 })],
  ['is for others', () => tokenOf({ sub: 'ada', aud: 'others' })],
  ['is for none', () => tokenOf({ sub: 'ada', aud: undefined })],
  ['is of another issuer', () => tokenOf({ sub: 'ada', iss: 'https://other.example' })],
  ['is of no issuer', () => tokenOf({ sub: 'ada', iss: undefined })],
  ['has no such claim', () => tokenOf({})],
  ['has a claim that is no text', () => tokenOf({ sub: 7 })],
  ['has a claim that is empty', () => tokenOf({ sub: '' })],
  ['is signed with an unknown key', () => tokenOf({ sub: 'ada' }, { header: { kid: 'unknown' } })],
  [
    'is signed with another key than it says',
    async () => tokenOf({ sub: 'ada' }, { by: (await newKeys('RS256')).privateKey }),
  ],
  [
    'is signed with the public key as a secret',
    async () => {
      const secret = new TextEncoder().encode(await exportSPKI((first as KeyPair).publicKey));
      return tokenOf({ sub: 'ada' }, { by: secret, header: { alg: 'HS256' } });
    },
  ],
  [
    'is not signed',
    async () => new UnsecuredJWT({ sub: 'ada', iss: ISSUER, aud: AUDIENCE }).setExpirationTime('1h').encode(),
  ],
  ['was changed', async () => (await tokenOf({ sub: 'ada' })).replace(/\.[\w-]{8}/, '.eyJzdWIi')],
  ['is not a JWT', async () => 'sk-0123456789abcdef'],
])('a token that %s is refused, and nothing is asked of the provider', async (_name, make) => {
  const { replica, asked } = await deploy();
  const token = await make();
  const refusal = { status: 401, code: 'invalid_token' };
  const answer = await refusalOf(ask(replica, bearer(token)));
  expect(answer).toMatchObject(refusal);
  expect(answer.message).not.toContain(token);
  expect(await listed(replica, bearer(token))).toMatchObject(refusal);
  expect((await fetch(`${replica.api}/v1/models`, { headers: bearer(token) })).status).toBe(401);
  expect(asked).toEqual([]);
  const log = await replica.log();
  for (const part of token.split('.').filter((text) => text.length > 8)) expect(log).not.toContain(part);
});

it('a request without a token in Authorization is refused', async () => {
  const { replica } = await deploy();
  const token = await tokenOf({ sub: 'ada' });
  for (const headers of [
    {},
    { authorization: '' },
    { authorization: 'Bearer ' },
    { authorization: `Basic ${token}` },
    { 'x-api-key': token },
    { 'api-key': token },
  ] as Sent[])
    expect(await listed(replica, headers), JSON.stringify(headers)).toMatchObject({
      status: 401,
      code: 'invalid_token',
    });
  const messages = await fetch(`${replica.api}/v1/messages`, { method: 'POST', body: '{}' });
  expect(await refusalOf(messages)).toMatchObject({ status: 401, type: 'authentication_error' });
  // The provider's key may accompany the token.
  expect((await runAt(replica, '', { ...bearer(token), 'x-api-key': 'sk-1' })).status).toBe(200);
});

it.each<[string, Partial<KeyServer>]>([
  ['answers with an error', { status: 500 }],
  ['sends no key set', { text: '{"keys":7}' }],
  ['sends no JSON', { text: '<html>' }],
  ['does not answer', { hangs: true }],
])(
  'while the server of the keys %s, no owner is known, and afterwards they are again',
  async (_name, fault) => {
    const { replica, keys, asked } = await deploy();
    const token = await tokenOf({ sub: 'ada' });
    const sound = { ...keys };
    Object.assign(keys, fault);
    const response = await ask(replica, bearer(token));
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await refusalOf(response)).toMatchObject({ status: 503, code: 'identity_unavailable' });
    expect(await listed(replica, bearer('sk-0123456789abcdef'))).toMatchObject({ status: 401 });
    expect(asked).toEqual([]);
    Object.assign(keys, sound);
    await begin(replica, bearer(token));
    const log = await replica.log();
    expect(log).toContain('owner.jwks_url');
    expect(log).not.toContain(token);
  },
);

it('keys that are known still count while their server cannot be reached', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { replica, keys } = await deploy();
  const token = await tokenOf({ sub: 'ada' });
  const run = await begin(replica, bearer(token));
  expect(keys.fetched).toBe(1);
  keys.status = 503;
  vi.setSystemTime(Date.now() + KEYS_MS);
  expect(await statusOf(replica, run, token)).toBe(200);
  expect(keys.fetched).toBe(2);
  const unknown = await tokenOf({ sub: 'ada' }, { header: { kid: 'unknown' } });
  expect(await listed(replica, bearer(unknown))).toMatchObject({ status: 503 });
  keys.status = 200;
  expect(await listed(replica, bearer(unknown))).toMatchObject({ status: 401 });
});

it('a new key is found, and one that was withdrawn counts no more', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { replica, keys } = await deploy();
  const old = await tokenOf({ sub: 'ada' });
  const run = await begin(replica, bearer(old));
  keys.keys = { second: second as KeyPair };
  const signing = { by: (second as KeyPair).privateKey, header: { alg: 'ES256', kid: 'second' } };
  const rotated = await tokenOf({ sub: 'ada' }, signing);
  vi.setSystemTime(Date.now() + COOLDOWN_MS);
  expect(await statusOf(replica, run, rotated)).toBe(200);
  expect(await statusOf(replica, run, old)).toBe(401);
  expect(keys.fetched).toBe(2);
});

it('unknown keys make no flood of requests for the keys', async () => {
  const { replica, keys } = await deploy();
  for (let kid = 0; kid < 5; kid += 1) {
    const token = await tokenOf({ sub: 'ada' }, { header: { kid: `unknown-${kid}` } });
    expect(await listed(replica, bearer(token))).toMatchObject({ status: 401 });
  }
  expect(keys.fetched).toBe(1);
});

it('without a claim, a JWT is a credential like any other', async () => {
  const { replica } = await startPlain();
  const token = await tokenOf({ sub: 'ada' });
  const run = await begin(replica, bearer(token));
  expect(await statusOf(replica, run, token)).toBe(200);
  expect(await statusOf(replica, run, await tokenOf({ sub: 'ada' }))).toBe(404);
});

async function startPlain() {
  const root = await startProvider((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: 'kelp' }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
    );
  });
  return { replica: await startReplica(upstreamsAt(`${root}/v1`), { relay }) };
}
