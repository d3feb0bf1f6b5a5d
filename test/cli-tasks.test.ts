import { expect, it, vi } from 'vitest';
import { runCli, startReplicaProcess } from './cli-process.ts';
import { startProvider, streamOneWord } from './http-peer.ts';

/** Each test starts several processes, possibly on a busy machine. */
vi.setConfig({ testTimeout: 60_000 });

const OWNER = { HOLDFAST_API_KEY: 'sk-the-owner-of-the-task' };

/** Starts a replica that has answered this many requests of the task. */
async function deploy(task: string, steps: number) {
  const root = await startProvider((request, response) => {
    request.resume();
    streamOneWord(response, 'kelp');
  });
  const { api } = await startReplicaProcess(['--upstream', `${root}/v1`, '--store', 'memory']);
  const ask = async (nth: number, headers: Record<string, string> = {}) => {
    const response = await fetch(`${api}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${OWNER.HOLDFAST_API_KEY}`,
        'holdfast-task': task,
        ...headers,
      },
      body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: `hi ${nth}` }] }),
    });
    await response.text();
    return response.status;
  };
  for (let nth = 1; nth <= steps; nth++) await ask(nth);
  const tasks = (...words: string[]) => runCli(['tasks', ...words, '--api', api], OWNER);
  return { api, ask, tasks };
}

it('tasks list and show: how far the tasks of a key have come', async () => {
  const { tasks } = await deploy('invitations', 22);
  const list = await tasks('list');
  expect(list.stdout).toMatch(
    /^TASK +STATUS +STEPS +MODEL +AGE +REASON\ninvitations +running +22 +m +\S+ *\n$/,
  );
  const show = await tasks('show', 'invitations');
  expect(show.stdout).toContain('status      running\n');
  expect(show.stdout).toContain('steps       22\n');
  expect(show.stdout).toMatch(/\n +22 +run_\S+ +complete +m *\nthe 2 steps before these are left out\n$/);
  const json = JSON.parse((await tasks('show', 'invitations', '--json')).stdout);
  expect(json).toMatchObject({ id: 'invitations', steps: 22 });
  expect(json.last_steps).toHaveLength(20);
  expect(await tasks('list', '--status', 'paused')).toMatchObject({ status: 0, stdout: 'no tasks\n' });
});

it('tasks list and show: what a task is, and how far it may go', async () => {
  const { api, tasks } = await deploy('invitations', 1);
  const put = async (task: string, terms: object) => {
    const headers = {
      authorization: `Bearer ${OWNER.HOLDFAST_API_KEY}`,
      'content-type': 'application/json',
    };
    const init = { method: 'PUT', headers, body: JSON.stringify(terms) };
    expect((await fetch(`${api}/holdfast/v1/tasks/${task}`, init)).status).toBe(200);
  };
  const deadline_at = Math.floor(Date.now() / 1000) + 3600;
  await put('invitations', {
    description: 'Invite them all.',
    steps_total: 7,
    deadline_at,
    budget_tokens: 100,
  });
  await put('later', {});
  expect((await tasks('show', 'invitations')).stdout).toMatch(
    /^task +invitations\nabout +Invite them all\.\nstatus +running\ncreated .*\ndeadline +20\S+\nsteps +1 of 7\ntokens +13 of 100\n/,
  );
  expect((await tasks('list', '--status', 'pending')).stdout).toMatch(/\nlater +pending +0 /);
  expect((await tasks('list')).stdout).toMatch(/\ninvitations +running +1 of 7 /);
  expect((await tasks('list', '--parent', 'invitations')).stdout).toBe('no tasks\n');
});

it('tasks show: where a process has diverged from the one before it', async () => {
  const { ask, tasks } = await deploy('invitations', 0);
  await ask(1, { 'holdfast-task-session': 'first', 'holdfast-resume': '1' });
  await ask(2, { 'holdfast-task-session': 'second' });
  await vi.waitFor(
    async () =>
      expect((await tasks('show', 'invitations')).stdout).toContain(
        '\ndiverged    at step 1: messages[0] changed\n',
      ),
    { timeout: 30_000 },
  );
});

it('tasks export: the task, its answers and its tool calls, a line each, of all pages', async () => {
  const { api, tasks } = await deploy('mails to/Ann', 21);
  const call = `${api}/holdfast/v1/tasks/${encodeURIComponent('mails to/Ann')}/calls/c1`;
  const say = async (method: string, path: string, result?: string) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${OWNER.HOLDFAST_API_KEY}`,
    };
    const body = JSON.stringify({ claim: 'first', result });
    expect((await fetch(`${call}${path}`, { method, headers, body })).status).toBe(200);
  };
  await say('POST', '/claim');
  await say('PUT', '/result', 'sent');
  const { status, stdout } = await tasks('export', 'mails to/Ann');
  const [task, ...rest] = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(status).toBe(0);
  expect(task).toMatchObject({ object: 'holdfast.task', id: 'mails to/Ann', steps: 21 });
  expect(rest.slice(0, 21).map(({ number }) => number)).toEqual(
    Array.from({ length: 21 }, (_, index) => index + 1),
  );
  expect(rest[20]).toMatchObject({ object: 'holdfast.answer', answer: { text: 'kelp', status: 'complete' } });
  expect(rest.slice(21)).toEqual([{ object: 'holdfast.call', key: 'c1', state: 'done', result: 'sent' }]);
  expect(await tasks('export', 'another')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining("This task doesn't exist"),
  });
});

it('tasks pause, resume, complete, cancel and delete: what is said of it holds', async () => {
  const { ask, tasks } = await deploy('mails to/Ann', 1);
  const said = async (...words: string[]) => (await tasks(...words)).stdout;
  expect(await said('pause', 'mails to/Ann', '--reason', 'lunch')).toBe('mails to/Ann paused, 1 steps\n');
  expect(await ask(2)).toBe(423);
  expect(await said('show', 'mails to/Ann')).toMatch(/status +paused since 20\S+\n.*reason +lunch\n/s);
  expect(await said('resume', 'mails to/Ann')).toBe('mails to/Ann running, 1 steps\n');
  expect(await ask(2)).toBe(200);
  expect(JSON.parse(await said('complete', 'mails to/Ann', '--json'))).toMatchObject({ status: 'completed' });
  expect(await tasks('cancel', 'mails to/Ann')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('The task is completed'),
  });
  expect(await said('delete', 'mails to/Ann')).toBe('mails to/Ann deleted\n');
  expect(await tasks('show', 'mails to/Ann')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("This task doesn't exist"),
  });
});

it('says what is wrong with what it asks', async () => {
  const { api, tasks } = await deploy('invitations', 1);
  expect(await runCli(['tasks', 'list', '--api', api])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('tasks are shown to their owner alone: put the key in HOLDFAST_API_KEY'),
  });
  expect(await tasks('show')).toMatchObject({ status: 2, stderr: expect.stringContaining('TASK') });
  expect(await tasks('list', '--status', 'lost')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("Invalid value for 'status'"),
  });
});
