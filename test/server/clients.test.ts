import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { relay } from '../../src/proxy/run/relay.ts';
import { startProvider } from '../http-peer.ts';
import { type Replica, type ReplicaParts, startReplica } from '../replica.ts';

const TOKEN = 'hf-0123456789abcdef';
const OTHER = 'hf-fedcba9876543210';
const KEY = 'sk-of-the-operator';
const CHAT = '/v1/chat/completions';

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const bodyFor = (model: string, more: object = { stream: true }) =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more });

const json = { 'content-type': 'application/json' };

const ask = (
  { api }: Replica,
  method: string,
  path: string,
  headers: Record<string, string | string[]> = {},
  body = '',
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = method === 'POST' ? { ...json, ...headers } : headers;
    const request = httpRequest(api + path, { method, headers: sent }, async (response) => {
      const { statusCode, headers } = response;
      resolve({ status: statusCode, headers, body: await text(response) });
    });
    request.on('error', reject).end(body);
  });

const codeOf = ({ status, body }: Answer) => [status, body === '' ? '' : JSON.parse(body).error?.code];

/** A replica with its own key, in front of a provider that answers with one short stream, or one document. */
async function deploy(tree: Record<string, unknown> = {}, parts: ReplicaParts = { relay }) {
  const asked: { readonly url: string | undefined; readonly headers: IncomingHttpHeaders }[] = [];
  const root = await startProvider((request, response) => {
    asked.push({ url: request.url, headers: request.headers });
    request.resume();
    request.on('end', () => {
      if (request.url !== CHAT) return void response.writeHead(200, json).end('{"object":"list"}');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = (delta: object, finish_reason: string | null) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
      response.end(
        `${chunk({ role: 'assistant', content: 'kelp' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`,
      );
    });
  });
  const upstreams = { main: { base_url: `${root}/v1`, api_key: KEY }, own: { base_url: `${root}/v1` } };
  const { own: _, ...keyed } = upstreams;
  const replica = await startReplica(
    {
      upstreams: keyed,
      clients: [
        { name: 'chat-ui', token: TOKEN },
        { name: 'batch', token: OTHER },
      ],
      ...(typeof tree.with === 'function' ? tree.with(upstreams) : tree),
    },
    parts,
  );
  return { replica, asked };
}

const RESUME = '/holdfast/v1/runs/run_AAAAAAAAAAAAAAAAAAAAAA/resume';

/** For a client that brings its whole request, and has received nothing. */
const resumeBodyFor = (model: string): string =>
  JSON.stringify({ cursor: 0, tail: [], request: { path: CHAT, body: bodyFor(model) } });

const CARRIERS: readonly (readonly [string, (token: string) => string])[] = [
  ['authorization', (token) => `Bearer ${token}`],
  ['authorization', (token) => `bearer   ${token} `],
  ['authorization', (token) => token],
  ['x-api-key', (token) => token],
  ['api-key', (token) => token],
  ['x-goog-api-key', (token) => token],
];

const REQUESTS: readonly (readonly [string, string, string])[] = [
  ['POST', CHAT, bodyFor('gpt-4o')],
  ['POST', CHAT, bodyFor('gpt-4o', {})],
  ['POST', CHAT, bodyFor('gpt-4o', { stream: 'odd' })],
  ['POST', '/v1/messages', bodyFor('claude', { stream: true, max_tokens: 9 })],
  ['POST', '/v1/embeddings', '{}'],
  ['GET', '/v1/models', ''],
  ['DELETE', '/v1/files/one', ''],
  ['GET', '/holdfast/v1/runs', ''],
  ['GET', '/holdfast/v1/runs/run_AAAAAAAAAAAAAAAAAAAAAA', ''],
  ['GET', '/holdfast/v1/runs/run_AAAAAAAAAAAAAAAAAAAAAA/stream', ''],
  ['POST', RESUME, resumeBodyFor('gpt-4o')],
  ['DELETE', '/holdfast/v1/runs/run_AAAAAAAAAAAAAAAAAAAAAA', ''],
];

