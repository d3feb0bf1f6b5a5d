import { describe, expect, it, vi } from 'vitest';
import type { Replica } from '../../replica.ts';
import { BODY, CREDENTIAL, errorOf, fetchRun, postChat, STRANGER } from '../run-deployment.ts';
import { answerSteps, askStep, askTasks, deployTasks } from './task-deployment.ts';

type Document = Record<string, unknown>;

const WAIT_OPTIONS = { timeout: 10_000 };

async function set(replica: Replica, word: string, body?: unknown): Promise<Document> {
  const response = await askTasks(replica, 'POST', `/T23/${word}`, body);
  expect([response.status, response.headers.get('cache-control')]).toEqual([
    200,
    'private, no-cache, no-store',
  ]);
  return (await response.json()) as Document;
}

const show = async (replica: Replica): Promise<Document> =>
  (await (await askTasks(replica, 'GET', '/T23')).json()) as Document;

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next: string | null;
}

async function list(replica: Replica, query = '', headers?: Record<string, string>): Promise<Page> {
  const response = await askTasks(replica, 'GET', query, undefined, headers);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

const idsOf = ({ data }: Page) => data.map(({ id }) => id);

/** Tasks are recorded only after their answer. */
const noted = (replica: Replica, ...ids: string[]) =>
  vi.waitFor(async () => expect(idsOf(await list(replica))).toEqual(ids));

describe('the tasks of an owner', () => {
  it('are listed with the last one first, page by page', async () => {
    const { replica, other } = await deployTasks();
    for (let nth = 1; nth <= 5; nth++) {
      await answerSteps(replica, nth, `T${nth}`);
      await vi.waitFor(async () => expect((await list(other)).data).toHaveLength(nth));
    }
    const pages: Page[] = [];
    for (let next: string | null = '6'; next !== null; next = pages.at(-1)?.next ?? null)
      pages.push(await list(other, `?limit=2&after=${next}`));
    expect(pages.map(idsOf)).toEqual([['T5', 'T4'], ['T3', 'T2'], ['T1']]);
    expect(pages.map(({ has_more }) => has_more)).toEqual([true, true, false]);
    expect((await list(other)).data[0]).toMatchObject({
      id: 'T5',
      object: 'holdfast.task',
      status: 'running',
      status_since: null,
      reason: null,
      steps: 5,
      last_step: { number: 5 },
    });
  });

  it('are those of one status where one is asked for', async () => {
    const { replica } = await deployTasks();
    for (const task of ['T22', 'T23']) await answerSteps(replica, 1, task);
    await vi.waitFor(async () => expect((await list(replica)).data).toHaveLength(2));
    await set(replica, 'pause');
    expect(idsOf(await list(replica, '?status=paused'))).toEqual(['T23']);
    expect(idsOf(await list(replica, '?status=running'))).toEqual(['T22']);
  });

  it('are those that are a part of one where that is asked for', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1, 'T22', { ...CREDENTIAL, 'holdfast-parent-task': 'T1' });
    await answerSteps(replica, 1, 'T23');
    await vi.waitFor(async () => expect((await list(other)).data).toHaveLength(2));
    expect((await list(other, '?parent=T1')).data).toMatchObject([{ id: 'T22', parent: 'T1' }]);
    expect((await list(other)).data).toMatchObject([{ parent: null }, { parent: 'T1' }]);
  });

  it('are hidden from other credentials, and from callers without one', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    expect((await list(replica, '', STRANGER)).data).toEqual([]);
    expect(await errorOf(await askTasks(replica, 'GET', '', undefined, {}))).toMatchObject({
      status: 400,
      param: 'Authorization',
    });
  });

  it.each([
    ['status=lost', 'status'],
    ['status=paused&status=running', 'status'],
    ['parent=', 'parent'],
    ['limit=0', 'limit'],
    ['after=x', 'after'],
    ['after=99999999999999999', 'after'],
  ])('are not listed by %s', async (query, param) => {
    const { replica } = await deployTasks();
    const refused = await askTasks(replica, 'GET', `?${query}`);
    expect(await errorOf(refused)).toEqual({ status: 400, code: 'invalid_field', param });
  });
});

const put = (replica: Replica, body: unknown, headers?: Record<string, string>) =>
  askTasks(replica, 'PUT', '/T23', body, headers);

