import { describe, expect, it, vi } from 'vitest';
import type { Replica } from '../../replica.ts';
import { BODY, CREDENTIAL, errorOf, fetchRun, postChat, STRANGER } from '../run-deployment.ts';
import { answerSteps, askStep, askTasks, deployTasks } from './task-deployment.ts';

interface Page {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly has_more: boolean;
  readonly next: string | null;
}

async function page(replica: Replica, path: string): Promise<Page> {
  const response = await askTasks(replica, 'GET', `/T23${path}`);
  expect([response.status, response.headers.get('cache-control')]).toEqual([
    200,
    'private, no-cache, no-store',
  ]);
  return (await response.json()) as Page;
}

async function pages(replica: Replica, path: string): Promise<readonly Page[]> {
  const all: Page[] = [];
  for (let next: string | null = '0'; next !== null; next = all.at(-1)?.next ?? null)
    all.push(await page(replica, `${path}?limit=2&after=${next}`));
  return all;
}

const noted = (replica: Replica) =>
  vi.waitFor(async () => expect((await askTasks(replica, 'GET', '/T23')).status).toBe(200));

describe('the transcript of a task', () => {
  it('has the answers of all steps in their order, as each run is shown, page by page', async () => {
    const { replica, other, provider } = await deployTasks();
    const answers = [...(await answerSteps(replica, 2))];
    provider.manner = 'refuses';
    await (await askStep(replica, 3)).text();
    provider.manner = 'begins';
    answers.push(await askStep(replica, 4));
    await noted(replica);
    const all = await pages(other, '/transcript');
    expect(all.map(({ data, next }) => [data.map(({ number }) => number), next])).toEqual([
      [[1, 2], '2'],
      [[3, 4], null],
    ]);
    const entries = all.flatMap(({ data }) => data);
    for (const [index, number] of [1, 2, 4].entries()) {
      const run = String(answers[index]?.headers.get('holdfast-run-id'));
      const shown = (await (await fetchRun(other, run)).json()) as object;
      expect(entries[number - 1]).toEqual({
        object: 'holdfast.answer',
        number,
        run,
        input: null,
        answer: shown,
      });
    }
    expect(entries[0]).toMatchObject({ answer: { text: 'kelp', finish_reason: 'stop' } });
    expect(entries[2]).toMatchObject({ answer: { status: 'failed', text: '' } });
    expect(entries[3]).toMatchObject({ answer: { status: 'running', text: 'kel' } });
    await answers[2]?.body?.cancel();
  });

  it('has what the client has said since the answer before, where its request is kept', async () => {
    const { replica, other } = await deployTasks();
    const question = { role: 'user', content: 'Which port?' };
    const call = { id: 'call_1', type: 'function', function: { name: 'tides', arguments: '{}' } };
    const asked = [question, { role: 'assistant', content: null, tool_calls: [call] }];
    const result = { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'six' }] };
    const ask = async (messages: readonly object[], headers: Record<string, string>) => {
      const body = JSON.stringify({ ...JSON.parse(BODY), messages });
      await (await postChat(replica, { ...CREDENTIAL, ...headers, 'holdfast-task': 'T23' }, body)).text();
    };
    await ask([question], { 'holdfast-resume': '1' });
    await ask([...asked, result], { 'holdfast-resume': '1' });
    await ask([...asked, result, { role: 'user', content: 'And then?' }], {});
    await noted(replica);
    const { data } = await page(other, '/transcript');
    expect(data.map(({ input }) => input)).toEqual([[question], [result], null]);
  });

  it('ends a page early where requests are large', async () => {
    const { replica } = await deployTasks({ limits: { run_bytes: 1024 } });
    const messages = [{ role: 'user', content: 'x'.repeat(600) }];
    const headers = { ...CREDENTIAL, 'holdfast-resume': '1', 'holdfast-task': 'T23' };
    for (let nth = 0; nth < 8; nth++) {
      const body = JSON.stringify({ ...JSON.parse(BODY), messages, seed: nth });
      await (await postChat(replica, headers, body)).text();
    }
    await noted(replica);
    expect((await page(replica, '/transcript')).next).toBe('4');
  });

  it('says which step has no answer any more', async () => {
    const { replica } = await deployTasks();
    const [answer] = await answerSteps(replica, 1);
    await noted(replica);
    const run = String(answer?.headers.get('holdfast-run-id'));
    await fetchRun(replica, `${run}?purge=true`, { method: 'DELETE' });
    const { data } = await page(replica, '/transcript');
    expect(data).toEqual([{ object: 'holdfast.answer', number: 1, run: null, input: null, answer: null }]);
  });

  it('ends a page early where the answers are large', async () => {
    const { replica } = await deployTasks({ limits: { run_bytes: 1024 } });
    await answerSteps(replica, 12);
    await noted(replica);
    const { data, has_more, next } = await page(replica, '/transcript?limit=12');
    expect([data.length, has_more, next]).toEqual([4, true, '4']);
    expect((await page(replica, `/transcript?after=${next}`)).data).toHaveLength(4);
  });
});

describe('the calls of a task', () => {
  it('are listed in the order of their first claims, with their results', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica);
    const say = async (method: string, key: string, verb: string, body: object) =>
      expect((await askTasks(replica, method, `/T23/calls/${key}/${verb}`, body)).status).toBe(200);
    for (const key of ['done', 'empty', 'held', 'free']) await say('POST', key, 'claim', { claim: key });
    await say('PUT', 'done', 'result', { claim: 'done', result: { sent: null } });
    await say('PUT', 'empty', 'result', { claim: 'empty' });
    await say('POST', 'free', 'release', { claim: 'free' });
    await say('POST', 'lapsed', 'claim', { claim: 'lapsed', hold_ms: 1 });
    await vi.waitFor(async () =>
      expect((await pages(other, '/calls')).map(({ data }) => data)).toEqual([
        [
          { object: 'holdfast.call', key: 'done', state: 'done', result: { sent: null } },
          { object: 'holdfast.call', key: 'empty', state: 'done' },
        ],
        [
          { object: 'holdfast.call', key: 'held', state: 'claimed' },
          { object: 'holdfast.call', key: 'free', state: 'released' },
        ],
        [{ object: 'holdfast.call', key: 'lapsed', state: 'unknown' }],
      ]),
    );
  });
});

it.each(['/transcript', '/calls'])('%s is for the owner of the task alone', async (path) => {
  const { replica } = await deployTasks();
  await answerSteps(replica, 1);
  await noted(replica);
  const ask = (headers: Record<string, string>) =>
    askTasks(replica, 'GET', `/T23${path}`, undefined, headers);
  expect(await errorOf(await ask(STRANGER))).toMatchObject({ status: 404, code: 'task_not_found' });
  expect(await errorOf(await ask({}))).toMatchObject({ status: 400, param: 'Authorization' });
});
