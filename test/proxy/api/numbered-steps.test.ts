import { describe, expect, it } from 'vitest';
import type { TaskDetail, TasksDocument } from '../../../src/status/snapshot.ts';
import type { Replica } from '../../replica.ts';
import { BODY, CREDENTIAL, errorOf, postChat, STRANGER } from '../run-deployment.ts';
import { answerSteps, askTasks, deployTasks } from './task-deployment.ts';

const deploy = async (): Promise<Replica> => (await deployTasks()).replica;

const read = (replica: Replica, path: string, headers?: Record<string, string>) =>
  askTasks(replica, 'GET', `/T23${path}`, undefined, headers);

describe('the steps of a task', () => {
  it('are named in a header of their answers, and named alike when those are replayed', async () => {
    const replica = await deploy();
    const first = await answerSteps(replica, 3);
    expect(first.map(({ headers }) => headers.get('holdfast-step'))).toEqual(['1', '2', '3']);
    const again = await answerSteps(replica, 3);
    expect(again.map(({ headers }) => headers.get('holdfast-step'))).toEqual(['1', '2', '3']);
    expect(again.every(({ headers }) => headers.get('holdfast-replayed') === 'true')).toBe(true);
    const other = await postChat(replica, CREDENTIAL);
    await other.text();
    expect(other.headers.has('holdfast-step')).toBe(false);
  });

  it('are the same for a document as for the stream of the same request', async () => {
    const replica = await deploy();
    const body = (stream: boolean) => BODY.replace('"stream":true', `"stream":${stream}`);
    const task = { ...CREDENTIAL, 'holdfast-task': 'T23' };
    for (const stream of [false, true]) {
      const answer = await postChat(replica, task, body(stream));
      expect(await answer.text()).toContain('kelp');
      expect([answer.status, answer.headers.get('holdfast-step')]).toEqual([200, '1']);
    }
  });

  it('are shown with their runs, page by page', async () => {
    const replica = await deploy();
    const before_s = Math.floor(Date.now() / 1000);
    const runs = (await answerSteps(replica, 5)).map(({ headers }) => headers.get('holdfast-run-id'));
    const task = (await (await read(replica, '')).json()) as Record<string, unknown>;
    expect(task).toMatchObject({
      id: 'T23',
      object: 'holdfast.task',
      steps: 5,
      last_step: {
        object: 'holdfast.step',
        number: 5,
        run: { id: runs[4], object: 'holdfast.run', task: 'T23', step: 5 },
      },
    });
    expect(task.created_at).toBeGreaterThanOrEqual(before_s);
    const pages: { number: number; run: { id: string } }[][] = [];
    for (let after: string | null = '0'; after !== null; ) {
      const response = await read(replica, `/steps?limit=2&after=${after}`);
      expect(response.headers.get('cache-control')).toContain('no-store');
      const page = (await response.json()) as { data: never[]; has_more: boolean; next: string | null };
      expect(page.has_more).toBe(page.next !== null);
      pages.push(page.data);
      after = page.next;
    }
    expect(pages.map((page) => page.map(({ number }) => number))).toEqual([[1, 2], [3, 4], [5]]);
    expect(pages.flat().map(({ run }) => run.id)).toEqual(runs);
  });

  it.each([
    ['Holdfast-Notices', 'all'],
    ['Holdfast-Events', 'some'],
  ])('are neither begun nor replayed by a request with a bad %s', async (param, value) => {
    const replica = await deploy();
    const ask = (headers?: object) =>
      postChat(replica, { ...CREDENTIAL, 'holdfast-task': 'T23', ...headers });
    const refused = { status: 400, code: 'invalid_field', param };
    expect(await errorOf(await ask({ [param]: value }))).toMatchObject(refused);
    expect((await read(replica, '')).status).toBe(404);
    const answer = await ask();
    await answer.text();
    expect(answer.headers.get('holdfast-step')).toBe('1');
    expect(await errorOf(await ask({ [param]: value }))).toMatchObject(refused);
  });

  it('whose runs are purged have none', async () => {
    const replica = await deploy();
    const [answer] = await answerSteps(replica, 1);
    const run = answer?.headers.get('holdfast-run-id');
    const purged = await fetch(`${replica.api}/holdfast/v1/runs/${run}?purge=true`, {
      method: 'DELETE',
      headers: CREDENTIAL,
    });
    expect(purged.status).toBe(200);
    const { data } = (await (await read(replica, '/steps')).json()) as { data: unknown };
    expect(data).toEqual([{ object: 'holdfast.step', number: 1, run: null }]);
  });

  it('are hidden from other credentials', async () => {
    const replica = await deploy();
    await answerSteps(replica, 1);
    for (const path of ['', '/steps']) {
      expect(await errorOf(await read(replica, path, STRANGER))).toMatchObject({
        status: 404,
        code: 'task_not_found',
      });
      expect(await errorOf(await read(replica, path, {}))).toMatchObject({
        status: 400,
        code: 'missing_field',
        param: 'Authorization',
      });
    }
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['after=-1', 'after'],
    ['after=10001', 'after'],
    ['after=1&after=2', 'after'],
    ['after=1.5', 'after'],
  ])('are not paged by %s', async (query, param) => {
    const replica = await deploy();
    await answerSteps(replica, 1);
    const response = await read(replica, `/steps?${query}`);
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'invalid_field', param });
  });
});

describe('the steps of a task on the admin port', () => {
  it('are shown with what they have cost, and what their replays have saved, and not by the name of the task', async () => {
    const replica = await deploy();
    const runs = (await answerSteps(replica, 2)).map(({ headers }) => headers.get('holdfast-run-id'));
    await answerSteps(replica, 2);
    const { tasks } = await admin<TasksDocument>(replica, '/tasks');
    expect(tasks).toMatchObject([{ state: 'idle', steps: 2, tokens_paid: 26, tokens_saved: 26 }]);
    const [task] = tasks;
    const detail = await admin<TaskDetail>(replica, `/tasks/${task?.task}`);
    expect(detail.shown).toMatchObject(
      runs.map((run, index) => ({ number: index + 1, replays: 1, stays: [{ run, outcome: 'complete' }] })),
    );
    expect(JSON.stringify(detail)).not.toContain('T23');
    const unknown = await fetch(`${replica.admin}/tasks/T23`);
    expect(await errorOf(unknown)).toMatchObject({ status: 404, code: 'task_not_found' });
  });
});

describe('a task of a sub-agent on the admin port', () => {
  it('is a part of its parent at every replica that answers or replays a step of it', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1, 'T1');
    for (const each of [replica, other])
      await answerSteps(each, 1, 'T23', { ...CREDENTIAL, 'holdfast-parent-task': 'T1' });
    const [child, parent] = (await admin<TasksDocument>(replica, '/tasks')).tasks;
    expect(child?.parent).toBe(parent?.task);
    const { tasks } = await admin<TasksDocument>(other, '/tasks');
    expect(tasks).toMatchObject([{ task: child?.task, parent: parent?.task, tokens_paid: 0 }]);
  });
});

const admin = async <Document>(replica: Replica, path: string): Promise<Document> =>
  (await (await fetch(replica.admin + path)).json()) as Document;
