import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { needs } from '../../needs.ts';
import { redisBinary } from '../../redis/binaries.ts';
import { RedisServer } from '../../redis/redis-server.ts';
import { deployMailTask, turnOf } from './mail-task.ts';

const AGENT = fileURLToPath(new URL('mail-agent.ts', import.meta.url));
/** Prime, so that the places differ from step to step. */
const CHUNKS_BETWEEN_KILLS = 7;
/** A few dozen processes in sequence. */
const PATIENCE_MS = 120_000;

/** A line of the agent's output; see mail-agent.ts. */
interface Saying {
  readonly chunk?: true;
  readonly mail?: string;
  readonly messages?: readonly object[];
}

/** Runs the agent once. With `chunks`, it dies of SIGKILL after this many chunks of its answers. */
async function runAgent(url: string, task: string, chunks?: number): Promise<readonly Saying[]> {
  const words = ['--disable-warning=ExperimentalWarning', AGENT, url, task];
  const env = { ...process.env, ...(chunks !== undefined && { DIES_AFTER_CHUNKS: String(chunks) }) };
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const said: Saying[] = [];
  for await (const line of createInterface(child.stdout)) {
    said.push(JSON.parse(line) as Saying);
  }
  await exited;
  return said;
}

const askOf = (url: string, task: string, path: string, method = 'GET'): Promise<Response> =>
  fetch(new URL(`/holdfast/v1/tasks/${task}${path}`, url), {
    method,
    headers: { authorization: 'Bearer sk-agent' },
  });

/** The steps that Holdfast lists. `step` is the number that the run itself reports. */
async function stepsOf(url: string, task: string): Promise<readonly object[]> {
  const response = await askOf(url, task, '/steps');
  const { data } = (await response.json()) as {
    data: readonly { number: number; run: { status: string; step: number } }[];
  };
  return data.map(({ number, run: { status, step } }) => ({ number, status, step }));
}

const transcriptOf = (said: readonly Saying[], task: string): string =>
  JSON.stringify(said.at(-1)?.messages).replaceAll(task, 'the task');

/** Kills the agent at places throughout its task. Each time it starts over, on another replica if there is one. */
async function beginAnew(store: string, replicas: number): Promise<void> {
  const { urls, ofTask } = await deployMailTask(store, replicas);
  const [first = '', second = first] = urls;
  const whole = await runAgent(first, 'task-uncut');
  expect(whole.filter(({ mail }) => mail)).toHaveLength(2);
  expect(ofTask('task-uncut').map(turnOf)).toEqual([0, 1, 2]);
  const chunks = whole.filter(({ chunk }) => chunk).length;
  for (let place = 1; place < chunks; place += CHUNKS_BETWEEN_KILLS) {
    const task = `task-killed-${place}`;
    const killed = await runAgent(first, task, place);
    expect(killed.at(-1)?.messages).toBeUndefined();
    const again = await runAgent(second, task);
    expect(transcriptOf(again, task), task).toBe(transcriptOf(whole, 'task-uncut'));
    // Each step is requested once, plus the rest of the step that was cut, if any.
    const turns = ofTask(task).map(turnOf);
    expect([...new Set(turns)], task).toEqual([0, 1, 2]);
    expect(turns.length, task).toBeLessThanOrEqual(4);
    const names = ofTask(task).flatMap(({ headers }) => Object.keys(headers));
    expect(names.filter((name) => name.startsWith('holdfast-'))).toEqual([]);
    expect(await stepsOf(second, task), task).toEqual([
      { number: 1, status: 'complete', step: 1 },
      { number: 2, status: 'complete', step: 2 },
      { number: 3, status: 'complete', step: 3 },
    ]);
  }
  // A change to the task through one replica applies to the other.
  expect((await askOf(first, 'task-uncut', '/pause', 'POST')).status).toBe(200);
  const replayed = await runAgent(second, 'task-uncut');
  expect(transcriptOf(replayed, 'task-uncut')).toBe(transcriptOf(whole, 'task-uncut'));
  expect(ofTask('task-uncut')).toHaveLength(3);
  const refused = await fetch(`${second}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer sk-agent',
      'content-type': 'application/json',
      'holdfast-task': 'task-uncut',
    },
    body: JSON.stringify({
      model: 'model',
      stream: true,
      messages: [{ role: 'user', content: 'And Cleo?' }],
    }),
  });
  expect(refused.status).toBe(423);
  expect((await askOf(second, 'task-uncut', '', 'DELETE')).status).toBe(200);
  expect((await askOf(first, 'task-uncut', '')).status).toBe(404);
  await runAgent(first, 'task-uncut');
  expect(ofTask('task-uncut').map(turnOf)).toEqual([0, 1, 2, 0, 1, 2]);
}

const redis = await redisBinary();

describe('an agent that is killed and begins anew pays only for the rest of the step that was cut', {
  timeout: PATIENCE_MS,
}, () => {
  test('memory', () => beginAnew('memory', 1));

  test('file', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-tasks-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    await beginAnew(`file:${join(directory, 'store')}`, 2);
  });

  if ('missing' in redis) test('Redis', needs(redis), () => {});
  else
    test('Redis', async () => {
      const server = await RedisServer.start({ binary: redis.path });
      onTestFinished(() => server.stop());
      await beginAnew(server.url, 2);
    });
});
