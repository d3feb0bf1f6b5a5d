import type { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { connect, receivedUntil } from '../../http-peer.ts';
import { type Replica, ReplicaStore } from '../../replica.ts';
import { CREDENTIAL, errorOf, OWNER, STRANGER } from '../run-deployment.ts';
import { type EventReader, type TaskEvent, watchTask } from './event-reader.ts';
import { answerSteps, askStep, askTasks, deployTasks } from './task-deployment.ts';

/** Tasks are recorded only after their answer. */
const noted = (replica: Replica) =>
  vi.waitFor(async () => expect((await askTasks(replica, 'GET', '/T23')).status).toBe(200));

/** An event in short form. */
const said = ({ name, data }: TaskEvent): string => {
  if (name === 'task') return `task ${data.purged === true ? 'purged' : String(data.status)}`;
  if (name === 'call') return `call ${String(data.key)} ${String(data.state)}`;
  const { number, run } = data as { number: number; run: { status: string } | null };
  return `step ${number} ${run?.status ?? 'asked'}`;
};

/** Leaves out what depends on timing: whether an answer is seen before its run has begun, or before it's complete. */
const settled = ({ events }: Pick<EventReader, 'events'>) =>
  events.map(said).filter((each) => !/asked|running$/.test(each) || each === 'task running');

const saying = (reader: EventReader, ...last: string[]) =>
  vi.waitFor(() => expect(reader.events.map(said)).toEqual(expect.arrayContaining(last)), { timeout: 5000 });

const post = async (replica: Replica, path: string, body?: unknown) =>
  expect((await askTasks(replica, 'POST', `/T23${path}`, body)).status).toBe(200);

/** A client that requests the events but reads none. */
async function takeNothing({ api }: Replica): Promise<Socket> {
  const socket = await connect(api);
  socket.pause();
  const { authorization } = CREDENTIAL;
  socket.write(
    `GET /holdfast/v1/tasks/T23/events HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`,
  );
  return socket;
}

describe('the events of a task', () => {
  it('tell at one replica what the other one answers, until the task ends', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 2);
    await noted(replica);
    const reader = await watchTask(other);
    await saying(reader, 'step 2 complete');
    await answerSteps(replica, 3);
    await saying(reader, 'step 3 complete');
    await post(replica, '/calls/c1/claim', { claim: 'first' });
    await saying(reader, 'call c1 claimed');
    await post(replica, '/calls/c1/release', { claim: 'first' });
    await saying(reader, 'call c1 released');
    await post(replica, '/calls/c1/claim', { claim: 'second' });
    await vi.waitFor(() => expect(reader.events.map(said).at(-1)).toBe('call c1 claimed'));
    await askTasks(replica, 'PUT', '/T23/calls/c1/result', { claim: 'second', result: 'a secret' });
    await saying(reader, 'call c1 done');
    await post(replica, '/pause', { reason: 'lunch' });
    await saying(reader, 'task paused');
    await post(replica, '/resume');
    await post(replica, '/complete');
    expect(await reader.ended).toBe(true);
    expect(settled(reader).filter((each) => each !== 'task running')).toEqual([
      'step 1 complete',
      'step 2 complete',
      'step 3 complete',
      'call c1 claimed',
      'call c1 released',
      'call c1 claimed',
      'call c1 done',
      'task paused',
      'task completed',
    ]);
    expect(said(reader.events[0] as TaskEvent)).toBe('task running');
    const text = JSON.stringify(reader.events);
    expect([text.includes('a secret'), text.includes('kelp')]).toEqual([false, false]);
  });

  it('tell that an answer was interrupted and continued', async () => {
    const { replica, other, provider } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica);
    const reader = await watchTask(other);
    provider.manner = 'breaks';
    expect(await (await askStep(replica, 2)).text()).toContain('[DONE]');
    await saying(reader, 'step 2 complete');
    expect(reader.events.findLast(({ name }) => name === 'step')?.data).toMatchObject({
      number: 2,
      run: { status: 'complete' },
      recoveries: [{ attempt: 2, plan: 'R1', cause: 'connection_reset', upstream: 'provider' }],
    });
  });

  it('tell that another run continues a step that was cut, and wait for its end after that of the task', async () => {
    const { replica, other, provider } = await deployTasks();
    provider.manner = 'begins';
    const cut = await askStep(replica, 1);
    await noted(replica);
    const reader = await watchTask(other);
    await saying(reader, 'step 1 running');
    await cut.body?.cancel();
    await vi.waitFor(() => expect(reader.events.map(said).at(-1)).not.toMatch(/running$/));
    const rest = await askStep(other, 1);
    const run = rest.headers.get('holdfast-run-id');
    const isContinued = ({ data }: TaskEvent) => (data.run as { id?: string } | null)?.id === run;
    await vi.waitFor(() => expect(reader.events.some(isContinued)).toBe(true));
    await post(replica, '/complete');
    await saying(reader, 'task completed');
    provider.manner = 'word';
    provider.finish();
    expect(await rest.text()).toContain('[DONE]');
    expect(await reader.ended).toBe(true);
    expect(said(reader.events.at(-1) as TaskEvent)).toBe('step 1 complete');
  });

  it('resume after any of them at any replica, and neither lose nor repeat one', async () => {
    const { replica, other, provider } = await deployTasks();
    await answerSteps(replica, 9);
    provider.manner = 'refuses';
    await (await askStep(replica, 10)).text();
    provider.manner = 'word';
    await noted(replica);
    for (const key of ['c1', 'c2', 'c3']) await post(replica, `/calls/${key}/claim`, { claim: key });
    await askTasks(replica, 'PUT', '/T23/calls/c2/result', { claim: 'c2' });
    const whole = await watchTask(replica);
    await saying(whole, 'call c3 claimed', 'task failed');
    const all = whole.events.map(said);
    expect(new Set(all).size).toBe(all.length);
    for (const [index, { id }] of whole.events.entries()) {
      const how = index % 2 === 0 ? { last: id } : { query: `?after=${id}` };
      const rest = await watchTask(index % 3 === 0 ? other : replica, how);
      await vi.waitFor(() => expect(rest.events.map(said)).toEqual(all.slice(index + 1)));
      rest.leave();
    }
    const late = await watchTask(other, { last: whole.events.at(-1)?.id });
    await askTasks(replica, 'PUT', '/T23/calls/c1/result', { claim: 'c1' });
    await answerSteps(replica, 10);
    await saying(late, 'call c1 done', 'step 10 complete', 'task running');
    expect(settled(late)).toHaveLength(3);
  });

  it('end when the task is deleted, and begin anew for the next one of its name', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 2);
    await noted(replica);
    const reader = await watchTask(other);
    await saying(reader, 'step 2 complete');
    expect((await askTasks(replica, 'DELETE', '/T23')).status).toBe(200);
    expect(await reader.ended).toBe(true);
    expect(reader.events.map(said).some((each) => /^task (purged|cancelled)$/.test(each))).toBe(true);
    await answerSteps(replica, 1);
    await noted(other);
    const again = await watchTask(other, { last: reader.events.at(-1)?.id });
    await saying(again, 'task running', 'step 1 complete');
  });

  it('break off when the replica drains, and leave nothing under way', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica);
    const reader = await watchTask(replica);
    await saying(reader, 'step 1 complete');
    await replica.server.drain();
    expect(await reader.ended).toBe(false);
    const elsewhere = await watchTask(other, { last: reader.events.at(-1)?.id });
    await post(other, '/complete');
    expect(await elsewhere.ended).toBe(true);
    expect(elsewhere.events.map(said)).toEqual(['task completed']);
  });

  it('cost an idle task of many steps four reads a look', async () => {
    const { replica, other } = await deployTasks();
    await answerSteps(replica, 30);
    await noted(replica);
    await post(replica, '/calls/c1/claim', { claim: 'first' });
    await askTasks(replica, 'PUT', '/T23/calls/c1/result', { claim: 'first' });
    const reader = await watchTask(other);
    await saying(reader, 'step 30 complete', 'call c1 done');
    const kinds: string[] = [];
    const { notes } = other.store;
    const get = notes.get.bind(notes);
    notes.get = (owner, key) => {
      kinds.push(key.kind);
      return get(owner, key);
    };
    const runs = vi.spyOn(other.store, 'read');
    await vi.waitFor(() => expect(kinds.length).toBeGreaterThan(12), { timeout: 10_000 });
    expect(new Set(kinds)).toEqual(new Set(['task_state', 'task_step', 'task_call', 'session_of_task']));
    const looks = kinds.filter((kind) => kind === 'task_state').length;
    expect(kinds.length).toBeLessThanOrEqual(4 * looks + 4);
    expect(runs).not.toHaveBeenCalled();
  });

  it('wait for a client that takes nothing, which gets all of them afterwards, and is not waited for by a drain', async () => {
    const { replica, runs } = await deployTasks({ limits: { drain_ms: 120_000 } });
    await answerSteps(replica, 1);
    await noted(replica);
    // More than the buffers of a connection hold: 16 MB.
    const calls = 4000;
    const keys = Array.from({ length: calls }, (_, index) => `${index + 1}${'c'.repeat(4000)}`);
    const { notes } = new ReplicaStore(runs);
    for (const [index, key] of keys.entries()) {
      await notes.put(OWNER, { kind: 'task_call', name: JSON.stringify(['T23', index + 1]) }, key, 60_000);
      await notes.put(OWNER, { kind: 'call_result', name: JSON.stringify(['T23', key]) }, '{}', 60_000);
    }
    const slow = await takeNothing(replica);
    const read = vi.spyOn(replica.store.notes, 'get');
    const quick = await watchTask(replica);
    const called = ({ events }: EventReader) => events.filter(({ name }) => name === 'call').length;
    await vi.waitFor(() => expect(called(quick)).toBe(calls), { timeout: 20_000 });
    const looked = read.mock.calls.filter(([, { kind }]) => kind === 'call_result').length;
    expect(looked).toBeLessThan(2 * calls);
    await takeNothing(replica);
    const text = receivedUntil(slow, `"${keys.at(-1)}","state":"done"}\n`);
    slow.resume();
    expect((await text).match(/event: call\n/g)).toHaveLength(calls);
    await replica.server.drain();
  }, 60_000);

  it('count among the runs of their owner', async () => {
    const { replica } = await deployTasks({ limits: { runs_per_owner: 1 } });
    await answerSteps(replica, 1);
    await noted(replica);
    const reader = await watchTask(replica);
    const refused = await askTasks(replica, 'GET', '/T23/events');
    expect(await errorOf(refused)).toMatchObject({ status: 429, code: 'too_many_runs' });
    reader.leave();
    await vi.waitFor(async () => {
      const again = await watchTask(replica);
      await saying(again, 'step 1 complete');
    });
  });

  it('are refused to another credential, to none, and after an id that is none', async () => {
    const { replica } = await deployTasks();
    await answerSteps(replica, 1);
    await noted(replica);
    const ask = (query: string, headers: Record<string, string> = CREDENTIAL) =>
      askTasks(replica, 'GET', `/T23/events${query}`, undefined, headers);
    expect(await errorOf(await ask('', STRANGER))).toMatchObject({ status: 404, code: 'task_not_found' });
    expect(await errorOf(await ask('', {}))).toMatchObject({ status: 400, param: 'Authorization' });
    expect(await errorOf(await ask('?after=x'))).toMatchObject({ status: 400, param: 'after' });
    const last = await ask('', { ...CREDENTIAL, 'last-event-id': 'W10' });
    expect(await errorOf(last)).toMatchObject({ status: 400, param: 'Last-Event-ID' });
  });
});
