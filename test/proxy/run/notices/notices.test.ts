import type { IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { ownerOf } from '../../../../src/checkpoint/owner.ts';
import type { Run } from '../../../../src/proxy/run/context/run.ts';
import { leaveThreadNote, threadNote } from '../../../../src/proxy/run/notices/thread-notice.ts';
import { newRunId } from '../../../checkpoint/fixtures.ts';
import { startProvider } from '../../../http-peer.ts';
import { type Replica, SECRET, startReplica, upstreamsAt } from '../../../replica.ts';

const CREDENTIAL = { authorization: 'Bearer client-key' };
const ASK = { temperature: 0.5, model: 'gpt', messages: [{ role: 'user', content: 'Tell me.' }] };
const ANSWER = '{"id":"chatcmpl-1","choices":[{"message":{"role":"assistant","content":"Kelp"}}]}';
const NOTICE = { role: 'system', content: expect.stringMatching(/^last_partial_recovery: \{/) };

/** The route of requests that don't ask for a stream and aren't recovered. */
const passingThrough = (target: object = {}) => ({
  routes: [{ model: '*', non_streaming: 'pass_through', targets: [{ upstream: 'provider', ...target }] }],
});

interface Asked {
  readonly body: { readonly messages: readonly object[]; readonly [field: string]: unknown };
  readonly headers: IncomingHttpHeaders;
}

/** Starts a provider that answers with these statuses in order, and then with 200. */
async function start(statuses: readonly number[] = [], tree: Record<string, unknown> = passingThrough()) {
  const asked: Asked[] = [];
  const left = [...statuses];
  const root = await startProvider(async (request, response) => {
    asked.push({ body: (await json(request)) as Asked['body'], headers: request.headers });
    const status = left.shift() ?? 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(status === 200 ? ANSWER : `{"error":{"message":"refusal ${asked.length}"}}`);
  });
  const replica = await startReplica({ ...upstreamsAt(`${root}/v1`), ...tree });
  await leave(replica);
  return { replica, asked };
}

function leave({ store }: Replica): Promise<void> {
  const end = { status: 'recovered_from_partial' } as const;
  const times = { created_at_ms: 0, interrupted_at_ms: 0 };
  const cut = { run: newRunId(), ...times, model: 'gpt', end, text: 'The holdfast', calls: [] };
  return leaveThreadNote(store.notes, ownerOf(SECRET, CREDENTIAL), 'thread', threadNote(cut), 3_600_000);
}

const post = (
  { api }: Replica,
  headers: Record<string, string> = {},
  body: object = ASK,
  path = '/chat/completions',
) =>
  fetch(`${api}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...CREDENTIAL, 'holdfast-thread': 'thread', ...headers },
    body: JSON.stringify(body),
  });

const messagesOf = (asked: readonly Asked[]) => asked.map(({ body }) => body.messages);

describe('a completion that is passed through', () => {
  test('tells the model once, and is the client’s own in everything else', async () => {
    const { replica, asked } = await start();
    const response = await post(replica);
    expect(await response.text()).toBe(ANSWER);
    await post(replica);
    expect(asked[0]?.body).toEqual({ ...ASK, messages: [NOTICE, ...ASK.messages] });
    expect(asked[0]?.headers).not.toHaveProperty('holdfast-thread');
    expect(asked[1]?.body).toEqual(ASK);
  });

  test.each([
    ['another thread', { 'holdfast-thread': 'other' }],
    ['no thread', { 'holdfast-thread': '' }],
    ['another credential', { authorization: 'Bearer other-key' }],
    ['a client that will not have it', { 'holdfast-notices': 'none' }],
  ])('tells nothing for %s, and leaves it to be told', async (_, headers) => {
    const { replica, asked } = await start();
    await post(replica, headers);
    expect(asked[0]?.body).toEqual(ASK);
    await post(replica);
    expect(asked[1]?.body.messages).toContainEqual(NOTICE);
  });

  test('tells it in a thread that is derived, to the model whose answer was cut', async () => {
    const { replica, asked } = await start();
    const derived = { 'holdfast-thread': '', 'x-claude-code-session-id': 'thread' };
    await post(replica, derived, { ...ASK, model: 'another' });
    await post(replica, derived);
    await post(replica, derived);
    expect(messagesOf(asked)).toEqual([ASK.messages, [NOTICE, ...ASK.messages], ASK.messages]);
  });

  test('tells nothing in a thread that would be derived where that is turned off', async () => {
    const { replica, asked } = await start([], { ...passingThrough(), resume: { derive_thread: false } });
    await post(replica, { 'holdfast-thread': '' }, { ...ASK, user: 'thread' });
    expect(messagesOf(asked)).toEqual([ASK.messages]);
  });

  test('tells nothing where that is turned off', async () => {
    const { replica, asked } = await start([], { ...passingThrough(), resume: { notices: false } });
    await post(replica);
    expect(asked[0]?.body).toEqual(ASK);
  });

  test('tells the model that a route has chosen', async () => {
    const { replica, asked } = await start([], passingThrough({ model: 'llama' }));
    await post(replica);
    expect(asked[0]?.body).toEqual({ ...ASK, model: 'llama', messages: [NOTICE, ...ASK.messages] });
  });

  test('tells it in another form when it is refused, and then not at all', async () => {
    const { replica, asked } = await start([400, 422]);
    const messages = [{ role: 'system', content: 'Be brief.' }, ...ASK.messages];
    const response = await post(replica, {}, { ...ASK, messages });
    expect([response.status, await response.text()]).toEqual([200, ANSWER]);
    expect(asked[1]?.body.messages[0]).toEqual({
      role: 'system',
      content: expect.stringMatching(/^Be brief\.\n\nlast_partial_recovery: /),
    });
    expect(asked[2]?.body.messages).toEqual(messages);
  });

  test('is answered with what the provider says to the client’s own request', async () => {
    const { replica, asked } = await start([400, 400, 400]);
    const response = await post(replica);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('refusal 3');
    await post(replica);
    expect(asked[3]?.body.messages).toContainEqual(NOTICE);
  });

  test.each([401, 429, 503])('that is answered with %i has the next one tell it', async (status) => {
    const { replica, asked } = await start([status]);
    expect((await post(replica)).status).toBe(status);
    await post(replica);
    expect(messagesOf(asked)).toEqual([
      [NOTICE, ...ASK.messages],
      [NOTICE, ...ASK.messages],
    ]);
  });

  test.each(['fault', 'silence'])('is no worse off for a store with a %s', async (trouble) => {
    const { replica, asked } = await start();
    if (trouble === 'fault') replica.store.fault = new Error('no route to store');
    else replica.store.isSilent = true;
    const response = await post(replica);
    expect(await response.text()).toBe(ANSWER);
    expect(asked[0]?.body).toEqual(ASK);
  });
});

describe('on another wire, a request that is passed through', () => {
  const text = NOTICE.content;
  const WIRES: readonly [string, object, object][] = [
    [
      '/messages',
      { system: 'Be brief.' },
      {
        messages: [
          ...ASK.messages.slice(0, -1),
          { ...ASK.messages.at(-1), content: expect.stringMatching(/\n\nlast_partial_recovery: /) },
        ],
      },
    ],
    [
      '/responses',
      { input: 'Tell me.' },
      {
        input: [
          { type: 'message', role: 'system', content: text },
          { role: 'user', content: 'Tell me.' },
        ],
      },
    ],
  ];

  test.each(WIRES)('tells the model once on %s', async (path, fields, told) => {
    const { replica, asked } = await start();
    const body = { ...ASK, ...fields };
    for (let turn = 0; turn < 2; turn++) await (await post(replica, {}, body, path)).text();
    expect(asked.map((each) => each.body)).toEqual([{ ...body, ...told }, body]);
  });

  test.each(WIRES)(
    'adds no notice to a request that does not want it, and leaves it to the next one, on %s',
    async (path, fields, told) => {
      const { replica, asked } = await start();
      const body = { ...ASK, ...fields };
      const others = [
        { 'holdfast-notices': 'none' },
        { 'holdfast-thread': 'other' },
        { authorization: 'Bearer other-key' },
      ];
      for (const headers of [...others, {}]) await (await post(replica, headers, body, path)).text();
      expect(asked.map((each) => each.body)).toEqual([body, body, body, { ...body, ...told }]);
    },
  );

  test.each(WIRES)('tells nothing where that is turned off, on %s', async (path, fields) => {
    const { replica, asked } = await start([], { ...passingThrough(), resume: { notices: false } });
    const body = { ...ASK, ...fields };
    await (await post(replica, {}, body, path)).text();
    expect(asked[0]?.body).toEqual(body);
  });

  test('adds no notice to a request with only a prompt, and leaves it to the next one', async () => {
    const { replica, asked } = await start();
    const body = { model: 'gpt', prompt: 'Tell me.' };
    await (await post(replica, {}, body, '/completions')).text();
    await post(replica);
    expect(asked[0]?.body).toEqual(body);
    expect(asked[1]?.body.messages).toContainEqual(NOTICE);
  });
});

describe('a header that cannot be understood is refused', () => {
  const wrong = { 'Holdfast-Notices': 'all', 'Holdfast-Thread': 'x'.repeat(257) };

  test.each([
    ['Holdfast-Notices', true],
    ['Holdfast-Notices', false],
    ['Holdfast-Thread', true],
    ['Holdfast-Thread', false],
  ] as const)('%s (stream: %s)', async (header, stream) => {
    const { replica, asked } = await start();
    const response = await post(replica, { [header.toLowerCase()]: wrong[header] }, { ...ASK, stream });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_field', param: header } });
    expect(asked).toEqual([]);
  });
});

test('the log and the answer say nothing of what was cut', async () => {
  const { replica } = await start();
  const response = await post(replica);
  expect(JSON.stringify([...response.headers])).not.toContain('holdfast');
  await replica.server.close();
  const log = await replica.log();
  expect(log).toContain('notice told');
  expect(log).not.toContain('The holdfast');
});

test('a stream is relayed with its thread, and its body as it came', async () => {
  const runs: Run[] = [];
  const replica = await startReplica(upstreamsAt('http://127.0.0.1:9/v1'), async (run, client) => {
    runs.push(run);
    client.open({});
    client.end('data: [DONE]\n\n');
    return 'complete';
  });
  await leave(replica);
  const body = { ...ASK, stream: true };
  await (await post(replica, {}, body)).text();
  expect(runs[0]).toMatchObject({ thread: 'thread', body: JSON.stringify(body), request: body });
});
