import { describe, expect, it, vi } from 'vitest';
import type { NoteKey } from '../../../src/checkpoint/notes.ts';
import type { Lease } from '../../../src/checkpoint/store.ts';
import type { Ask } from '../../../src/proxy/resume/run-lookup.ts';
import { AgreedTerms } from '../../../src/proxy/tasks/agreed-terms.ts';
import { TaskRecords } from '../../../src/proxy/tasks/task-records.ts';
import { type TaskEnd, TaskStates } from '../../../src/proxy/tasks/task-states.ts';
import { type TaskSession, TaskSteps } from '../../../src/proxy/tasks/task-steps.ts';
import { TaskUsage } from '../../../src/proxy/tasks/task-usage.ts';
import { HEADER_RECORD, OWNER, STRANGER, textRecord } from '../../checkpoint/fixtures.ts';
import { finish, LEASE_MS, lookupOf } from '../resume/lookup-setting.ts';

const T1: TaskSession = { task: 'T23', session: 'first process' };
const T2: TaskSession = { task: 'T23', session: 'second process' };

function tasks() {
  const setting = lookupOf();
  const { time, lookup, context, ask } = setting;
  const states = new TaskStates(context);
  const records = new TaskRecords(context, []);
  const terms = new AgreedTerms(context);
  const steps = new TaskSteps(context, lookup, { states, terms, usage: new TaskUsage(context, records) });
  const noteOf = async (session: TaskSession, asked: Partial<Ask> = {}) =>
    (await time.drive(steps.stepOf(ask(asked), session))).note;
  /** Sends a request, for which another replica begins a run. */
  const send = async (session: TaskSession, asked: Partial<Ask> = {}): Promise<Sent> => {
    const { note, ask: sent } = await time.drive(steps.stepOf(ask(asked), session));
    if (!note) throw new Error('the request is no step');
    expect(await setting.find(sent)).toBeUndefined();
    const lease = await setting.other.acquire(sent.fresh, OWNER);
    await setting.other.append(lease, [HEADER_RECORD, textRecord(0, 'Hello')]);
    return { note, lease, asked: sent };
  };
  return { ...setting, states, records, terms, steps, noteOf, send };
}

interface Sent {
  readonly note: NoteKey;
  readonly lease: Lease;
  readonly asked: Ask;
}