describe('the terms of a task', () => {
  it('are put before its first request, which they hold for', async () => {
    const { replica, other, provider } = await deployTasks();
    const deadline_at = Math.floor(Date.now() / 1000) + 3600;
    const terms = { description: 'invite them all', steps_total: 2, deadline_at, budget_tokens: 13 };
    const announced = await put(replica, terms);
    expect([announced.status, await announced.json()]).toMatchObject([
      200,
      { id: 'T23', status: 'pending', ...terms, steps: 0, sessions: 0, usage: { total_tokens: 0 } },
    ]);
    expect((await list(other, '?status=pending')).data).toMatchObject([{ id: 'T23', ...terms }]);
    const [first] = await answerSteps(other, 1);
    expect(first?.headers.get('holdfast-step')).toBe('1');
    await vi.waitFor(async () =>
      expect(await show(replica)).toMatchObject({
        status: 'running',
        usage: { prompt_tokens: 12, completion_tokens: 1, total_tokens: 13 },
      }),
    );
    for (const each of [replica, other])
      expect(await errorOf(await askStep(each, 2))).toEqual({
        status: 402,
        code: 'task_budget_spent',
        param: null,
      });
    expect(provider.requests).toBe(1);
    const replayed = await askStep(replica, 1);
    expect(replayed.headers.get('holdfast-replayed')).toBe('true');
    await replayed.text();
    expect(await (await put(other, { steps_total: 3 })).json()).toMatchObject({
      steps_total: 3,
      description: null,
      deadline_at: null,
      budget_tokens: null,
    });
    await (await askStep(replica, 2)).text();
  });

  it('are those that its first request names', async () => {
    const { replica, other, provider } = await deployTasks();
    const headers = {
      ...CREDENTIAL,
      'holdfast-task-session': 'first',
      'holdfast-task-step': 'greet',
      'holdfast-task-steps-total': '7',
      'holdfast-task-deadline-ms': '300',
      'holdfast-task-budget-tokens': '100',
    };
    const first = await askStep(replica, 1, 'T23', { ...headers, 'holdfast-task-deadline-ms': '3600000' });
    expect(await first.text()).toContain('kelp');
    await vi.waitFor(async () =>
      expect(await show(other)).toMatchObject({
        steps_total: 7,
        budget_tokens: 100,
        sessions: 1,
        last_step: { number: 1, run: { step_name: 'greet' } },
      }),
    );
    // Later values have no effect.
    await (await askStep(other, 2, 'T23', headers)).text();
    expect((await askStep(other, 1, 'T24', headers)).status).toBe(200);
    const answered_ms = Date.now();
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(answered_ms + 300));
    expect(await errorOf(await askStep(replica, 2, 'T24', headers))).toMatchObject({
      status: 403,
      code: 'task_deadline_passed',
    });
    expect(provider.requests).toBe(3);
  });

  it('are not put on a task that has ended', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    await set(replica, 'complete');
    expect(await errorOf(await put(replica, {}))).toMatchObject({ status: 410, code: 'task_ended' });
  });

  it('of another credential are those of another task', async () => {
    const { replica } = await deployTasks();
    expect((await put(replica, { steps_total: 7 }, STRANGER)).status).toBe(200);
    expect(await errorOf(await askTasks(replica, 'GET', '/T23'))).toMatchObject({ code: 'task_not_found' });
    expect(await errorOf(await put(replica, {}, {}))).toMatchObject({ status: 400, param: 'Authorization' });
  });

  it.each([
    ['description', 7],
    ['description', 'x'.repeat(1001)],
    ['steps_total', 0],
    ['steps_total', 1.5],
    ['steps_total', '7'],
    ['budget_tokens', -1],
    ['budget_tokens', 1e13],
    ['deadline_at', 1_700_000_000],
    ['deadline_at', 9_999_999_999],
    ['deadline_at', 'tomorrow'],
    ['deadline_ms', 1000],
  ])('are refused with %s: %j', async (param, value) => {
    const { replica } = await deployTasks();
    const refused = await put(replica, { [param]: value });
    expect(await errorOf(refused)).toEqual({ status: 400, code: 'invalid_field', param });
    expect(await errorOf(await askTasks(replica, 'GET', '/T23'))).toMatchObject({ code: 'task_not_found' });
  });

  it('are refused while the store is away, or without a body', async () => {
    const { replica } = await deployTasks();
    expect(await errorOf(await put(replica, ''))).toMatchObject({ status: 400 });
    replica.store.fault = new Error('away');
    expect(await errorOf(await put(replica, {}))).toMatchObject({ status: 503, code: 'store_unavailable' });
  });
});

