import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import type { NoteKey } from '../../../src/checkpoint/notes.ts';
import type { Owner } from '../../../src/checkpoint/store.ts';
import type { Replica } from '../../replica.ts';
import { CREDENTIAL, OWNER, postChat } from '../run-deployment.ts';
import { watchTask } from './event-reader.ts';
import { askTasks, deployTasks } from './task-deployment.ts';

const MODEL = { model: 'gpt-test', stream: true };

/** A conversation of `length` messages, of which the one at `changed` differs. */
const conversation = (length: number, changed?: number) => ({
  ...MODEL,
  messages: Array.from({ length }, (_, index) => ({
    role: 'user',
    content: index === changed ? 'It is 12:07.' : `hi ${index}`,
  })),
});

/** A process that works on the task, with one more message in each request. */
const process = (session: string, more: Record<string, string> = { 'holdfast-resume': '1' }) => {
  const headers = { ...CREDENTIAL, 'holdfast-task': 'T23', 'holdfast-task-session': session, ...more };
  /** Returns the number of the step. */
  const send = async (replica: Replica, body: object): Promise<number> => {
    const answer = await postChat(replica, headers, JSON.stringify(body));
    expect(await answer.text()).toContain('kelp');
    return Number(answer.headers.get('holdfast-step'));
  };
  const steps = async (replica: Replica, first: number, last: number) => {
    const numbers: number[] = [];
    for (let length = first; length <= last; length++)
      numbers.push(await send(replica, conversation(length)));
    return numbers;
  };
  return { send, steps };
};

const divergedOf = async (replica: Replica): Promise<unknown> => {
  const task = await askTasks(replica, 'GET', '/T23');
  return task.status === 200 ? ((await task.json()) as { diverged: unknown }).diverged : undefined;
};

const expectDiverged = (replica: Replica, diverged: object) =>
  vi.waitFor(async () => expect(await divergedOf(replica)).toEqual({ ...diverged, at: expect.any(Number) }));

/** The divergences in the log. Causes one more and leaves it out, so that everything before it is in the log. */
async function logged(replica: Replica): Promise<object[]> {
  const user = randomUUID();
  const number = await process(user).send(replica, { ...conversation(1), user });
  await expectDiverged(replica, { step: 1, by_step: number, changed: ['user'] });
  const lines = (await replica.log()).split('\n').filter((line) => line.includes('diverged from'));
  const told = lines.map((line) => JSON.parse(line) as { step: number; by_step: number; changed: unknown });
  expect(told.pop()).toMatchObject({ step: 1, by_step: number });
  return told.map(({ step, by_step, changed }) => ({ step, by_step, changed }));
}

/** Counts the reads of notes about sessions' steps and about divergences. */
function countReads({ store }: Replica) {
  const counts = { reads: 0 };
  const { get } = store.notes;
  store.notes.get = (owner: Owner, key: NoteKey) => {
    if (['step', 'task_session', 'task_divergence'].includes(key.kind)) counts.reads++;
    return get.call(store.notes, owner, key);
  };
  return counts;
}