describe("where every key is the operator's", () => {
  it.each(REQUESTS)(
    'a request without a token is refused before anything is asked: %s %s %s',
    async (...asks) => {
      const { replica, asked } = await deploy();
      const [method, path, body] = asks;
      const strangers = CARRIERS.flatMap(([name, carry]) =>
        ['sk-of-their-own', TOKEN.slice(0, -1), `${TOKEN}0`, KEY].map((token) => ({ [name]: carry(token) })),
      );
      for (const headers of [{}, { authorization: 'Bearer' }, ...strangers]) {
        const answer = await ask(replica, method, path, headers, body);
        expect(answer.status).toBe(401);
        expect(answer.body).toContain('unknown_client');
      }
      expect(asked).toEqual([]);
    },
  );

  it.each(CARRIERS)(
    'a client is known by its token in %s (%#), which never goes upstream',
    async (name, carry) => {
      const { replica, asked } = await deploy();
      const headers = { [name]: carry(TOKEN) };
      for (const [method, path, body] of REQUESTS.slice(0, 8)) {
        if (path === '/v1/messages') continue;
        const { status } = await ask(replica, method, path, headers, body);
        expect([path, status]).toEqual([path, 200]);
      }
      expect(asked.length).toBeGreaterThanOrEqual(6);
      for (const { headers } of asked) {
        expect(headers.authorization).toBe(`Bearer ${KEY}`);
        expect(JSON.stringify(headers)).not.toContain(TOKEN);
      }
    },
  );

  it('errors have the shape of the wire', async () => {
    const { replica } = await deploy();
    const { body } = await ask(
      replica,
      'POST',
      '/v1/messages',
      {},
      bodyFor('claude', { stream: true, max_tokens: 9 }),
    );
    expect(JSON.parse(body)).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
  });

  it('what is served nowhere is said to anyone, and a page asks beforehand without a token', async () => {
    const { replica } = await deploy({
      listen: { port: 0, admin_port: 0, cors_origins: ['https://app.example.com'] },
    });
    expect(codeOf(await ask(replica, 'GET', '/'))).toEqual([404, 'not_found']);
    const origin = { origin: 'https://app.example.com' };
    const preflight = { ...origin, 'access-control-request-method': 'POST' };
    expect((await ask(replica, 'OPTIONS', CHAT, preflight)).status).toBe(204);
    const refused = await ask(replica, 'POST', CHAT, origin, bodyFor('gpt-4o'));
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, origin.origin]);
  });

  it('a large body is not waited for, and its client still reads the answer', async () => {
    const { replica, asked } = await deploy();
    const { socket, status } = await new Promise<{ socket: Socket; status: number | undefined }>(
      (resolve, reject) => {
        const request = httpRequest(replica.api + CHAT, {
          method: 'POST',
          headers: { ...json, 'content-length': 30_000_000 },
        });
        request
          .on('error', reject)
          .on('response', ({ statusCode, socket }) => resolve({ socket, status: statusCode }));
        request.write(Buffer.alloc(5_000_000, ' '));
      },
    );
    socket.destroy();
    expect(status).toBe(401);
    expect(
      await (
        await fetch(replica.api + CHAT, { method: 'POST', headers: json, body: ' '.repeat(30_000_000) })
      ).text(),
    ).toContain('unknown_client');
    expect(asked).toEqual([]);
  });

  it('a token may be in several headers, and goes no further in any of them', async () => {
    const { replica, asked } = await deploy();
    const headers = Object.fromEntries(CARRIERS.map(([name, carry]) => [name, carry(TOKEN)]));
    expect((await ask(replica, 'GET', '/v1/models', headers)).status).toBe(200);
    expect(JSON.stringify(asked)).not.toContain(TOKEN);
  });

  it('two tokens in one request are two credentials', async () => {
    const { replica, asked } = await deploy();
    const headers = { authorization: `Bearer ${TOKEN}`, 'x-api-key': OTHER };
    expect(codeOf(await ask(replica, 'GET', '/v1/models', headers))).toEqual([
      400,
      'conflicting_credentials',
    ]);
    expect(asked).toEqual([]);
  });
});

it('nothing is refused where no clients are configured', async () => {
  const { replica } = await deploy({ clients: [] });
  expect((await ask(replica, 'POST', CHAT, {}, bodyFor('gpt-4o'))).status).toBe(200);
});