describe('a request of a task', () => {
  it('is the step of the process before it that has sent the same', async () => {
    const { noteOf, send, find, ask, other } = tasks();
    const { note, lease } = await send(T1);
    await finish(other, lease, 'complete');
    expect(await noteOf(T2)).toEqual(note);
    expect(await find(ask({ note }))).toBe(lease.run);
  });

  it('is another step where anything of it differs: the request, the task, the owner', async () => {
    const { noteOf, send } = tasks();
    const { note } = await send(T1);
    expect(await noteOf(T2, { digest: 'another' })).not.toEqual(note);
    expect(await noteOf({ task: 'T24', session: 'third process' })).not.toEqual(note);
    // Notes belong to their owners, whatever their names are.
    const stranger = tasks();
    await stranger.send(T1);
    const asked = stranger.ask({ owner: STRANGER });
    const { note: foreign } = await stranger.time.drive(stranger.steps.stepOf(asked, T2));
    expect(await stranger.find({ ...asked, ...(foreign && { note: foreign }) })).toBeUndefined();
  });

  it('that its process sends again after it had the answer is for a second one, in every process', async () => {
    const { noteOf, send, other } = tasks();
    const first = await send(T1);
    await finish(other, first.lease, 'complete');
    const second = await send(T1);
    expect(second.note).not.toEqual(first.note);
    await finish(other, second.lease, 'complete');
    expect([await noteOf(T2), await noteOf(T2)]).toEqual([first.note, second.note]);
  });

  it('that its process sends again after it came back for the answer is for a second one', async () => {
    const { noteOf, send, lookup, find, ask, time, other, steps } = tasks();
    const { note, lease, asked } = await send(T1);
    lookup.leave(asked, lease.run, 'detached');
    await time.drive(Promise.resolve());
    // First for the process that comes back, then for its successor.
    for (const session of [T1, T2]) {
      const { ask: back } = await time.drive(steps.stepOf(ask(), session));
      expect(back.note).toEqual(note);
      expect(await find(back)).toBe(lease.run);
      lookup.remember(back, lease.run);
      await time.drive(Promise.resolve());
      if (session === T1) await finish(other, lease, 'complete');
    }
    expect(await noteOf(T1)).not.toEqual(note);
    expect(await noteOf(T2)).not.toEqual(note);
  });

  it('that two processes send at once is begun for one of them, and both have it', async () => {
    const { steps, time, ask, find, other } = tasks();
    const [one, two] = [ask(), ask()];
    const both = await time.drive(Promise.all([steps.stepOf(one, T1), steps.stepOf(two, T2)]));
    expect(both[0].note).toEqual(both[1].note);
    expect(await find(both[0].ask)).toBeUndefined();
    const lease = await other.acquire(one.fresh, OWNER);
    await other.append(lease, [HEADER_RECORD, textRecord(0, 'Hello')]);
    expect(await find(both[1].ask)).toBe(one.fresh);
  });

  it('takes one note of the store to be known as a new step', async () => {
    const { noteOf, store } = tasks();
    const claim = vi.spyOn(store.notes, 'claim');
    await noteOf(T1);
    expect(claim.mock.calls.map(([, { kind }]) => kind)).toEqual(['step', 'task_state']);
  });

  it('that its process sends beside one under way is for a second answer', async () => {
    const { noteOf, send, store } = tasks();
    const { note } = await send(T1);
    let silent_ms = LEASE_MS / 3;
    store.holder = () => ({ state: 'alive', silent_ms: silent_ms-- });
    expect(await noteOf(T1)).not.toEqual(note);
  });

  it.each(['running', 'complete'])(
    'that its process sends again because the connection was lost is the same step: the run is %s',
    async (status) => {
      const { noteOf, send, lookup, time, other } = tasks();
      const { note, lease, asked } = await send(T1);
      lookup.leave(asked, lease.run, 'detached');
      if (status === 'complete') await finish(other, lease, status);
      await time.drive(Promise.resolve());
      expect(await noteOf(T1)).toEqual(note);
    },
  );

  it('that its process sends again because the replica was lost is the same step', async () => {
    const { noteOf, send, other } = tasks();
    const { note } = await send(T1);
    await other.close();
    expect(await noteOf(T1)).toEqual(note);
  });

  it.each(['failed', 'cancelled'] as const)(
    'that its process sends again because it has %s is the same step',
    async (status) => {
      const { noteOf, send, other } = tasks();
      const { note, lease } = await send(T1);
      await finish(other, lease, status);
      expect(await noteOf(T1)).toEqual(note);
    },
  );

  it('that its process sends again although nothing was begun for it is the same step', async () => {
    const { noteOf } = tasks();
    const note = await noteOf(T1);
    expect(await noteOf(T1)).toEqual(note);
  });

  it('is always the same step where no session is named', async () => {
    const { noteOf, send, other } = tasks();
    const { note, lease } = await send({ task: 'T23' });
    await finish(other, lease, 'complete');
    expect(await noteOf({ task: 'T23' })).toEqual(note);
  });

  it('is no step once its process has had 64 answers to it', async () => {
    const { noteOf, send, other } = tasks();
    for (let sent = 0; sent < 64; sent++) await finish(other, (await send(T1)).lease, 'complete');
    expect(await noteOf(T1)).toBeUndefined();
    expect(await noteOf(T2)).toBeDefined();
  });

  it('is a step where the store takes almost two seconds to say so', async () => {
    const { noteOf, store, time } = tasks();
    const { notes } = store;
    const claim = notes.claim.bind(notes);
    notes.claim = async (...asked) => {
      await new Promise<void>((resolve) => time.after(1900, resolve));
      return claim(...asked);
    };
    expect(await noteOf(T1)).toBeDefined();
  });

  it('is no step while the store is away', async () => {
    const { noteOf, store } = tasks();
    store.notes.claim = () => Promise.reject(new Error('away'));
    expect(await noteOf(T1)).toBeUndefined();
  });
});

const TASK = { owner: OWNER, task: 'T23' };

describe('a request of a task that has no new steps', () => {
  const refusals = [
    ['paused', 'task_paused'],
    ['completed', 'task_ended'],
    ['cancelled', 'task_ended'],
  ] as const;
  const set = (states: TaskStates, status: 'paused' | TaskEnd) =>
    status === 'paused' ? states.pause(TASK) : states.end(TASK, status);

  it.each(refusals)('is refused where it would be a new step: the task is %s', async (status, code) => {
    const { noteOf, send, other, states } = tasks();
    const { lease } = await send(T1);
    await finish(other, lease, 'complete');
    await set(states, status);
    await expect(noteOf(T1)).rejects.toMatchObject({ code });
    await expect(noteOf(T2, { digest: 'another' })).rejects.toMatchObject({ code });
  });

  it.each(refusals)('is answered where its step was: the task is %s', async (status) => {
    const { noteOf, send, other, states } = tasks();
    const { note, lease } = await send(T1);
    await finish(other, lease, 'complete');
    await set(states, status);
    expect(await noteOf(T2)).toEqual(note);
  });

  it('is answered where its step is under way', async () => {
    const { noteOf, send, states } = tasks();
    const { note } = await send(T1);
    await states.pause(TASK);
    expect(await noteOf(T2)).toEqual(note);
  });

  it('is refused where its step was cut, and continued once the task is resumed', async () => {
    const { noteOf, send, other, states } = tasks();
    const { note, lease } = await send(T1);
    await finish(other, lease, 'recovered_from_partial');
    await states.pause(TASK);
    await expect(noteOf(T2)).rejects.toMatchObject({ code: 'task_paused' });
    await states.resume(TASK);
    expect(await noteOf(T2)).toEqual(note);
  });

  it('is the step that it was when it was refused', async () => {
    const { noteOf, states, send } = tasks();
    await states.pause(TASK);
    await expect(noteOf(T1)).rejects.toMatchObject({ code: 'task_paused' });
    await states.resume(TASK);
    const { note } = await send(T1);
    expect(note.name).toBe(JSON.stringify(['T23', tasks().ask().digest, 0]));
  });

  it('may be tried as often as its client likes, and is refused at once each time', async () => {
    const { noteOf, states, time } = tasks();
    await states.pause(TASK);
    for (let attempt = 0; attempt < 5; attempt++)
      await expect(noteOf(T1)).rejects.toMatchObject({ code: 'task_paused' });
    expect(time.now()).toBe(0);
  });

  it('is another matter for other tasks and owners', async () => {
    const { noteOf, states } = tasks();
    await states.pause(TASK);
    expect(await noteOf({ task: 'T24' })).toBeDefined();
    expect(await noteOf({ task: 'T23' }, { owner: STRANGER })).toBeDefined();
  });

  it('is answered while the store does not say so', async () => {
    const { noteOf, states, store } = tasks();
    await states.pause(TASK);
    store.notes.get = () => new Promise(() => {});
    expect(await noteOf({ task: 'T23' })).toBeDefined();
  });
});

