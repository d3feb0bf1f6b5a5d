import { describe, expect, it, vi } from 'vitest';
import type { NoteKey } from '../../../src/checkpoint/notes.ts';
import { AgreedTerms } from '../../../src/proxy/tasks/agreed-terms.ts';
import { type TaskEra, TaskRecords } from '../../../src/proxy/tasks/task-records.ts';
import { TaskStates } from '../../../src/proxy/tasks/task-states.ts';
import { OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const stepNamed = (name: string): NoteKey => ({ kind: 'step', name });

const taskOf = (owner = OWNER, task = 'T23', era = ''): TaskEra => ({ owner, task, era });

function replica() {
  const { context, store, time } = lookupOf();
  const put = vi.spyOn(store.notes, 'put');
  /** How often a task was recorded. */
  const noted = () => put.mock.calls.filter(([, { kind }]) => kind === 'task').length;
  const ttl_ms = context.configuration.checkpoint.ttl_s * 1000;
  const replicaOf = () => {
    const states = new TaskStates(context);
    const terms = new AgreedTerms(context);
    const tasks = new TaskRecords(context, [states, terms]);
    /** Asks for the number of a step that may already have one. */
    const number = (name: string, owner = OWNER, task = 'T23') =>
      time.drive(tasks.numberOf(taskOf(owner, task), stepNamed(name), false));
    const numberNew = (name: string) => time.drive(tasks.numberOf(taskOf(), stepNamed(name), true));
    return { tasks, number, numberNew, states, terms };
  };
  return { ...replicaOf(), replicaOf, other: replicaOf().tasks, put, noted, store, time, ttl_ms };
}

describe('a task', () => {
  it('is known at every replica once it had an answer, to its owner alone', async () => {
    const { tasks, other } = replica();
    expect(await other.noted(taskOf())).toBeUndefined();
    tasks.answered(taskOf());
    await vi.waitFor(async () => expect(await other.noted(taskOf())).toBeDefined());
    expect(await other.noted(taskOf(OWNER, 'T24'))).toBeUndefined();
    expect(await other.noted(taskOf(STRANGER))).toBeUndefined();
    expect(await other.find(taskOf(STRANGER))).toBeUndefined();
  });

  it('is noted once in a while, and known for as long as its last step', async () => {
    const { tasks, noted, time, ttl_ms } = replica();
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(1));
    time.skip(ttl_ms / 10 - 1);
    tasks.answered(taskOf());
    time.skip(ttl_ms);
    expect(await tasks.noted(taskOf())).toBeDefined();
    expect(noted()).toBe(1);
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(2));
  });

  it('knows its parent, and which sessions have worked on it, once each', async () => {
    const { tasks, other } = replica();
    tasks.answered(taskOf(), { session: 'first', parent: 'T1' });
    await vi.waitFor(async () => expect(await other.find(taskOf())).toMatchObject({ sessions: 1 }));
    tasks.answered(taskOf(), { session: 'first' });
    other.answered(taskOf(), { session: 'second', parent: 'T2' });
    await vi.waitFor(async () =>
      expect((await tasks.sessions(taskOf(), 1, 9)).map(({ name }) => name)).toEqual(['first', 'second']),
    );
    expect(await other.find(taskOf())).toMatchObject({ sessions: 2, parent: 'T1' });
  });

  it('that is declared is known before its first answer', async () => {
    const { tasks, other, noted, time } = replica();
    await tasks.declare(taskOf());
    const created_at_ms = time.wall();
    time.skip(1000);
    await other.declare(taskOf());
    expect(noted()).toBe(1);
    expect(await other.find(taskOf())).toMatchObject({ created_at_ms, steps: 0, number: 1 });
    other.answered(taskOf(), { parent: 'T1' });
    await vi.waitFor(async () =>
      expect(await tasks.noted(taskOf())).toMatchObject({ created_at_ms, parent: 'T1' }),
    );
  });

  it('that has answers for longer than anything is kept keeps its deadline and its pause', async () => {
    const { tasks, states, terms, noted, time, ttl_ms } = replica();
    const { era } = await states.begun(taskOf());
    const agreed = await terms.agreed(taskOf(), { deadline_ms: 3 * ttl_ms });
    for (let answers = 1; answers <= 4; answers++) {
      tasks.answered(taskOf());
      await vi.waitFor(() => expect(noted()).toBe(answers));
      time.skip(ttl_ms / 2);
    }
    expect(await terms.of(taskOf())).toEqual(agreed);
    await states.pause(taskOf(), 'lunch');
    time.skip(ttl_ms / 2);
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(5));
    time.skip(ttl_ms);
    expect(await states.of(taskOf())).toMatchObject({ status: 'paused', era });
  });

  it('that could not be noted is noted with its next step', async () => {
    const { tasks, put } = replica();
    put.mockRejectedValueOnce(new Error('the store is down'));
    tasks.answered(taskOf());
    await vi.waitFor(async () => {
      tasks.answered(taskOf());
      expect(await tasks.noted(taskOf())).toBeDefined();
    });
  });

  it('keeps the time of its first answer, and says how many steps it has by now', async () => {
    const { tasks, number, other, time, ttl_ms, noted } = replica();
    const created_at_ms = time.wall();
    await number('a');
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(1));
    time.skip(ttl_ms / 2);
    for (const name of ['b', 'c']) await number(name);
    expect(await other.find(taskOf())).toEqual({ created_at_ms, steps: 3, calls: 0, sessions: 0, number: 1 });
    other.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(2));
    expect(await other.find(taskOf())).toEqual({ created_at_ms, steps: 3, calls: 0, sessions: 0, number: 1 });
  });

  it('that an older version has noted has steps all the same', async () => {
    const { tasks, number, store, ttl_ms } = replica();
    await store.notes.put(OWNER, { kind: 'task', name: 'T23' }, '', ttl_ms);
    expect(await number('a')).toBe(1);
    expect(await tasks.find(taskOf())).toEqual({ steps: 1, calls: 0, sessions: 0 });
  });
});