describe('a run', () => {
  const runOf = ({ headers }: Answer) => String(headers['holdfast-run-id']);

  it("is its client's: not another one's, and the same after the token has changed", async () => {
    const runs = new MemoryRuns();
    const before = await deploy({}, { relay, runs });
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const run = runOf(await ask(before.replica, 'POST', CHAT, bearer(TOKEN), bodyFor('gpt-4o')));
    const path = `/holdfast/v1/runs/${run}`;
    expect((await ask(before.replica, 'GET', path, { 'x-api-key': TOKEN })).status).toBe(200);
    expect(codeOf(await ask(before.replica, 'GET', path, bearer(OTHER)))).toEqual([404, 'run_not_found']);

    const rotated = 'hf-a-token-of-the-next-month';
    const clients = [
      { name: 'chat-ui', token: rotated },
      { name: 'batch', token: OTHER },
    ];
    const after = await deploy({ clients }, { relay, runs });
    expect((await ask(after.replica, 'GET', path, bearer(TOKEN))).status).toBe(401);
    expect((await ask(after.replica, 'GET', path, bearer(rotated))).status).toBe(200);
    const stream = await ask(after.replica, 'GET', `${path}/stream`, bearer(rotated));
    expect(stream.body).toContain('kelp');
    const list = await ask(after.replica, 'GET', '/holdfast/v1/runs', bearer(rotated));
    expect(JSON.parse(list.body).data.map(({ id }: { id: string }) => id)).toEqual([run]);
    expect((await ask(after.replica, 'GET', '/holdfast/v1/runs', bearer(OTHER))).body).not.toContain(run);
  });

  it('says in the log whose it is, and never with which token', async () => {
    const { replica } = await deploy();
    await ask(replica, 'POST', CHAT, { 'x-api-key': TOKEN }, bodyFor('gpt-4o'));
    await ask(replica, 'POST', CHAT, { 'x-api-key': 'sk-of-a-stranger' }, bodyFor('gpt-4o'));
    const log = await replica.log();
    expect(log).toMatch(/"client":"chat-ui".*"run ended"/);
    for (const secret of [TOKEN, KEY, 'sk-of-a-stranger']) expect(log).not.toContain(secret);
  });
});

describe('routes of a client', () => {
  const narrow = {
    with: (upstreams: { main: object }) => ({
      upstreams: { main: upstreams.main },
      routes: ['small-*', 'small-*-large', '*'].map((model) => ({ model, targets: [{ upstream: 'main' }] })),
      clients: [
        { name: 'narrow', token: TOKEN, routes: ['small-*'] },
        { name: 'wide', token: OTHER },
      ],
    }),
  };
  const headers = { authorization: `Bearer ${TOKEN}` };

  it('are those that it may use', async () => {
    const { replica, asked } = await deploy(narrow);
    for (const more of [{ stream: true }, {}, { stream: 'odd' }]) {
      const allowed = await ask(replica, 'POST', CHAT, headers, bodyFor('small-one', more));
      expect(allowed.status).toBe(200);
      const before = asked.length;
      const refused = await ask(replica, 'POST', CHAT, headers, bodyFor('large', more));
      expect(codeOf(refused)).toEqual([403, 'route_not_allowed']);
      expect(asked).toHaveLength(before);
      const other = { authorization: `Bearer ${OTHER}` };
      expect((await ask(replica, 'POST', CHAT, other, bodyFor('large', more))).status).toBe(200);
    }
  });

  it('do not have what is on no route', async () => {
    const { replica, asked } = await deploy(narrow);
    for (const [method, path, body] of [
      ['POST', '/v1/embeddings', bodyFor('small-one')],
      ['GET', '/v1/models', ''],
      ['POST', '/v1/chat/completions/', bodyFor('small-one')],
      ['POST', CHAT, JSON.stringify({ messages: [] })],
    ] as const)
      expect(codeOf(await ask(replica, method, path, headers, body))).toEqual([403, 'route_not_allowed']);
    expect(asked).toEqual([]);
  });

  it('hold for a run that is brought back with its request, too', async () => {
    const { replica, asked } = await deploy(narrow);
    const resume = (model: string) => ask(replica, 'POST', RESUME, headers, resumeBodyFor(model));
    expect(codeOf(await resume('large'))).toEqual([403, 'route_not_allowed']);
    expect(asked).toEqual([]);
    expect((await resume('small-one')).status).toBe(200);
    expect(asked).toHaveLength(1);
  });
});

