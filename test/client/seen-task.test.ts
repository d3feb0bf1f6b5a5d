import { describe, expect, test } from 'vitest';
import { SeenTask } from '../../src/client/seen-task.ts';
import type { RunStatus, TaskEvent } from '../../src/client/task-documents.ts';

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };

const task = (steps: number, more: object = {}) =>
  ({
    object: 'holdfast.task',
    id: 'T23',
    status: 'running',
    reason: null,
    created_at: 1_764_500_000,
    steps,
    steps_total: null,
    usage,
    last_step: steps === 0 ? null : { number: steps },
    ...more,
  }) as TaskEvent;

const step = (number: number, status: RunStatus | null): TaskEvent => ({
  object: 'holdfast.step',
  number,
  run: status && { status, step_name: 'greet' },
  recoveries: [],
});

function seenOf(...events: TaskEvent[]): SeenTask {
  const seen = new SeenTask();
  for (const event of events) expect(seen.add(event)).toBe(true);
  return seen;
}

describe('a task, as its events say,', () => {
  test('is done as far as its steps have whole answers, each counted once', () => {
    const seen = seenOf(task(3), step(1, 'complete'), step(2, 'failed'), step(3, 'running'));
    expect(seen.progress).toEqual({
      status: 'running',
      reason: null,
      steps_done: 1,
      steps: 3,
      steps_total: null,
      usage,
      step: { number: 3, name: 'greet', status: 'running', recoveries: [] },
    });
    for (const event of [step(3, 'complete'), step(3, 'complete'), step(2, null)]) seen.add(event);
    expect(seen.progress).toMatchObject({ steps_done: 2, step: { number: 2, name: null, status: null } });
  });

  test('is caught up with once the last step has come that there was at first, if it is still known', () => {
    const seen = seenOf(task(2));
    expect(seen.isCatchingUp).toBe(true);
    seen.add(step(2, 'running'));
    expect(seen.isCatchingUp).toBe(false);
    seen.add(task(3, { status: 'paused' }));
    expect(seen.isCatchingUp).toBe(false);
    expect(seenOf(task(2, { last_step: null })).isCatchingUp).toBe(false);
  });

  test('has ended when it is completed or cancelled, and as cancelled when it was deleted', () => {
    const statuses = ['pending', 'running', 'failed', 'paused', 'completed', 'cancelled'];
    const ended = statuses.filter((status) => seenOf(task(0, { status })).isEnded);
    expect(ended).toEqual(['completed', 'cancelled']);
    const gone: TaskEvent[] = [
      { object: 'holdfast.task', purged: true },
      // A new task with the same name.
      task(1, { created_at: 1_764_500_009 }),
    ];
    for (const event of gone) {
      const seen = seenOf(task(2), step(1, 'complete'), event);
      expect([seen.isPurged, seen.isEnded, seen.isCatchingUp]).toEqual([true, true, false]);
      expect(seen.progress).toMatchObject({ status: 'cancelled', steps_done: 1, steps: 2, usage });
    }
  });

  test('does not change with a tool call', () => {
    expect(new SeenTask().add({ object: 'holdfast.call' })).toBe(false);
  });
});
