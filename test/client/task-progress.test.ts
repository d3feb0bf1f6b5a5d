import { describe, expect, test, vi } from 'vitest';
import { LedgerError } from '../../src/client/errors.ts';
import type { TaskProgress } from '../../src/client/seen-task.ts';
import { type Task, type TaskOptions, task } from '../../src/client/task.ts';
import {
  answerSteps,
  askStep,
  askTasks,
  deployTasks,
  type TaskDeployment,
} from '../proxy/api/task-deployment.ts';
import { BODY, CREDENTIAL, STRANGER } from '../proxy/run-deployment.ts';
import { cuttingProxy } from './cutting-proxy.ts';

/** A task whose first step has been answered. `urls` are the endpoints. */
async function begin(urls: readonly string[], options: TaskOptions = {}): Promise<Task> {
  const made = task('T23', { endpoints: urls, backoffMs: 1, ...options });
  await (await askNth(made, urls[0] ?? '', 1)).text();
  // The task is stored shortly after its answer.
  await vi.waitFor(() => made.show());
  return made;
}

const askNth = (made: Task, url: string, nth: number, headers = CREDENTIAL): Promise<Response> =>
  made.fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: BODY.replace('"hi"', `"hi ${nth}"`),
  });

/** The next progress that satisfies `holds`. */
async function until(
  watching: AsyncGenerator<TaskProgress, void>,
  holds: (progress: TaskProgress) => boolean,
): Promise<TaskProgress> {
  for (;;) {
    const { value, done } = await watching.next();
    if (done) throw new Error('the task was over before');
    if (holds(value)) return value;
  }
}

async function all(watching: AsyncIterable<TaskProgress>): Promise<TaskProgress[]> {
  const told: TaskProgress[] = [];
  for await (const progress of watching) told.push(progress);
  return told;
}

/** Makes a finished task: nine steps, one of them failed, and two tool calls. */
async function overTask({ replica, provider }: TaskDeployment): Promise<void> {
  await answerSteps(replica, 8);
  provider.manner = 'refuses';
  await (await askStep(replica, 9)).text();
  for (const key of ['c1', 'c2']) await askTasks(replica, 'POST', `/T23/calls/${key}/claim`, { claim: key });
  await askTasks(replica, 'POST', '/T23/complete');
}