describe('a task that is paused', () => {
  it('has no new steps at any replica until it is resumed, and answers those that it has', async () => {
    const { replica, other, provider } = await deployTasks();
    await answerSteps(replica, 2);
    await noted(replica, 'T23');
    expect(await set(replica, 'pause', { reason: 'the budget is spent' })).toMatchObject({
      status: 'paused',
      reason: 'the budget is spent',
      steps: 2,
    });
    for (const each of [replica, other]) {
      const refused = await askStep(each, 3);
      expect(refused.headers.get('retry-after')).toBe('30');
      expect(await errorOf(refused)).toEqual({ status: 423, code: 'task_paused', param: null });
      const replayed = await askStep(each, 2);
      expect([replayed.status, replayed.headers.get('holdfast-replayed')]).toEqual([200, 'true']);
      expect(await replayed.text()).toContain('kelp');
    }
    const document = BODY.replace('"stream":true', '"stream":false');
    const refused = await postChat(other, { ...CREDENTIAL, 'holdfast-task': 'T23' }, document);
    expect((await errorOf(refused)).code).toBe('task_paused');
    expect(provider.requests).toBe(2);
    expect(await set(other, 'resume')).toMatchObject({ status: 'running', reason: null });
    const next = await askStep(replica, 3);
    expect([next.status, next.headers.get('holdfast-step')]).toEqual([200, '3']);
    await next.text();
  });

  it('has the step that is under way end', async () => {
    const { replica, provider } = await deployTasks();
    provider.manner = 'begins';
    const answer = await askStep(replica, 1);
    await noted(replica, 'T23');
    expect(await set(replica, 'pause')).toMatchObject({
      status: 'paused',
      last_step: { run: { status: 'running' } },
    });
    await answer.body?.cancel();
  });
});

describe('a task that has ended', () => {
  it.each([
    ['complete', 'completed', 'cancel'],
    ['cancel', 'cancelled', 'complete'],
  ])('after %s has no new steps, and stays %s', async (word, status, otherwise) => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    expect(await set(other, word, { reason: 'done' })).toMatchObject({ status, reason: 'done' });
    expect(await set(replica, word)).toMatchObject({ status, reason: 'done' });
    expect(await errorOf(await askStep(replica, 2))).toMatchObject({ status: 410, code: 'task_ended' });
    for (const each of ['pause', 'resume', otherwise]) {
      const refused = await askTasks(replica, 'POST', `/T23/${each}`);
      expect(await errorOf(refused)).toMatchObject({ status: 410, code: 'task_ended' });
    }
    const replayed = await askStep(other, 1);
    expect([replayed.status, replayed.headers.get('holdfast-replayed')]).toEqual([200, 'true']);
    await replayed.text();
    expect(await show(replica)).toMatchObject({ status });
  });

  it('because it was cancelled has its answers cancelled that were under way', async () => {
    const { replica, other, provider } = await deployTasks();
    provider.manner = 'begins';
    const answers = [await askStep(replica, 1), await askStep(other, 2)];
    await noted(replica, 'T23');
    expect(await set(replica, 'cancel')).toMatchObject({ status: 'cancelled', steps: 2 });
    expect(await answers[0]?.text()).toContain('run_cancelled');
    for (const answer of answers) {
      const run = answer.headers.get('holdfast-run-id');
      expect(await (await fetchRun(replica, String(run))).json()).toMatchObject({ status: 'cancelled' });
    }
    expect(await errorOf(await askStep(other, 1))).toMatchObject({ status: 410, code: 'task_ended' });
    // Its replica notices with the provider's next event, which never comes here.
    await answers[1]?.body?.cancel();
  });
});

