import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { ApiError } from '../../../src/lib/errors.ts';
import { type OwnedTask, type TaskState, TaskStates } from '../../../src/proxy/tasks/task-states.ts';
import { CASES, seedOr } from '../../cases.ts';
import { OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const TASK: OwnedTask = { owner: OWNER, task: 'T23' };

function replicas() {
  const { context, store, time } = lookupOf();
  const ttl_ms = context.configuration.checkpoint.ttl_s * 1000;
  return { states: new TaskStates(context), other: new TaskStates(context), store, time, ttl_ms };
}

describe('a task', () => {
  it('is running unless something else was said', async () => {
    const { states, other, time } = replicas();
    expect(await states.of(TASK)).toEqual({ status: 'running', era: '' });
    time.skip(1000);
    await states.pause(TASK, 'lunch');
    const { era } = await other.begun(TASK);
    const paused = { status: 'paused', since_ms: time.wall(), reason: 'lunch', era };
    expect(await other.of(TASK)).toEqual(paused);
    expect(await other.of({ ...TASK, task: 'T24' })).toMatchObject({ status: 'running' });
    expect(await other.of({ ...TASK, owner: STRANGER })).toMatchObject({ status: 'running' });
    time.skip(1000);
    await other.resume(TASK);
    expect(await states.of(TASK)).toEqual({ status: 'running', since_ms: time.wall(), era });
  });

  it.each([
    ['completed', 'cancelled'],
    ['cancelled', 'completed'],
  ] as const)('that is %s stays so', async (status, otherwise) => {
    const { states, other, time } = replicas();
    const end = await states.end(TASK, status, { reason: 'enough' });
    time.skip(1000);
    const ended = { code: 'task_ended', message: expect.stringContaining(status) };
    await expect(other.pause(TASK)).rejects.toMatchObject(ended);
    await expect(other.resume(TASK)).rejects.toMatchObject(ended);
    await expect(other.end(TASK, otherwise)).rejects.toMatchObject(ended);
    // This can be repeated, in case the first answer was lost.
    expect(await other.end(TASK, status)).toEqual(end);
    expect(await states.of(TASK)).toEqual(end);
  });

  it('begins once, in an era of its own, and leaves nothing when it is forgotten', async () => {
    const { states, other, store } = replicas();
    const [begun, same] = await Promise.all([states.begun(TASK), other.begun(TASK)]);
    expect(same).toEqual(begun);
    expect(begun.era).not.toBe('');
    expect(await other.pause(TASK)).toMatchObject({ status: 'paused', era: begun.era });
    expect(await states.end(TASK, 'cancelled')).toMatchObject({ era: begun.era });
    await other.forget(TASK);
    for (const kind of ['task_state', 'task_end'] as const)
      expect(await store.notes.get(OWNER, { kind, name: TASK.task })).toBeUndefined();
    expect(await states.of(TASK)).toEqual({ status: 'running', era: '' });
    expect((await states.begun(TASK)).era).not.toBe(begun.era);
  });

  it('stays paused for as long as it is extended, and is ended for as long', async () => {
    const { states, other, time, ttl_ms } = replicas();
    await states.pause(TASK);
    const ended = { ...TASK, task: 'T24' };
    await states.end(ended, 'completed');
    for (let times = 0; times < 3; times++) {
      await Promise.all([other.extend(TASK, ttl_ms), other.extend(ended, ttl_ms)]);
      time.skip(ttl_ms - 1);
      expect(await states.of(TASK)).toMatchObject({ status: 'paused' });
      await expect(states.resume(ended)).rejects.toMatchObject({ code: 'task_ended' });
    }
    time.skip(1);
    expect(await states.of(TASK)).toEqual({ status: 'running', era: '' });
  });

  it('is as it was where a strange hand has written what is no state', async () => {
    const { states, store } = replicas();
    for (const value of ['', '[]', '{"status":"lost","era":""}', '{"status":"paused"}']) {
      await store.notes.put(OWNER, { kind: 'task_state', name: 'T23' }, value, 1000);
      expect(await states.of(TASK)).toEqual({ status: 'running', era: '' });
    }
  });
});

test('a task that has ended has one end, which its state says, whatever replicas say at the same time', async () => {
  const words = fc.array(fc.constantFrom('pause', 'resume', 'completed', 'cancelled'), {
    minLength: 2,
    maxLength: 6,
  });
  let overtaken = 0;
  await fc.assert(
    fc.asyncProperty(words, fc.scheduler(), async (said, scheduler) => {
      const { states, store } = replicas();
      const { notes } = store;
      for (const method of ['claim', 'get', 'put'] as const) {
        const real = notes[method].bind(notes) as (...words: unknown[]) => Promise<never>;
        notes[method] = async (...words: unknown[]) => {
          await scheduler.schedule(Promise.resolve(), method);
          return real(...words);
        };
      }
      const say = (word: string): Promise<TaskState> => {
        if (word === 'pause') return states.pause(TASK);
        if (word === 'resume') return states.resume(TASK);
        return states.end(TASK, word as 'completed' | 'cancelled');
      };
      const saying = said.map((word) =>
        say(word).then(
          ({ status }) => status,
          (error: unknown) => (error as ApiError).code,
        ),
      );
      const answers = await scheduler.waitFor(Promise.all(saying));
      const { status } = await scheduler.waitFor(states.of(TASK));
      const ends = new Set(answers.filter((answer) => answer === 'completed' || answer === 'cancelled'));
      const hasEnded = said.includes('completed') || said.includes('cancelled');
      expect([...ends]).toEqual(hasEnded ? [status] : []);
      if (hasEnded && answers.includes('paused')) overtaken++;
    }),
    { numRuns: CASES, seed: seedOr(20261129) },
  );
  expect(overtaken).toBeGreaterThan(CASES / 20);
});
