import { describe, expect, test, vi } from 'vitest';
import { LedgerError, ResultNotKeptError, UnknownCallError } from '../../src/client/errors.ts';
import { type TaskOptions, task } from '../../src/client/task.ts';
import { operationOf } from '../openapi-requests.ts';

const BASE = 'http://127.0.0.1:1/v1';
const CALL = {
  id: 'call_1',
  function: { name: 'send_mail', arguments: '{"to":"Ann","copies":[1,{"b":2,"a":1}]}' },
};

interface Asked {
  readonly url: string;
  readonly method: string | undefined;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

const refusal = (status: number, code: string) =>
  Response.json({ error: { message: `It is ${code}.`, code } }, { status });

/** A task with one request made, and the requests that it has sent to Holdfast about its tool calls. */
async function taskWith(answer: (asked: Asked) => Response | Promise<Response>, options: TaskOptions = {}) {
  const asked: Asked[] = [];
  const fetch = async (input: string | URL | Request, init: RequestInit = {}) => {
    const url = String(input);
    const headers = new Headers(init.headers);
    if (!url.includes('/holdfast/')) return Response.json({ headers: Object.fromEntries(headers) });
    const body = JSON.parse(String(init.body ?? 'null')) as Asked['body'];
    const one = { url, method: init.method, headers, body };
    asked.push(one);
    return answer(one);
  };
  const made = task('T23', { session: 'first', backoffMs: 0, giveUpMs: 50, ...options, fetch });
  const response = await made.fetch(`${BASE}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer sk-1',
      'x-user': 'ann',
      'content-type': 'application/json',
      accept: '*/*',
    },
    body: JSON.stringify({ model: 'm', messages: [] }),
  });
  const { headers } = (await response.json()) as { headers: Record<string, string> };
  const paths = () => asked.map(({ url, method }) => `${method} ${url.replace(/[0-9a-f]{64}/, 'KEY')}`);
  return { made, asked, headers, paths };
}

const keysOf = (asked: readonly Asked[]) =>
  asked.filter(({ url }) => url.endsWith('/claim')).map(({ url }) => url.split('/').at(-2));

const runs = ({ url }: Asked) =>
  Response.json(url.endsWith('/claim') ? { outcome: 'run' } : { outcome: 'done' });

test('a request of a task names its terms where there are any', async () => {
  const terms = { parent: 'T1', stepsTotal: 7, deadlineMs: 60_000, budgetTokens: 100 };
  const { headers } = await taskWith(runs, terms);
  expect(headers).toMatchObject({
    'holdfast-parent-task': 'T1',
    'holdfast-task-steps-total': '7',
    'holdfast-task-deadline-ms': '60000',
    'holdfast-task-budget-tokens': '100',
  });
  expect(() => task('T23', { parent: '' })).toThrow('parent must be a text of 1 to 256 characters');
  for (const option of ['stepsTotal', 'deadlineMs', 'budgetTokens'])
    for (const value of [0, 1.5, '7'])
      expect(() => task('T23', { [option]: value })).toThrow(`${option} must be a whole number from 1 on`);
});

test('the options of a task, of its tools and of its end are known by their former names too', async () => {
  const terms = { steps_total: 7, deadline_ms: 60_000, budget_tokens: 100 };
  const { asked, headers, made } = await taskWith(runs, terms);
  expect(headers).toMatchObject({
    'holdfast-task-steps-total': '7',
    'holdfast-task-deadline-ms': '60000',
    'holdfast-task-budget-tokens': '100',
  });
  await made.tool(CALL, () => ({}), { hold_ms: 7 });
  await made.complete('done', { ttl_s: 60 });
  const bodies = asked.map(({ body }) => body);
  expect(bodies).toContainEqual({ claim: expect.any(String) as string, hold_ms: 7, repeat: 'never' });
  expect(bodies).toContainEqual({ reason: 'done', ttl_s: 60 });

  expect(() => task('T23', { stepsTotal: 7, steps_total: 7 })).toThrow('stepsTotal and steps_total');
  await expect(made.tool(CALL, () => ({}), { holdMs: 7, hold_ms: 7 })).rejects.toThrow('holdMs and hold_ms');
  await expect(made.complete('done', { ttlS: 6, ttl_s: 6 })).rejects.toThrow('ttlS and ttl_s');
});

describe('a request that is made with the fetch of a task', () => {
  test('is a step of it, of this session', async () => {
    const { headers, made } = await taskWith(runs);
    expect(headers).toMatchObject({
      'holdfast-task': 'T23',
      'holdfast-task-session': 'first',
      authorization: 'Bearer sk-1',
      'content-type': 'application/json',
    });
    expect(made.headers).toEqual({ 'holdfast-task': 'T23', 'holdfast-task-session': 'first' });
    expect(task('T23').session).not.toBe(task('T23').session);
  });

  test.each<[string, string, TaskOptions]>([
    ['id', '', {}],
    ['id', 'x'.repeat(257), {}],
    ['session', 'T23', { session: '' }],
    ['maxRetries', 'T23', { maxRetries: -1 }],
  ])('needs a valid %s', (name, id, options) => {
    expect(() => task(id, options)).toThrow(TypeError);
    expect(() => task(id, options)).toThrow(name);
  });
});

describe('a tool', () => {
  test('runs when its call is claimed, and its result is kept', async () => {
    const { made, asked, paths } = await taskWith(runs);
    const tool = vi.fn(() => ({ sent: true }));
    expect(await made.tool(CALL, tool, { holdMs: 7 })).toEqual({ sent: true });
    expect(tool).toHaveBeenCalledExactlyOnceWith(
      { to: 'Ann', copies: [1, { b: 2, a: 1 }] },
      { idempotencyKey: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
    );
    const calls = 'http://127.0.0.1:1/holdfast/v1/tasks/T23/calls/KEY';
    expect(paths()).toEqual([`POST ${calls}/claim`, `PUT ${calls}/result`]);
    const [claim, result] = asked;
    expect(claim?.body).toEqual({ claim: expect.any(String) as string, hold_ms: 7, repeat: 'never' });
    expect(result?.body).toEqual({ claim: claim?.body.claim, result: { sent: true } });
    // Only the headers that identify the owner: the credential and any others. The rest belonged to the request alone.
    expect(Object.fromEntries(claim?.headers ?? [])).toEqual({
      authorization: 'Bearer sk-1',
      'x-user': 'ann',
      'content-type': 'application/json',
    });
  });

  test('does not run where it has run: its result is there', async () => {
    const { made } = await taskWith(() => Response.json({ outcome: 'done', result: [1] }));
    const tool = vi.fn();
    expect(await made.tool(CALL, tool)).toEqual([1]);
    expect(tool).not.toHaveBeenCalled();
  });

  test('that had too much to say has run all the same', async () => {
    const { made } = await taskWith(() => Response.json({ outcome: 'done' }));
    await expect(made.tool(CALL, vi.fn())).rejects.toThrow(ResultNotKeptError);
    const long = await taskWith((one) => {
      const isLong = one.url.endsWith('/result') && 'result' in one.body;
      return isLong ? refusal(413, 'result_too_large') : runs(one);
    });
    expect(await long.made.tool(CALL, () => 'long')).toBe('long');
    expect(long.asked.at(-1)?.body).toEqual({ claim: long.asked[0]?.body.claim });
  });

  test('is waited for while another process runs it', async () => {
    const answers = [
      { outcome: 'busy', retry_after_ms: 1 },
      { outcome: 'busy', retry_after_ms: 1 },
    ];
    const { made, asked } = await taskWith(() =>
      Response.json(answers.shift() ?? { outcome: 'done', result: 'sent' }),
    );
    expect(await made.tool(CALL, vi.fn())).toBe('sent');
    expect(new Set(asked.map(({ body }) => body.claim)).size).toBe(1);
  });

  test('does not run where it may have run, until that is found out', async () => {
    let isReleased = false;
    const { made, asked } = await taskWith((one) => {
      if (one.url.endsWith('/release')) isReleased = true;
      return isReleased ? runs(one) : Response.json({ outcome: 'unknown', claim: 'the lost one' });
    });
    const tool = vi.fn(() => 'sent');
    const error = await made.tool(CALL, tool).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnknownCallError);
    expect(tool).not.toHaveBeenCalled();
    await (error as UnknownCallError).release();
    expect(asked.at(-1)?.body).toEqual({ claim: 'the lost one' });
    expect(await made.tool(CALL, tool)).toBe('sent');
    expect(new Set(keysOf(asked)).size).toBe(1);
  });

  test('that has run after all need not be released', async () => {
    const unknown = Response.json({ outcome: 'unknown', claim: 'a slow one' });
    const done = { outcome: 'done', result: 'sent' };
    const answers = [unknown, refusal(409, 'call_done'), Response.json(done)];
    const { made } = await taskWith(() => answers.shift() ?? refusal(409, 'call_not_claimed'));
    const error = await made.tool(CALL, vi.fn()).catch((thrown: unknown) => thrown);
    await (error as UnknownCallError).release();
    expect(await made.tool(CALL, vi.fn())).toBe('sent');
    await expect((error as UnknownCallError).release()).rejects.toMatchObject({ code: 'call_not_claimed' });
  });

  test('that has thrown may have had its effect', async () => {
    const { made, asked, paths } = await taskWith(runs);
    const broken = new Error('the line is broken');
    await expect(made.tool(CALL, () => Promise.reject(broken))).rejects.toBe(broken);
    const tool = vi.fn(() => 'sent');
    const error = await made.tool(CALL, tool).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnknownCallError);
    expect(tool).not.toHaveBeenCalled();
    await (error as UnknownCallError).release();
    expect(paths().at(-1)).toMatch(/^POST .*\/release$/);
    expect(asked.at(-1)?.body).toEqual({ claim: asked[0]?.body.claim });
    expect(await made.tool(CALL, tool)).toBe('sent');
  });

  test('with a key is released when it throws, and has the same key again', async () => {
    const { made, asked, paths } = await taskWith(runs);
    const keys: string[] = [];
    const tool = (_: unknown, { idempotencyKey }: { idempotencyKey: string }) => {
      keys.push(idempotencyKey);
      if (keys.length === 1) throw new Error('the line is broken');
      return 'sent';
    };
    await expect(made.tool(CALL, tool, { repeat: 'with_key' })).rejects.toThrow('the line is broken');
    expect(paths().at(-1)).toMatch(/\/release$/);
    expect(await made.tool(CALL, tool, { repeat: 'with_key' })).toBe('sent');
    expect(new Set(keys).size).toBe(1);
    expect(asked[0]?.body).toMatchObject({ repeat: 'with_key' });
  });

  test('without an effect runs without a question', async () => {
    const { made, asked } = await taskWith(runs);
    const read = ({ to }: { to: string }): string => `read ${to}`;
    expect(await made.tool(CALL, read, { repeat: 'always' })).toBe('read Ann');
    expect(asked).toEqual([]);
  });

  test('does not run where Holdfast cannot be asked, or refuses', async () => {
    const tool = vi.fn();
    const down = await taskWith(() => Promise.reject(new TypeError('fetch failed')));
    await expect(down.made.tool(CALL, tool)).rejects.toThrow(LedgerError);
    const full = await taskWith(() => refusal(409, 'call_released_too_often'));
    await expect(full.made.tool(CALL, tool)).rejects.toMatchObject({
      name: 'LedgerError',
      code: 'call_released_too_often',
      message: 'It is call_released_too_often.',
    });
    expect(full.asked).toHaveLength(1);
    await expect(task('T23').tool(CALL, tool)).rejects.toThrow('with the fetch of the task');
    expect(tool).not.toHaveBeenCalled();
  });

  test('is claimed again, as the same, where the answer was lost', async () => {
    let count = 0;
    const { made, asked } = await taskWith(
      (one) => {
        if (++count % 2 === 1)
          return count === 1 ? refusal(503, 'store_unavailable') : Promise.reject(new TypeError());
        return runs(one);
      },
      { giveUpMs: 5000 },
    );
    const tool = vi.fn(() => 'sent');
    expect(await made.tool(CALL, tool)).toBe('sent');
    expect(tool).toHaveBeenCalledOnce();
    expect(asked.map(({ body }) => body.claim)).toEqual(Array(4).fill(asked[0]?.body.claim));
  });
});

describe('a call', () => {
  const keysFor = async (...calls: Parameters<ReturnType<typeof task>['tool']>[0][]) => {
    const { made, asked } = await taskWith(runs);
    for (const call of calls) await made.tool(call, () => null);
    return keysOf(asked);
  };
  const [name, text] = ['send_mail', CALL.function.arguments];
  const input = JSON.parse(text) as unknown;

  test.each<[string, Parameters<typeof keysFor>[0]]>([
    ['of responses', { call_id: 'call_1', name, arguments: text }],
    ['of messages', { id: 'call_1', name, input }],
    ['of the AI SDK', { toolCallId: 'call_1', toolName: name, input }],
    ['of LangChain', { id: 'call_1', name, args: input }],
    [
      'with its keys in another order',
      { id: 'call_1', name, input: { copies: [1, { a: 1, b: 2 }], to: 'Ann' } },
    ],
  ])('%s is the same', async (_, call) => {
    expect(await keysFor(call)).toEqual(await keysFor(CALL));
  });

  test('is another one with another id, name or argument, and when it comes again', async () => {
    const others = [
      { id: 'call_2', name, input },
      { id: 'call_1', name: 'call_ann', input },
      { id: 'call_1', name, input: { to: 'Bob' } },
      { id: 'call_1', name, input: {} },
      { id: 'call_1', name, args: input },
    ];
    const keys = await keysFor(CALL, ...others);
    expect(new Set(keys).size).toBe(6);
    // In another process, the second of two identical calls gets the same key as here.
    expect(await keysFor(CALL, CALL)).toEqual([keys[0], keys[5]]);
  });

  test('without arguments has none', async () => {
    const { made } = await taskWith(runs);
    const tool = vi.fn(() => null);
    await made.tool({ id: 'a', function: { name, arguments: '' } }, tool);
    await made.tool({ id: 'b', name, args: undefined }, tool);
    expect(tool.mock.calls.map(([args]: unknown[]) => args)).toEqual([{}, {}]);
  });

  test.each<[string, unknown, string]>([
    ['no name', { id: 'a' }, 'name'],
    ['arguments that are no JSON', { id: 'a', name, arguments: '{"to' }, 'send_mail'],
  ])('with %s is refused', async (_, call, word) => {
    const { made, asked } = await taskWith(runs);
    await expect(made.tool(call as never, vi.fn())).rejects.toThrow(TypeError);
    await expect(made.tool(call as never, vi.fn())).rejects.toThrow(word);
    expect(asked).toEqual([]);
  });
});

describe('what is said of a task', () => {
  const document = { id: 'T23', object: 'holdfast.task', status: 'paused', reason: 'lunch', steps: 2 };

  test('goes where its requests went, with their credential', async () => {
    const { made, asked, paths } = await taskWith(() => Response.json(document));
    expect(await made.show()).toEqual(document);
    expect(await made.pause('lunch')).toEqual(document);
    await made.resume();
    await made.complete('done');
    await made.cancel(undefined, { ttlS: 60 });
    await made.setTerms({ steps_total: 7 });
    const path = 'http://127.0.0.1:1/holdfast/v1/tasks/T23';
    expect(paths()).toEqual([
      `GET ${path}`,
      `POST ${path}/pause`,
      `POST ${path}/resume`,
      `POST ${path}/complete`,
      `POST ${path}/cancel`,
      `PUT ${path}`,
    ]);
    expect(asked.map(({ body }) => body)).toEqual([
      null,
      { reason: 'lunch' },
      {},
      { reason: 'done' },
      { ttl_s: 60 },
      { steps_total: 7 },
    ]);
    for (const { headers } of asked) expect(headers.get('authorization')).toBe('Bearer sk-1');
  });

  test('is refused where Holdfast refuses it, and said again where Holdfast is away', async () => {
    const { made } = await taskWith(() => refusal(410, 'task_ended'));
    await expect(made.pause()).rejects.toMatchObject({ name: 'LedgerError', code: 'task_ended' });
    let asked = 0;
    const away = await taskWith(() => (++asked < 3 ? refusal(503, 'away') : Response.json(document)), {
      giveUpMs: 5000,
    });
    expect(await away.made.pause()).toEqual(document);
    expect(asked).toBe(3);
  });

  test('needs a request before it', async () => {
    const made = task('T23');
    await expect(made.pause()).rejects.toThrow(
      'to pause the task, make a request with the fetch of the task first',
    );
    await expect(made.show()).rejects.toThrow('to show the task, make a request');
  });
});

test('what a task asks is what the OpenAPI document describes', async () => {
  const { made, asked } = await taskWith(({ url }) => {
    if (url.endsWith('/events')) return new Response('data: {"object":"holdfast.task","purged":true}\n\n');
    return Response.json(url.endsWith('/claim') ? { outcome: 'unknown', claim: 'lost' } : {});
  });
  const unknown = await made.tool(CALL, () => 'sent').catch((error: unknown) => error);
  await (unknown as UnknownCallError).release();
  const other = await taskWith(runs);
  await other.made.tool(CALL, () => ({ sent: true }), { holdMs: 5, repeat: 'with_key' });
  await made.show();
  expect((await made.progress().next()).value).toMatchObject({ status: 'cancelled', steps_done: 0 });
  await made.pause('lunch');
  await made.resume();
  await made.complete();
  await made.cancel('enough');
  await made.setTerms({ description: 'x', steps_total: 7, deadline_at: 1_800_000_000, budget_tokens: null });
  const operations = [...asked, ...other.asked].map(({ method = 'GET', url, body }) =>
    operationOf(method, url, body ?? undefined),
  );
  expect(new Set(operations)).toEqual(
    new Set([
      ...['claimCall', 'keepResult', 'releaseCall'],
      ...['showTask', 'streamTask', 'pauseTask', 'resumeTask', 'completeTask', 'cancelTask', 'putTask'],
    ]),
  );
});