describe('a task whose last step had no answer', () => {
  it('has failed, until it has another one', async () => {
    const { replica, provider } = await deployTasks();
    await answerSteps(replica, 1);
    provider.manner = 'refuses';
    expect((await askStep(replica, 2)).status).toBe(400);
    expect(await show(replica)).toMatchObject({
      status: 'failed',
      steps: 2,
      last_step: { run: { end: { cause: 'invalid_request' } } },
    });
    provider.manner = 'word';
    await (await askStep(replica, 2)).text();
    expect(await show(replica)).toMatchObject({ status: 'running', steps: 2 });
  });
});

describe('a task that is deleted', () => {
  it('leaves nothing of what it said, and its name begins another one at every replica', async () => {
    const { replica, other, provider, runs } = await deployTasks();
    const named = { ...CREDENTIAL, 'holdfast-task-session': 'first', 'holdfast-task-budget-tokens': '100' };
    const first = await answerSteps(replica, 3, 'T23', named);
    await answerSteps(other, 1, 'T23', { ...named, 'holdfast-task-session': 'second' });
    await vi.waitFor(async () => expect(await show(other)).toMatchObject({ steps: 3, sessions: 2 }));
    const claim = { claim: 'first', result: 'a secret' };
    const call = async (at: Replica) =>
      (await askTasks(at, 'POST', '/T23/calls/c1/claim', claim)).json() as Promise<Document>;
    expect(await call(replica)).toEqual({ outcome: 'run' });
    expect((await askTasks(replica, 'PUT', '/T23/calls/c1/result', claim)).status).toBe(200);
    const deleted = await askTasks(other, 'DELETE', '/T23');
    expect(await deleted.json()).toEqual({ id: 'T23', object: 'holdfast.task', purged: true });
    for (const { headers } of first)
      expect((await fetchRun(replica, String(headers.get('holdfast-run-id')))).status).toBe(404);
    expect(await errorOf(await askTasks(replica, 'GET', '/T23'))).toMatchObject({ code: 'task_not_found' });
    expect((await list(replica)).data).toEqual([]);
    // Only the number of the owner's tasks remains.
    expect([...runs.notes.values()].map(({ value }) => value)).toEqual(['1']);
    provider.requests = 0;
    for (const each of [replica, other]) {
      const again = await answerSteps(each, 2);
      expect(again.map(({ headers }) => headers.get('holdfast-step'))).toEqual(['1', '2']);
    }
    expect(provider.requests).toBe(2);
    await noted(replica, 'T23');
    expect(await show(replica)).toMatchObject({ status: 'running', steps: 2 });
    expect(await call(other)).toEqual({ outcome: 'run' });
  });

  it('leaves nothing of a step that was cut and continued either', async () => {
    const { replica, provider } = await deployTasks();
    provider.manner = 'begins';
    const cut = await askStep(replica, 1);
    await noted(replica, 'T23');
    await cut.body?.cancel();
    provider.manner = 'word';
    const rest = await askStep(replica, 1);
    expect(await rest.text()).toContain('[DONE]');
    const runs = [cut, rest].map(({ headers }) => String(headers.get('holdfast-run-id')));
    const stored = async () => Promise.all(runs.map(async (run) => (await fetchRun(replica, run)).status));
    expect([new Set(runs).size, await stored()]).toEqual([2, [200, 200]]);
    expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
    expect(await stored()).toEqual([404, 404]);
  });

  it('is deleted by a second request where the first one was interrupted', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 2);
    await noted(replica, 'T23');
    const { notes } = replica.store;
    const consume = notes.consume.bind(notes);
    for (const kind of ['step', 'task_end'] as const) {
      notes.consume = async (owner, key) => {
        if (key.kind === kind) throw new Error('away');
        return consume(owner, key);
      };
      expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(503);
      expect(await errorOf(await askStep(replica, 3))).toMatchObject({ code: 'task_ended' });
    }
    notes.consume = consume;
    expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
    expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(404);
    const [again] = await answerSteps(replica, 1);
    expect(again?.headers.get('holdfast-step')).toBe('1');
  });

  it('has its answers cancelled that were under way', async () => {
    const { replica, provider } = await deployTasks();
    provider.manner = 'begins';
    const answer = await askStep(replica, 1);
    await noted(replica, 'T23');
    expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
    expect(await answer.text()).toContain('run_cancelled');
  });
});

