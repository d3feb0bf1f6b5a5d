import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import type { Lease } from '../../../src/checkpoint/store.ts';
import type { Usage } from '../../../src/plans/delta.ts';
import { stepNote } from '../../../src/proxy/tasks/step-runs.ts';
import { TaskRecords } from '../../../src/proxy/tasks/task-records.ts';
import { TaskUsage } from '../../../src/proxy/tasks/task-usage.ts';
import { CASES } from '../../cases.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, textRecord } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const TASK = { owner: OWNER, task: 'T23', era: '' };

const reported = (prompt_tokens: number, completion_tokens: number): Usage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
});

function replicas() {
  const { context, store, time } = lookupOf();
  const replica = () => {
    const records = new TaskRecords(context, []);
    return { records, usage: new TaskUsage(context, records) };
  };
  const { records, usage } = replica();
  /** Begins a run of the step whose answer has this many characters so far. */
  const begin = async (step: string, characters: number): Promise<Lease> => {
    const run = newRunId();
    await store.notes.put(OWNER, stepNote(step), JSON.stringify({ run }), 1_000_000);
    const lease = await store.acquire(run, OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'x'.repeat(characters))]);
    return lease;
  };
  const end = async (lease: Lease, said?: Usage): Promise<void> => {
    if (said) await store.append(lease, [{ seq: 2, events: [{ deltas: [{ kind: 'usage', usage: said }] }] }]);
    await store.finish(lease, COMPLETE);
  };
  const number = (step: string) => records.numberOf(TASK, stepNote(step), true);
  /** Completes these steps. */
  const answer = async (first: number, last: number, said: Usage): Promise<void> => {
    for (let step = first; step <= last; step++) {
      await number(`s${step}`);
      await end(await begin(`s${step}`, 4), said);
    }
  };
  return { usage, replica, begin, end, number, answer, store, time };
}

describe('what a task has used', () => {
  it('is nothing before its first step, and what its providers have counted since', async () => {
    const { usage, replica, answer } = replicas();
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 0, completion_tokens: 0 });
    await answer(1, 3, reported(10, 2));
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 30, completion_tokens: 6 });
    await answer(4, 4, reported(10, 2));
    for (const each of [usage, replica().usage])
      expect(await each.of(TASK)).toEqual({ prompt_tokens: 40, completion_tokens: 8 });
  });

  it('is estimated for an answer that is not whole, until it is', async () => {
    const { usage, begin, end, number, answer } = replicas();
    await number('cut');
    const lease = await begin('cut', 40);
    await answer(1, 2, reported(10, 2));
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 20, completion_tokens: 14 });
    await end(lease, reported(100, 20));
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 120, completion_tokens: 24 });
  });

  it('counts a step that begins late, and the run that takes the place of another one', async () => {
    const { usage, begin, end, number } = replicas();
    await number('late');
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 0, completion_tokens: 0 });
    await begin('late', 8);
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 0, completion_tokens: 2 });
    await end(await begin('late', 16), reported(7, 5));
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 7, completion_tokens: 5 });
  });

  it('is read once by each replica, and by another one from where this one has come to', async () => {
    const { usage, replica, answer, store } = replicas();
    await answer(1, 120, reported(1, 1));
    const read = vi.spyOn(store, 'read');
    await usage.of(TASK);
    expect(read).toHaveBeenCalledTimes(120);
    await answer(121, 125, reported(1, 1));
    read.mockClear();
    expect(await usage.of(TASK)).toEqual({ prompt_tokens: 125, completion_tokens: 125 });
    expect(read).toHaveBeenCalledTimes(5);
    read.mockClear();
    expect(await replica().usage.of(TASK)).toEqual({ prompt_tokens: 125, completion_tokens: 125 });
    expect(read).toHaveBeenCalledTimes(5);
  });

  it('begins anew where a strange hand has written what is no sum', async () => {
    const { usage, answer, store } = replicas();
    await answer(1, 2, reported(10, 2));
    for (const value of [
      '{',
      '[]',
      '{"steps":2}',
      '{"steps":2,"open":["x"],"settled":{"prompt_tokens":1,"completion_tokens":1}}',
    ]) {
      await store.notes.put(OWNER, { kind: 'task_usage', name: JSON.stringify(['T23', '']) }, value, 1000);
      expect(await usage.of(TASK)).toEqual({ prompt_tokens: 20, completion_tokens: 4 });
    }
  });

  it('is counted anew once that is forgotten', async () => {
    const { usage, replica, answer, store } = replicas();
    await answer(1, 60, reported(1, 1));
    await usage.of(TASK);
    await usage.forget(TASK);
    const read = vi.spyOn(store, 'read');
    await replica().usage.of(TASK);
    expect(read).toHaveBeenCalledTimes(60);
  });
});

type Move =
  | { readonly kind: 'begin'; readonly said: number }
  | { readonly kind: 'end'; readonly which: number; readonly prompt: number }
  | { readonly kind: 'ask'; readonly replica: number };

const MOVE: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constant('begin' as const), said: fc.nat(100) }),
  fc.record({ kind: fc.constant('end' as const), which: fc.nat(200), prompt: fc.nat(1000) }),
  fc.record({ kind: fc.constant('ask' as const), replica: fc.nat(2) }),
);

test('it is the sum over its steps, whichever replica is asked, and in whichever order they begin and end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(MOVE, { maxLength: 150, size: 'max' }), async (moves) => {
      const { replica, begin, end, number } = replicas();
      const asked = [replica().usage, replica().usage, replica().usage];
      const steps: { lease: Lease; said: number; prompt?: number }[] = [];
      for (const move of moves) {
        const open = steps.filter(({ prompt }) => prompt === undefined);
        // With more open runs than this, the first ones would be counted at their current size.
        if (move.kind === 'begin' && open.length < 64) {
          await number(`s${steps.length}`);
          steps.push({ lease: await begin(`s${steps.length}`, 4 * move.said), said: move.said });
        } else if (move.kind === 'end') {
          const ended = open[move.which % open.length];
          if (!ended) continue;
          await end(ended.lease, reported(move.prompt, 1));
          ended.prompt = move.prompt;
        } else if (move.kind === 'ask') {
          const prompt_tokens = steps.reduce((sum, { prompt = 0 }) => sum + prompt, 0);
          const completion_tokens = steps.reduce(
            (sum, { said, prompt }) => sum + (prompt === undefined ? said : 1),
            0,
          );
          expect(await asked[move.replica]?.of(TASK)).toEqual({ prompt_tokens, completion_tokens });
        }
      }
    }),
    { numRuns: CASES },
  );
});
