import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TaskProgress } from '../../src/client/index.ts';
import { cuttingProxy } from '../client/cutting-proxy.ts';
import { pythonEnvironment } from '../e2e/python/environment.ts';
import { needs } from '../needs.ts';
import { answerSteps, askStep, askTasks, deployTasks } from '../proxy/api/task-deployment.ts';
import { CREDENTIAL } from '../proxy/run-deployment.ts';

const SOURCES = fileURLToPath(new URL('../../clients/python/src', import.meta.url));
const PROGRAM = fileURLToPath(new URL('watch_task.py', import.meta.url));

const environment = await pythonEnvironment();

describe('the progress of a task, in Python', { timeout: 60_000, ...needs(environment) }, () => {
  test.each([
    ['synchronously', 'sync', undefined],
    ['asynchronously', 'async', undefined],
    ['synchronously, though its connection is cut after every event', 'sync', 1],
    ['asynchronously, though its connection is cut after every event', 'async', 1],
  ])('comes in order and ends with the task, %s', async (_, manner, cut_after) => {
    if ('missing' in environment) throw new Error(environment.missing);
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1);
    await vi.waitFor(async () => expect((await askTasks(other, 'GET', '/T23')).status).toBe(200));
    await askTasks(replica, 'PUT', '/T23', { steps_total: 3 });
    const proxies = await Promise.all([replica, other].map(({ api }) => cuttingProxy(api)));
    for (const proxy of proxies) proxy.cut_after = cut_after;
    const words = [PROGRAM, manner, CREDENTIAL.authorization, ...proxies.map(({ url }) => url)];
    const program = spawn(environment.interpreter, words, {
      env: { PATH: process.env.PATH, PYTHONPATH: SOURCES, PYTHONDONTWRITEBYTECODE: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void program.kill('SIGKILL'));
    const exited = once(program, 'exit');
    const told: TaskProgress[] = [];
    for await (const line of createInterface(program.stdout)) {
      const progress = JSON.parse(line) as TaskProgress;
      const isNew = (told.at(-1)?.steps_done ?? 0) < progress.steps_done;
      told.push(progress);
      if (isNew && progress.steps_done < 3) await (await askStep(other, progress.steps_done + 1)).text();
      if (isNew && progress.steps_done === 3) await askTasks(other, 'POST', '/T23/complete');
    }
    expect(await exited).toEqual([0, null]);
    const numbers = told.map(({ steps_done }) => steps_done);
    expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
    expect(new Set(numbers)).toEqual(new Set([1, 2, 3]));
    const { usage } = (await (await askTasks(other, 'GET', '/T23')).json()) as { usage: object };
    expect(told.at(-1)).toEqual({
      status: 'completed',
      reason: null,
      steps_done: 3,
      steps: 3,
      steps_total: 3,
      usage,
      step: { number: 3, name: null, status: 'complete', recoveries: [] },
    });
    await vi.waitFor(() => expect(proxies.map(({ open }) => open)).toEqual([0, 0]));
  });
});