describe('a process that begins its task again', () => {
  it('has diverged at the first step that it does not come to, by the message that it has changed', async () => {
    const { replica } = await deployTasks();
    expect(await process('first').steps(replica, 1, 5)).toEqual([1, 2, 3, 4, 5]);
    expect(await divergedOf(replica)).toBeNull();
    const again = process('second');
    expect(await again.steps(replica, 1, 2)).toEqual([1, 2]);
    expect(await again.send(replica, conversation(3, 1))).toBe(6);
    const diverged = { step: 3, by_step: 6, changed: ['messages[1]'] };
    await expectDiverged(replica, diverged);
    // Later steps aren't compared.
    expect(await again.send(replica, conversation(4, 1))).toBe(7);
    expect(await logged(replica)).toEqual([diverged]);
  });

  it('has diverged, whichever replicas have answered what, and all of them show it', async () => {
    const { replica, other } = await deployTasks();
    await process('first').steps(replica, 1, 5);
    const again = process('second');
    await again.steps(other, 1, 1);
    await again.steps(replica, 2, 3);
    const body = { ...conversation(4), tools: [{ type: 'function', function: { name: 'send_mail' } }] };
    expect(await again.send(other, body)).toBe(6);
    for (const each of [replica, other])
      await expectDiverged(each, { step: 4, by_step: 6, changed: ['tools'] });
  });

  it('has diverged at its first step', async () => {
    const { replica } = await deployTasks();
    await process('first').steps(replica, 1, 2);
    await process('second').send(replica, { ...conversation(1), temperature: 1 });
    await expectDiverged(replica, { step: 1, by_step: 3, changed: ['temperature'] });
  });

  it('has diverged from a process that itself had diverged', async () => {
    const { replica } = await deployTasks();
    await process('first').steps(replica, 1, 4);
    const second = process('second');
    await second.steps(replica, 1, 2);
    for (const length of [3, 4, 5]) await second.send(replica, conversation(length, 2));
    const third = process('third');
    await third.steps(replica, 1, 2);
    expect(await third.send(replica, conversation(3, 2))).toBe(5);
    expect(await third.send(replica, { ...conversation(4, 2), temperature: 1 })).toBe(8);
    await expectDiverged(replica, { step: 6, by_step: 8, changed: ['temperature'] });
  });

  it('does not show what has changed where the request of the step is not kept', async () => {
    const { replica } = await deployTasks();
    await process('first', {}).steps(replica, 1, 2);
    await process('second').send(replica, conversation(1, 0));
    await expectDiverged(replica, { step: 1, by_step: 3, changed: null });
  });

  it('has not diverged where it continues after the last step, at any replica, or writes its requests otherwise', async () => {
    const { replica, other } = await deployTasks();
    await process('first').steps(replica, 1, 3);
    const again = process('second');
    const { messages } = conversation(1);
    expect(await again.send(replica, { messages, ...MODEL })).toBe(1);
    expect(await again.steps(replica, 2, 3)).toEqual([2, 3]);
    expect(await again.steps(other, 4, 5)).toEqual([4, 5]);
    expect(await again.steps(replica, 6, 6)).toEqual([6]);
    expect([await logged(other), await logged(replica)]).toEqual([[], []]);
  });

  it('has not diverged where its step is kept no longer', async () => {
    const { replica } = await deployTasks();
    await process('first').steps(replica, 1, 3);
    const { notes } = replica.store;
    const name = await notes.consume(OWNER, { kind: 'task_step', name: '["T23",1]' });
    await notes.consume(OWNER, { kind: 'step', name: String(name) });
    expect(await process('second').steps(replica, 1, 3)).toEqual([4, 2, 3]);
    expect(await divergedOf(replica)).toBeNull();
    expect(await replica.log()).not.toContain('diverged from');
  });

  it('has not diverged where it asks for a second answer after the last step', async () => {
    const { replica } = await deployTasks();
    const first = process('first');
    await first.steps(replica, 1, 2);
    expect(await first.steps(replica, 2, 2)).toEqual([3]);
    const again = process('second');
    expect([...(await again.steps(replica, 1, 2)), ...(await again.steps(replica, 2, 2))]).toEqual([1, 2, 3]);
    expect(await again.steps(replica, 2, 2)).toEqual([4]);
    expect(await logged(replica)).toEqual([]);
  });

  it('is in an event of its task', async () => {
    const { replica, other } = await deployTasks();
    await process('first').steps(replica, 1, 2);
    await vi.waitFor(async () => expect(await divergedOf(replica)).toBeNull());
    const reader = await watchTask(other);
    await process('second').send(replica, conversation(1, 0));
    await vi.waitFor(
      () => {
        const tasks = reader.events.filter(({ name }) => name === 'task');
        expect(tasks.map(({ data }) => data.diverged)).toEqual([
          null,
          { step: 1, by_step: 3, changed: ['messages[0]'], at: expect.any(Number) },
        ]);
      },
      { timeout: 5000 },
    );
  });

  it('has its answer although the store does not say what it has had', async () => {
    const { replica } = await deployTasks();
    await process('first').steps(replica, 1, 3);
    const { get } = replica.store.notes;
    const answers = [new Promise<never>(() => {}), Promise.reject(new Error('away'))];
    answers[1]?.catch(() => {});
    for (const [index, answer] of answers.entries()) {
      replica.store.notes.get = (owner, key) =>
        key.kind === 'task_session' ? answer : get.call(replica.store.notes, owner, key);
      const again = process(`again ${index}`);
      await again.send(replica, { ...conversation(1), temperature: index + 1 });
      expect(await again.steps(replica, 1, 3)).toEqual([1, 2, 3]);
    }
    replica.store.notes.get = get;
    expect(await logged(replica)).toEqual([]);
  });
});