describe('the progress of a task', () => {
  test.each([
    ['', undefined],
    [', though its connection is cut after every event', 1],
  ])('arrives in order, and ends with its completion%s', async (_, cut_after) => {
    const { replica, other } = await deployTasks();
    const proxies = await Promise.all([replica, other].map(({ api }) => cuttingProxy(api)));
    const urls = proxies.map((proxy) => proxy.url);
    for (const proxy of proxies) proxy.cut_after = cut_after;
    const made = await begin(urls, { stepsTotal: 3 });
    const told: TaskProgress[] = [];
    for await (const progress of made.progress()) {
      const { steps_done } = progress;
      const isNew = (told.at(-1)?.steps_done ?? 0) < steps_done;
      told.push(progress);
      if (isNew && steps_done < 3)
        await (await askNth(made, urls[steps_done - 1] ?? '', steps_done + 1)).text();
      if (isNew && steps_done === 3) await made.complete('all invited');
    }
    const numbers = told.map(({ steps_done }) => steps_done);
    expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
    expect(new Set(numbers)).toEqual(new Set([1, 2, 3]));
    const last = told.at(-1);
    expect(last).toEqual({
      status: 'completed',
      reason: 'all invited',
      steps_done: 3,
      steps: 3,
      steps_total: 3,
      usage: (await made.show()).usage,
      step: { number: 3, name: null, status: 'complete', recoveries: [] },
    });
    expect(last?.usage.total_tokens).toBeGreaterThan(0);
    expect(new Set(told.map((each) => JSON.stringify(each))).size).toBe(told.length);
  });

  test('has no total where none was said, and says what is happening now', async () => {
    const { replica, provider } = await deployTasks();
    const made = await begin([replica.api]);
    provider.manner = 'begins';
    const answer = await askNth(made, replica.api, 2);
    const watching = made.progress();
    expect(await until(watching, ({ step }) => step?.status === 'running')).toMatchObject({
      status: 'running',
      steps_done: 1,
      steps: 2,
      steps_total: null,
      step: { number: 2 },
    });
    provider.finish();
    await answer.text();
    await until(watching, ({ steps_done }) => steps_done === 2);
    provider.manner = 'breaks';
    await (await askNth(made, replica.api, 3)).text();
    const recovered = await until(watching, ({ steps_done }) => steps_done === 3);
    expect(recovered.step).toMatchObject({
      number: 3,
      status: 'complete',
      recoveries: [{ attempt: 2, plan: 'R1', cause: 'connection_reset', upstream: 'provider' }],
    });
    await made.pause('lunch');
    await until(watching, ({ status, reason }) => status === 'paused' && reason === 'lunch');
    await watching.return();
  });

  test('is the same wherever its connection is cut, at whichever replica it is read', async () => {
    const deployment = await deployTasks();
    await overTask(deployment);
    const first = await cuttingProxy(deployment.replica.api);
    const second = await cuttingProxy(deployment.other.api);
    const proxies = [first, second];
    const watch = async () => {
      const made = task('T23', {
        endpoints: [first.url, second.url],
        backoffMs: 0,
      });
      await made.fetch(`${first.url}/v1/chat/completions`, {
        method: 'POST',
        headers: CREDENTIAL,
        body: '{}',
      });
      return all(made.progress());
    };
    const whole = await watch();
    expect(whole).toMatchObject([{ status: 'completed', steps_done: 8, steps: 9, step: { number: 9 } }]);
    const ids = [...first.ids];
    expect(ids.length).toBeGreaterThan(11);
    for (let cut_after = 1; cut_after <= ids.length; cut_after++) {
      for (const proxy of proxies) proxy.beginAnew(cut_after);
      const where = `cut after ${cut_after}`;
      expect(await watch(), where).toEqual(whole);
      expect(first.ids.length + second.ids.length, where).toBe(ids.length);
      expect(second.asked.length, where).toBeGreaterThan(0);
    }
  });

  test('continues at another replica when its own one stops', async () => {
    const { replica, other } = await deployTasks();
    const made = await begin([replica.api, other.api], { stepsTotal: 2 });
    const watching = made.progress();
    await until(watching, ({ steps_done }) => steps_done === 1);
    const rest = all(watching);
    await replica.server.drain();
    await (await askNth(made, other.api, 2)).text();
    await made.complete();
    expect((await rest).at(-1)).toMatchObject({ status: 'completed', steps_done: 2, steps: 2 });
  });

  test('leaves no connection when its loop is left', async () => {
    const { replica } = await deployTasks();
    const proxy = await cuttingProxy(replica.api);
    const made = await begin([proxy.url]);
    for await (const { steps_done } of made.progress()) {
      expect([steps_done, proxy.open]).toEqual([1, 1]);
      break;
    }
    await vi.waitFor(() => expect(proxy.open).toBe(0));
  });

  test('ends at once when its signal says so', async () => {
    const { replica } = await deployTasks();
    const proxy = await cuttingProxy(replica.api);
    const made = await begin([proxy.url]);
    const leaving = new AbortController();
    const watching = made.progress({ signal: leaving.signal });
    await until(watching, ({ steps_done }) => steps_done === 1);
    const next = watching.next();
    leaving.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await vi.waitFor(() => expect(proxy.open).toBe(0));
    await expect(made.progress({ signal: leaving.signal }).next()).rejects.toThrow('enough');
  });

  test('ends as cancelled when the task is deleted', async () => {
    const { replica, other } = await deployTasks();
    const made = await begin([replica.api]);
    const watching = made.progress();
    await until(watching, ({ steps_done }) => steps_done === 1);
    const rest = all(watching);
    expect((await askTasks(other, 'DELETE', '/T23')).status).toBe(200);
    expect((await rest).at(-1)).toMatchObject({ status: 'cancelled', steps_done: 1 });
  });

  test('is refused when the task was deleted while no connection stood', async () => {
    const { replica, other } = await deployTasks();
    const proxy = await cuttingProxy(replica.api);
    const deleted = Promise.withResolvers<void>();
    const fetch = async (input: string | URL | Request, init?: RequestInit) => {
      if (String(input).endsWith('/events') && proxy.asked.length === 1) await deleted.promise;
      return globalThis.fetch(input, init);
    };
    const made = await begin([proxy.url, other.api], { fetch });
    const watching = made.progress();
    await until(watching, ({ steps_done }) => steps_done === 1);
    const rest = all(watching);
    proxy.close();
    await askTasks(other, 'DELETE', '/T23');
    deleted.resolve();
    await expect(rest).rejects.toMatchObject({ name: 'LedgerError', code: 'task_not_found' });
  });

  test('is refused where there is no such task, and to another credential', async () => {
    const { replica } = await deployTasks();
    const made = task('T23');
    await expect(made.progress().next()).rejects.toThrow(
      'to watch the task, make a request with the fetch of the task first',
    );
    await made.fetch(`${replica.api}/v1/chat/completions`, { method: 'POST', headers: STRANGER, body: '{}' });
    await answerSteps(replica, 1);
    const refused = made.progress().next();
    await expect(refused).rejects.toThrow(LedgerError);
    await expect(refused).rejects.toMatchObject({ code: 'task_not_found' });
  });

  test('is given up when Holdfast cannot be asked any more', async () => {
    const { replica } = await deployTasks();
    const proxy = await cuttingProxy(replica.api);
    const made = await begin([proxy.url], { maxRetries: 3, giveUpMs: 1000 });
    proxy.cut_after = 0;
    const givenUp = { name: 'LedgerError', message: 'Holdfast could not be asked about the task.' };
    await expect(made.progress().next()).rejects.toMatchObject(givenUp);
    expect(proxy.asked).toHaveLength(4);
    proxy.cut_after = undefined;
    const watching = made.progress();
    await until(watching, ({ steps_done }) => steps_done === 1);
    const rest = all(watching);
    proxy.close();
    await expect(rest).rejects.toMatchObject(givenUp);
  });

  test('waits for a place among the runs of its owner where another stream has just been lost', async () => {
    const { replica } = await deployTasks({ limits: { runs_per_owner: 1 } });
    const made = await begin([replica.api], { backoffMs: 50 });
    const first = made.progress();
    await until(first, ({ steps_done }) => steps_done === 1);
    const second = made.progress();
    const told = until(second, ({ steps_done }) => steps_done === 1);
    await first.return();
    expect(await told).toMatchObject({ steps: 1 });
    await second.return();
  });
});