describe('the time for which a task is kept that has ended', () => {
  it.each([
    ['what its end says', {}, { ttl_s: 1, reason: 'sent' }],
    [
      'as the configuration says',
      { checkpoint: { store: 'memory', ended_task_ttl_s: 1 } },
      { reason: 'sent' },
    ],
  ])('is %s, and its name begins another one then', async (_case, tree, body) => {
    const { replica, other, provider } = await deployTasks(tree);
    const [answer] = await answerSteps(replica, 2);
    await noted(replica, 'T23');
    const { status_since, ...ended } = await set(replica, 'complete', body);
    expect(ended).toMatchObject({
      status: 'completed',
      reason: 'sent',
      expires_at: Number(status_since) + 1,
    });
    expect(await show(other)).toMatchObject({ expires_at: ended.expires_at });
    await vi.waitFor(
      async () => expect((await askTasks(other, 'GET', '/T23')).status).toBe(404),
      WAIT_OPTIONS,
    );
    expect((await fetchRun(other, String(answer?.headers.get('holdfast-run-id')))).status).toBe(404);
    provider.requests = 0;
    const [again] = await answerSteps(other, 1);
    expect([again?.headers.get('holdfast-step'), provider.requests]).toEqual(['1', 1]);
  });

  it('is that of all others unless something is said of it', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    expect(await show(replica)).toMatchObject({ expires_at: null });
    expect(await set(replica, 'complete')).toMatchObject({ expires_at: null });
  });

  it('is what was said first, and no longer than that of all others', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    const first = await set(replica, 'cancel', { ttl_s: 3600 });
    expect(await set(replica, 'cancel', { ttl_s: 1 })).toEqual(first);
    await answerSteps(replica, 1, 'T24');
    await noted(replica, 'T24', 'T23');
    const response = await askTasks(replica, 'POST', '/T24/complete', { ttl_s: 31_536_000 });
    expect(await response.json()).toMatchObject({ status: 'completed', expires_at: null });
  });

  it.each([
    ['complete', 0],
    ['complete', 1.5],
    ['complete', '60'],
    ['cancel', 31_536_001],
    ['cancel', null],
    ['pause', 60],
    ['resume', 60],
  ])('is a number of seconds, and for an end: %s, %s', async (word, ttl_s) => {
    const { replica } = await deployTasks();
    const response = await askTasks(replica, 'POST', `/T23/${word}`, { ttl_s });
    expect([response.status, await errorOf(response)]).toMatchObject([
      400,
      { code: 'invalid_field', param: 'ttl_s' },
    ]);
  });
});

describe('what is asked of a task', () => {
  const requests = [
    ['POST', '/pause'],
    ['POST', '/resume'],
    ['POST', '/complete'],
    ['POST', '/cancel'],
    ['DELETE', ''],
  ] as const;

  it.each(requests)('by %s %s is refused to others than its owner', async (method, path) => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    const stranger = await askTasks(replica, method, `/T23${path}`, undefined, STRANGER);
    expect(await errorOf(stranger)).toMatchObject({ status: 404, code: 'task_not_found' });
    const nameless = await askTasks(replica, method, `/T23${path}`, undefined, {});
    expect(await errorOf(nameless)).toMatchObject({ status: 400, param: 'Authorization' });
    expect(await show(replica)).toMatchObject({ status: 'running', steps: 1 });
  });

  it.each(requests)('by %s %s is refused while the store is away', async (method, path) => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    replica.store.fault = new Error('away');
    const refused = await askTasks(replica, method, `/T23${path}`);
    expect(await errorOf(refused)).toMatchObject({ status: 503, code: 'store_unavailable' });
  });

  it.each([
    ['{"reason":', 'invalid_json', null],
    ['{"reason":1}', 'invalid_field', 'reason'],
    ['{"reason":""}', 'invalid_field', 'reason'],
    [JSON.stringify({ reason: 'x'.repeat(257) }), 'invalid_field', 'reason'],
  ])('is refused with the body %s', async (body, code, param) => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica, 'T23');
    const refused = await askTasks(replica, 'POST', '/T23/pause', body);
    expect(await errorOf(refused)).toEqual({ status: 400, code, param });
    expect(await show(replica)).toMatchObject({ status: 'running' });
  });
});