describe('processes that work on a task side by side', () => {
  it('have not diverged by having their own steps in turn', async () => {
    const { replica, other } = await deployTasks();
    const [first, second] = [process('first'), process('second')];
    await first.steps(replica, 1, 2);
    await second.steps(replica, 1, 2);
    expect(await first.steps(replica, 3, 3)).toEqual([3]);
    expect(await second.send(replica, conversation(3, 0))).toBe(4);
    await expectDiverged(replica, { step: 3, by_step: 4, changed: ['messages[0]'] });
    // The first process never got the fourth step, which came after its third one.
    for (const [at, length, number] of [
      [replica, 4, 5],
      [other, 5, 6],
    ] as const)
      expect(await first.steps(at, length, length)).toEqual([number]);
    expect(await second.send(other, conversation(4, 0))).toBe(7);
    expect(await first.steps(other, 6, 6)).toEqual([8]);
    expect(await logged(other)).toEqual([]);
    expect(await logged(replica)).toEqual([{ step: 3, by_step: 4, changed: ['messages[0]'] }]);
  });
});

describe('the store', () => {
  it('is not asked which session has had which step while a process is the only one, or continues where another one has ended', async () => {
    const { replica } = await deployTasks();
    const counts = countReads(replica);
    await process('first').steps(replica, 1, 8);
    expect(counts.reads).toBe(0);
    await process('second').steps(replica, 1, 12);
    expect(counts.reads).toBe(0);
  });

  it('is asked once where a process continues at another replica', async () => {
    const { replica, other } = await deployTasks();
    const first = process('first');
    await first.steps(replica, 1, 3);
    const counts = countReads(other);
    await first.steps(other, 4, 8);
    expect(counts.reads).toBe(1);
  });

  it('is asked about few of the steps', async () => {
    const { replica, other } = await deployTasks();
    await process('first').steps(replica, 1, 40);
    const counts = countReads(other);
    const again = process('second');
    await again.steps(replica, 1, 17);
    await again.send(other, conversation(18, 3));
    await expectDiverged(replica, { step: 18, by_step: 41, changed: ['messages[3]'] });
    expect(counts.reads).toBeLessThan(20);
  });
});

it('a divergence is forgotten with its task', async () => {
  const { replica } = await deployTasks();
  await process('first').steps(replica, 1, 1);
  await process('second').send(replica, conversation(1, 0));
  await expectDiverged(replica, { step: 1, by_step: 2, changed: ['messages[0]'] });
  const consumed = vi.spyOn(replica.store.notes, 'consume');
  expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
  expect(consumed.mock.calls.map(([, { kind }]) => kind)).toContain('task_divergence');
  await process('third').steps(replica, 1, 1);
  await vi.waitFor(async () => expect(await divergedOf(replica)).toBeNull());
});