describe("where some keys are the clients' own", () => {
  const mixed = {
    with: (upstreams: { main: object; own: object }) => ({
      upstreams,
      routes: [
        { model: 'own-*', targets: [{ upstream: 'own' }] },
        { model: 'both-*', targets: [{ upstream: 'own' }, { upstream: 'main' }] },
        {
          model: 'summed-*',
          targets: [{ upstream: 'own' }],
          compression: { upstream: 'main', model: 'small' },
        },
        { model: '*', targets: [{ upstream: 'main' }] },
      ],
    }),
  };
  const stranger = { authorization: 'Bearer sk-of-their-own' };

  it("no token is needed on a route that spends no key of the operator's, and one is on all others", async () => {
    const { replica, asked } = await deploy(mixed);
    for (const more of [{ stream: true }, {}, { stream: 'odd' }]) {
      expect((await ask(replica, 'POST', CHAT, stranger, bodyFor('own-1', more))).status).toBe(200);
      expect(asked.at(-1)?.headers.authorization).toBe('Bearer sk-of-their-own');
      const before = asked.length;
      for (const model of ['both-1', 'summed-1', 'gpt-4o'])
        expect(codeOf(await ask(replica, 'POST', CHAT, stranger, bodyFor(model, more)))).toEqual([
          401,
          'unknown_client',
        ]);
      expect(codeOf(await ask(replica, 'GET', '/v1/models', stranger))).toEqual([401, 'unknown_client']);
      expect(asked).toHaveLength(before);
    }
  });

  it('a run cannot be brought back by a stranger either', async () => {
    const { replica, asked } = await deploy(mixed);
    const resume = (model: string) => ask(replica, 'POST', RESUME, stranger, resumeBodyFor(model));
    expect(codeOf(await resume('both-1'))).toEqual([401, 'unknown_client']);
    expect(asked).toEqual([]);
  });

  it('a token does not go to an upstream that would take a key of the client', async () => {
    const { replica, asked } = await deploy(mixed);
    for (const [name, carry] of CARRIERS) {
      const beside = { 'openai-organization': 'org', 'cf-aig-authorization': 'Bearer of the gateway' };
      await ask(replica, 'POST', CHAT, { [name]: carry(TOKEN), ...beside }, bodyFor('own-1'));
      const { headers } = asked.at(-1) ?? { headers: {} };
      expect(JSON.stringify(headers)).not.toContain(TOKEN);
      expect(headers).toMatchObject(beside);
    }
    expect(asked).toHaveLength(CARRIERS.length);
  });
});

it('a client has so many runs at once, whatever others have', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { replica } = await deploy(
    {
      clients: [
        { name: 'one', token: TOKEN, runs: 1 },
        { name: 'two', token: OTHER },
      ],
    },
    {
      relay: async (_run, client) => {
        client.open({});
        await released;
        client.end('data: [DONE]\n\n');
        return 'complete';
      },
    },
  );
  const begun = ask(replica, 'POST', CHAT, { 'x-api-key': TOKEN }, bodyFor('gpt-4o'));
  const other = ask(replica, 'POST', CHAT, { 'x-api-key': OTHER }, bodyFor('gpt-4o'));
  await expect.poll(() => replica.metrics.activeRuns.get().then(({ values }) => values[0]?.value)).toBe(2);
  const refused = await ask(replica, 'POST', CHAT, { authorization: `Bearer ${TOKEN}` }, bodyFor('gpt-4o'));
  expect(codeOf(refused)).toEqual([429, 'too_many_runs']);
  expect(refused.headers['retry-after']).toBe('1');
  expect(JSON.parse(refused.body).error.message).toContain('1 active runs on this replica (clients[].runs)');
  release();
  expect([(await begun).status, (await other).status]).toEqual([200, 200]);
  expect((await ask(replica, 'POST', CHAT, { 'x-api-key': TOKEN }, bodyFor('gpt-4o'))).status).toBe(200);
});
