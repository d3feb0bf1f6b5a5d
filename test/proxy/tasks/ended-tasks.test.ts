import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import { replicasOf } from '../../../src/checkpoint/owner.ts';
import { sleep } from '../../../src/lib/time.ts';
import { EndedTasks } from '../../../src/proxy/tasks/ended-tasks.ts';
import { type OwnedTask, TaskStates } from '../../../src/proxy/tasks/task-states.ts';
import { CASES } from '../../cases.ts';
import { OWNER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const MINUTE_MS = 60_000;
/** The longest interval between a replica's searches for ended tasks, with a margin. */
const LATE_MS = MINUTE_MS + 1000;

/** Replicas with a shared store. */
function deployment() {
  const { context, store, time } = lookupOf();
  const states = new TaskStates(context);
  const began_ms = time.wall();
  /** Which replica forgot which task, and when. */
  const forgotten: [replica: string, task: string, at_ms: number][] = [];
  const replica = (name: string, forget: (task: OwnedTask) => Promise<void> = async () => {}) => {
    const tasks = new EndedTasks({
      context,
      states,
      replicas: replicasOf('secret'),
      forget: async (task) => {
        await forget(task);
        forgotten.push([name, task.task, time.wall() - began_ms]);
        await states.forget(task);
      },
    });
    tasks.start();
    /** Ends the task on this replica. It's kept for `kept_ms`. */
    const end = async (task: string, kept_ms: number) => {
      const owned = { owner: OWNER, task };
      const { era, kept_until_ms = Number.NaN } = await states.end(owned, 'completed', { kept_ms });
      await tasks.add({ ...owned, era }, kept_until_ms);
    };
    return { tasks, end };
  };
  const pass = (delay_ms: number) => time.drive(sleep(time, delay_ms, new AbortController().signal));
  return { replica, states, store, forgotten, pass };
}

describe('a task that has ended', () => {
  it('is forgotten when its time has come, at the replica that has ended it', async () => {
    const { replica, forgotten, pass } = deployment();
    const first = replica('first');
    replica('second');
    await first.end('T23', 5000);
    await pass(4999);
    expect(forgotten).toEqual([]);
    await pass(LATE_MS);
    expect(forgotten).toEqual([['first', 'T23', 5000]]);
    await pass(30 * MINUTE_MS);
    expect(forgotten).toHaveLength(1);
  });

  it('is forgotten by another replica where that one is gone, and by one that began later', async () => {
    const { replica, forgotten, pass } = deployment();
    const first = replica('first');
    await first.end('T23', 10 * MINUTE_MS);
    await first.end('T24', 20 * MINUTE_MS);
    await first.tasks.close();
    const second = replica('second');
    await pass(10 * MINUTE_MS + LATE_MS);
    expect(forgotten).toEqual([['second', 'T23', 10 * MINUTE_MS]]);
    await second.tasks.close();
    await pass(20 * MINUTE_MS);
    replica('third');
    await pass(LATE_MS);
    expect(forgotten.slice(1)).toEqual([['third', 'T24', expect.any(Number)]]);
  });

  it('is forgotten by one replica alone', async () => {
    const { replica, forgotten, pass } = deployment();
    const [first] = [replica('first'), replica('second'), replica('third')];
    for (let nth = 0; nth < 250; nth++) await first.end(`T${nth}`, 2 * MINUTE_MS + nth);
    await pass(15 * MINUTE_MS);
    expect(forgotten).toHaveLength(250);
    expect(new Set(forgotten.map(([, task]) => task))).toHaveProperty('size', 250);
  });

  it('is forgotten once although it was said twice to have ended', async () => {
    const { replica, forgotten, pass } = deployment();
    const [first, second] = [replica('first'), replica('second')];
    await first.end('T23', 1000);
    await second.end('T23', 9000);
    await pass(30 * MINUTE_MS);
    expect(forgotten).toEqual([['first', 'T23', 1000]]);
  });

  it('is left alone once its name is that of another task', async () => {
    const { replica, states, forgotten, pass } = deployment();
    const first = replica('first');
    await first.end('T23', 5000);
    await states.forget({ owner: OWNER, task: 'T23' });
    await pass(LATE_MS);
    expect(forgotten).toEqual([]);
    await first.end('T23', 5000);
    await pass(LATE_MS);
    expect(forgotten).toHaveLength(1);
  });

  it('is tried again where it cannot be forgotten', async () => {
    const { replica, forgotten, pass } = deployment();
    const forget = vi.fn(async () => {}).mockRejectedValueOnce(new Error('away'));
    const first = replica('first', forget);
    await first.end('T23', 5000);
    await first.end('T24', 6000);
    await pass(LATE_MS + 5000);
    expect(forgotten.map(([, task]) => task)).toEqual(['T24', 'T23']);
  });

  it('is left to the others where its replica is lost while it forgets it', async () => {
    const { replica, forgotten, pass } = deployment();
    const lost = replica('lost', () => new Promise(() => {}));
    replica('second');
    await lost.end('T23', 5000);
    await pass(9 * MINUTE_MS);
    expect(forgotten).toEqual([]);
    await pass(3 * MINUTE_MS);
    expect(forgotten).toEqual([['second', 'T23', expect.any(Number)]]);
  });

  it('is forgotten later where the store was away', async () => {
    const { replica, store, forgotten, pass } = deployment();
    const first = replica('first');
    await first.end('T23', 5000);
    const get = vi.spyOn(store.notes, 'get').mockRejectedValue(new Error('away'));
    await pass(LATE_MS);
    expect(forgotten).toEqual([]);
    get.mockRestore();
    await pass(2 * LATE_MS);
    expect(forgotten).toHaveLength(1);
  });

  it('takes no words of a strange hand for a task', async () => {
    const { replica, store, forgotten, pass } = deployment();
    const first = replica('first');
    await first.end('T1', 5000);
    for (const [nth, word] of [
      '{',
      '{}',
      '{"owner":"o","task":"T1","era":"","until_ms":"soon"}',
      '7',
    ].entries())
      await store.notes.put(
        replicasOf('secret'),
        { kind: 'due_task', name: JSON.stringify(['', nth + 2]) },
        word,
        MINUTE_MS,
      );
    await first.tasks.close();
    replica('second');
    await pass(LATE_MS);
    expect(forgotten).toHaveLength(1);
  });
});

test('every task that has ended is forgotten once, and never before its time, whichever replicas are lost', async () => {
  const lives_ms = fc.array(fc.integer({ min: 0, max: 12 * MINUTE_MS }), { minLength: 1, maxLength: 3 });
  const end = fc.record({
    replica: fc.nat({ max: 3 }),
    after_ms: fc.nat({ max: MINUTE_MS }),
    kept_ms: fc.integer({ min: 1, max: 8 * MINUTE_MS }),
  });
  const ends = fc.array(end, { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(lives_ms, ends, async (lives, tasks) => {
      const { replica, forgotten, pass } = deployment();
      const lasting = replica('lasting');
      const mortal = lives.map((life_ms, nth) => {
        const born = replica(`replica ${nth}`);
        return { ...born, life_ms };
      });
      const until_ms = new Map<string, number>();
      let now_ms = 0;
      for (const [nth, { replica: at, after_ms, kept_ms }] of tasks.entries()) {
        await pass(after_ms);
        now_ms += after_ms;
        for (const { tasks, life_ms } of mortal) if (life_ms <= now_ms) await tasks.close();
        const chosen = mortal[at];
        await (chosen && chosen.life_ms > now_ms ? chosen : lasting).end(`T${nth}`, kept_ms);
        until_ms.set(`T${nth}`, now_ms + kept_ms);
      }
      for (const { tasks } of mortal) await tasks.close();
      await pass(16 * MINUTE_MS);
      await lasting.tasks.close();
      expect(forgotten).toHaveLength(until_ms.size);
      expect(new Set(forgotten.map(([, task]) => task))).toEqual(new Set(until_ms.keys()));
      for (const [, task, at_ms] of forgotten) expect(at_ms).toBeGreaterThanOrEqual(until_ms.get(task) ?? 0);
    }),
    { numRuns: CASES },
  );
});
