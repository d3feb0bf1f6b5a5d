import { expect, test, vi } from 'vitest';
import { KnownTasks } from '../../../src/proxy/resume/known-tasks.ts';
import { OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from './lookup-setting.ts';

function replica() {
  const { context, store, time } = lookupOf();
  const put = vi.spyOn(store.notes, 'put');
  const ttl_ms = context.configuration.checkpoint.ttl_s * 1000;
  return { tasks: new KnownTasks(context), put, time, ttl_ms, other: new KnownTasks(context) };
}

test('a task is known at every replica once it had an answer, to its owner alone', async () => {
  const { tasks, other } = replica();
  expect(await other.has(OWNER, 'T23')).toBe(false);
  tasks.answered(OWNER, 'T23');
  expect(await other.has(OWNER, 'T23')).toBe(true);
  expect(await other.has(OWNER, 'T24')).toBe(false);
  expect(await other.has(STRANGER, 'T23')).toBe(false);
});

test('a task is noted once in a while, and known for as long as its last step', async () => {
  const { tasks, put, time, ttl_ms } = replica();
  tasks.answered(OWNER, 'T23');
  time.skip(ttl_ms / 10 - 1);
  tasks.answered(OWNER, 'T23');
  expect(put).toHaveBeenCalledOnce();
  time.skip(ttl_ms);
  expect(await tasks.has(OWNER, 'T23')).toBe(true);
  tasks.answered(OWNER, 'T23');
  expect(put).toHaveBeenCalledTimes(2);
});

test('a task that could not be noted is noted with its next step', async () => {
  const { tasks, put } = replica();
  put.mockRejectedValueOnce(new Error('the store is down'));
  tasks.answered(OWNER, 'T23');
  await vi.waitFor(async () => {
    tasks.answered(OWNER, 'T23');
    expect(await tasks.has(OWNER, 'T23')).toBe(true);
  });
  expect(put).toHaveBeenCalledTimes(2);
});
