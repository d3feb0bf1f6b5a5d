import type { IncomingHttpHeaders } from 'node:http';
import { expect, it } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { startProvider, streamOneWord } from '../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../replica.ts';

const [TOKEN, OTHER] = ['hf-0123456789abcdef', 'hf-fedcba9876543210'];

type Sent = Record<string, string>;

/** A replica behind a front end that names the user in a header, and a provider that accepts any key. */
async function deploy(tree: Record<string, unknown> = {}) {
  const asked: IncomingHttpHeaders[] = [];
  const root = await startProvider((request, response) => {
    asked.push(request.headers);
    request.resume();
    streamOneWord(response, 'kelp');
  });
  const replica = await startReplica(
    { ...upstreamsAt(`${root}/v1`), owner: { header: 'X-User-Id' }, ...tree },
    { relay },
  );
  return { replica, asked };
}

async function begin({ api }: Replica, headers: Sent): Promise<string> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  });
  expect(await response.text()).toContain('kelp');
  return String(response.headers.get('holdfast-run-id'));
}

const statusOf = async ({ api }: Replica, run: string, headers: Sent): Promise<number> =>
  (await fetch(`${api}/holdfast/v1/runs/${run}`, { headers })).status;

const bearer = (credential: string): Sent => ({ authorization: `Bearer ${credential}` });

it('a run is that of the user whom the front names, whichever token the user has by then', async () => {
  const { replica, asked } = await deploy();
  const user = { 'x-user-id': 'ada' };
  const run = await begin(replica, { ...bearer('the first token'), ...user });
  expect(await statusOf(replica, run, { ...bearer('the second token'), ...user })).toBe(200);
  expect(await statusOf(replica, run, { 'x-api-key': 'the third', 'X-User-Id': ' ada ' })).toBe(200);
  expect(await statusOf(replica, run, user)).toBe(200);
  expect(await statusOf(replica, run, { ...bearer('the first token'), 'x-user-id': 'bob' })).toBe(404);
  expect(await statusOf(replica, run, { ...bearer('the first token'), 'x-user-id': 'Ada' })).toBe(404);
  expect(await statusOf(replica, run, bearer('the first token'))).toBe(404);
  expect(await statusOf(replica, run, bearer('ada'))).toBe(404);
  const list = await fetch(`${replica.api}/holdfast/v1/runs`, { headers: user });
  expect(await list.text()).toContain(run);
  expect(asked.map(({ authorization }) => authorization)).toEqual(['Bearer the first token']);
});

it('without the header, a run is that of its credential', async () => {
  const { replica } = await deploy();
  for (const header of [{}, { 'x-user-id': '' }, { 'x-user-id': '  ' }] as Sent[]) {
    const run = await begin(replica, { ...bearer('a token'), ...header });
    expect(await statusOf(replica, run, bearer('a token'))).toBe(200);
    expect(await statusOf(replica, run, bearer('another'))).toBe(404);
  }
});

it('the header never goes upstream, as part of a run or passed through', async () => {
  const { replica, asked } = await deploy();
  const headers = { ...bearer('a token'), 'x-user-id': 'ada' };
  await begin(replica, headers);
  await (await fetch(`${replica.api}/v1/models`, { headers })).text();
  expect(asked).toHaveLength(2);
  for (const sent of asked) {
    expect(sent).not.toHaveProperty('x-user-id');
    expect(sent.authorization).toBe('Bearer a token');
  }
  expect(await replica.log()).not.toContain('ada');
});

it('a client can name users of its own, and none of another client', async () => {
  const { replica } = await deploy({
    clients: [
      { name: 'front', token: TOKEN, runs: 5 },
      { name: 'other', token: OTHER },
    ],
  });
  const user = { 'x-user-id': 'ada' };
  const run = await begin(replica, { ...bearer(TOKEN), ...user });
  expect(await statusOf(replica, run, { ...bearer(TOKEN), ...user })).toBe(200);
  expect(await statusOf(replica, run, bearer(TOKEN))).toBe(404);
  expect(await statusOf(replica, run, { ...bearer(OTHER), ...user })).toBe(404);
  expect(await statusOf(replica, run, { ...bearer('a stranger'), ...user })).toBe(404);
  const own = await begin(replica, bearer(TOKEN));
  expect(await statusOf(replica, own, bearer(TOKEN))).toBe(200);
  expect(await statusOf(replica, own, { ...bearer(TOKEN), ...user })).toBe(404);
});

it('where it is not configured, the header is one like any other', async () => {
  const { replica, asked } = await deploy({ owner: {} });
  const run = await begin(replica, { ...bearer('a token'), 'x-user-id': 'ada' });
  expect(await statusOf(replica, run, bearer('a token'))).toBe(200);
  expect(asked[0]).toHaveProperty('x-user-id', 'ada');
});