describe('a request of a task with a deadline', () => {
  const within: TaskSession = { ...T1, terms: { deadline_ms: 1000 } };

  it('is refused once that has passed, unless its step was answered', async () => {
    const { noteOf, send, other, time } = tasks();
    const { note, lease } = await send(within);
    await finish(other, lease, 'complete');
    time.skip(999);
    expect(await noteOf(within, { digest: 'another' })).toBeDefined();
    time.skip(1);
    const passed = { code: 'task_deadline_passed' };
    await expect(noteOf(within, { digest: 'a third' })).rejects.toMatchObject(passed);
    // The deadline of the first request counts, whatever later ones say.
    const later: TaskSession = { ...T2, terms: { deadline_ms: 5000 } };
    await expect(noteOf(later, { digest: 'a third' })).rejects.toMatchObject(passed);
    await expect(noteOf(T2, { digest: 'a third' })).rejects.toMatchObject(passed);
    expect(await noteOf(later)).toEqual(note);
  });

  it('is answered again once a later one was put', async () => {
    const { noteOf, terms, time } = tasks();
    await noteOf(within);
    time.skip(1000);
    await terms.put(TASK, { deadline_at_ms: time.wall() + 1000 });
    expect(await noteOf(within, { digest: 'another' })).toBeDefined();
  });
});

describe('a request of a task with a budget', () => {
  /** Every answer says `Hello`, which is estimated at two tokens. */
  const within = (budget_tokens: number): TaskSession => ({ ...T1, terms: { budget_tokens } });

  async function answeredOnce(budget_tokens: number) {
    const setting = tasks();
    const { note, lease } = await setting.send(within(budget_tokens));
    await setting.records.numberOf({ ...TASK, era: '' }, note, true);
    await finish(setting.other, lease, 'complete');
    return { ...setting, note };
  }

  it('is refused once that is spent, unless its step was answered', async () => {
    const { noteOf, note } = await answeredOnce(2);
    await expect(noteOf(T1, { digest: 'another' })).rejects.toMatchObject({
      code: 'task_budget_spent',
      message: expect.stringContaining('2 of its 2 tokens'),
    });
    expect(await noteOf(T2)).toEqual(note);
  });

  it('is answered while some of it is left, and once a larger one was put', async () => {
    const { noteOf, terms } = await answeredOnce(3);
    expect(await noteOf(T1, { digest: 'another' })).toBeDefined();
    await terms.put(TASK, { budget_tokens: 2 });
    await expect(noteOf(T1, { digest: 'a third' })).rejects.toMatchObject({ code: 'task_budget_spent' });
    await terms.put(TASK, {});
    expect(await noteOf(T1, { digest: 'a third' })).toBeDefined();
  });

  it('is answered where the store does not say what was spent', async () => {
    const { noteOf, store } = await answeredOnce(2);
    const { get } = store.notes;
    store.notes.get = async (owner, key) => {
      if (key.kind === 'task_usage' || key.kind === 'task_step') throw new Error('away');
      return get.call(store.notes, owner, key);
    };
    expect(await noteOf(T1, { digest: 'another' })).toBeDefined();
  });
});

it('a session that is forgotten has had no answers of those that were begun for another one', async () => {
  const { noteOf, send, other, steps } = tasks();
  const { note, lease } = await send(T1);
  await finish(other, lease, 'complete');
  expect(await noteOf(T2)).toEqual(note);
  await steps.forgetSession(TASK, 'second process', { number: 1, name: note.name });
  expect(await noteOf(T2)).toEqual(note);
});
