import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';

const CLIENT = new URL('../../src/client/index.ts', import.meta.url).href;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Starts a process that makes one request of a task and then runs `code`, which decides how signals pause the task. */
async function startAgent(code: string, onPause: (response: ServerResponse) => void) {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url} ${await text(request)}`);
    if (request.url?.endsWith('/pause')) return onPause(response);
    response.end('{"id":"T23","object":"holdfast.task"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const { port } = server.address() as AddressInfo;
  const source = `
    import { task } from ${JSON.stringify(CLIENT)};
    const made = task('T23');
    await made.fetch('http://127.0.0.1:${port}/v1/chat/completions', { method: 'POST', body: '{}' });
    setInterval(() => {}, 1000);
    ${code}
    console.log('ready');`;
  const agent = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(agent);
  await once(agent.stdout, 'data');
  return { agent, asked };
}

const answer = (response: ServerResponse) => response.end('{"id":"T23","object":"holdfast.task"}');

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a process that is ended by %s has paused its task before',
  async (signal) => {
    const { agent, asked } = await startAgent('made.pauseOnSignals();', answer);
    agent.kill(signal);
    expect(await once(agent, 'exit')).toEqual([null, signal]);
    expect(asked).toEqual([
      'POST /v1/chat/completions {}',
      `POST /holdfast/v1/tasks/T23/pause {"reason":"${signal}"}`,
    ]);
  },
);

test('a process that listens for the signal itself ends when it likes', async () => {
  const own = 'process.on("SIGTERM", () => setTimeout(() => process.exit(7), 300));';
  const { agent, asked } = await startAgent(`${own} made.pauseOnSignals("SIGTERM");`, answer);
  agent.kill('SIGTERM');
  expect(await once(agent, 'exit')).toEqual([7, null]);
  expect(asked.at(-1)).toContain('/pause');
});

test('a process whose task is to be paused no longer ends at once', async () => {
  const { agent, asked } = await startAgent('made.pauseOnSignals()();', answer);
  agent.kill('SIGTERM');
  expect(await once(agent, 'exit')).toEqual([null, 'SIGTERM']);
  expect(asked).toHaveLength(1);
});

test('a second signal ends a process that is still waiting', async () => {
  const paused = Promise.withResolvers<void>();
  const { agent } = await startAgent('made.pauseOnSignals();', () => paused.resolve());
  agent.kill('SIGTERM');
  await paused.promise;
  agent.kill('SIGINT');
  expect(await once(agent, 'exit')).toEqual([null, 'SIGINT']);
});