describe('the steps of a task', () => {
  it('are numbered in the order of their first requests, and keep their numbers', async () => {
    const { number, replicaOf } = replica();
    expect([await number('a'), await number('b'), await number('a')]).toEqual([1, 2, 1]);
    const another = replicaOf();
    expect([await another.number('b'), await another.number('c'), await number('d')]).toEqual([2, 3, 4]);
    expect([await number('a', OWNER, 'T24'), await number('b', STRANGER)]).toEqual([1, 1]);
  });

  it('are listed in their order, without those that are known no longer', async () => {
    const { tasks, number, other, time, ttl_ms } = replica();
    for (let index = 1; index <= 10; index++) await number(`old ${index}`);
    time.skip(ttl_ms / 2);
    for (let index = 11; index <= 20; index++) await number(`young ${index}`);
    time.skip(ttl_ms / 2);
    expect(await number('last')).toBe(21);
    tasks.answered(taskOf());
    await vi.waitFor(async () => expect((await other.find(taskOf()))?.steps).toBe(21));
    const listed = await other.steps(taskOf(), 1, 21);
    expect(listed.map(({ number: each }) => each)).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
    expect(listed.at(-1)).toEqual({ number: 21, name: 'last' });
  });

  it('are counted by a replica that has not seen them with few questions', async () => {
    const { numberNew, replicaOf, store } = replica();
    for (let index = 1; index <= 500; index++) await numberNew(`step ${index}`);
    const get = vi.spyOn(store.notes, 'get');
    const claim = vi.spyOn(store.notes, 'claim');
    expect(await replicaOf().numberNew('next')).toBe(501);
    expect(get.mock.calls.length + claim.mock.calls.length).toBeLessThan(25);
    const before = claim.mock.calls.length;
    get.mockClear();
    await numberNew('another');
    // It claims the number that the other replica has given out, looks for a later one, and claims the next.
    expect([get.mock.calls.length, claim.mock.calls.length - before]).toEqual([1, 2]);
  });

  it('have no number beyond the ten thousandth, and none while the store is away', async () => {
    const { number, store, ttl_ms, time } = replica();
    const full = JSON.stringify({ created_at_ms: 0, steps: 10_000 });
    await store.notes.put(OWNER, { kind: 'task', name: 'full' }, full, ttl_ms);
    expect(await number('a', OWNER, 'full')).toBeUndefined();
    const claim = vi.spyOn(store.notes, 'claim').mockImplementation(() => new Promise(() => {}));
    const began_ms = time.now();
    expect(await number('b')).toBeUndefined();
    expect(await number('c')).toBeUndefined();
    // The second number isn't even asked for.
    expect(time.now() - began_ms).toBe(2000);
    expect(claim).toHaveBeenCalledOnce();
  });
});

describe('the tool calls of a task', () => {
  it('are all found, however old the first of them are', async () => {
    const { tasks, number, other, noted, time, ttl_ms } = replica();
    const claim = async (at: TaskRecords, key: string) => {
      const record = await at.noted(taskOf());
      if (!record) throw new Error('there is no such task');
      await at.noteCall(taskOf(), record, key);
    };
    await number('a');
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(1));
    for (const key of ['one', 'two', 'three']) await claim(tasks, key);
    time.skip(0.6 * ttl_ms);
    for (const key of ['four', 'five']) await claim(other, key);
    // One replica gets the claims, another one answers the requests.
    tasks.answered(taskOf());
    await vi.waitFor(() => expect(noted()).toBe(2));
    time.skip(0.6 * ttl_ms);
    await claim(tasks, 'six');
    const calls = (await other.find(taskOf()))?.calls ?? 0;
    const listed = await other.calls(taskOf(), 1, calls);
    expect(listed.map(({ name }) => name)).toEqual(['four', 'five', 'six']);
  });
});
