import { expect, it } from 'vitest';
import { TaskDivergences } from '../../../src/proxy/tasks/task-divergence.ts';
import { TaskRecords } from '../../../src/proxy/tasks/task-records.ts';
import { OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { lookupOf } from '../resume/lookup-setting.ts';

const TASK = { owner: OWNER, task: 'T23', era: '' };
const DIVERGENCE = { session: 'second', step: 3, by_step: 6, changed: ['messages[4]'], at_ms: 1 };

function replica() {
  const { context, store } = lookupOf();
  const note = (value: string) =>
    store.notes.put(OWNER, { kind: 'task_divergence', name: '["T23",""]' }, value, 1000);
  return { divergences: new TaskDivergences(context, new TaskRecords(context, [])), note };
}

it('is known of a task until it is forgotten, to its owner and in its era', async () => {
  const { divergences, note } = replica();
  expect(await divergences.of(TASK)).toBeUndefined();
  await note(JSON.stringify(DIVERGENCE));
  expect(await divergences.of(TASK)).toEqual(DIVERGENCE);
  expect(await divergences.of({ ...TASK, owner: STRANGER })).toBeUndefined();
  expect(await divergences.of({ ...TASK, era: 'another' })).toBeUndefined();
  await divergences.forget(TASK);
  expect(await divergences.of(TASK)).toBeUndefined();
});

it('is none where a strange hand has written what is no divergence', async () => {
  const { divergences, note } = replica();
  const broken = [{ step: '3' }, { by_step: 0.5 }, { changed: 'all' }, { changed: [1] }, { session: null }];
  for (const value of ['', '[]', 'null', '{', ...broken.map((part) => ({ ...DIVERGENCE, ...part }))]) {
    await note(typeof value === 'string' ? value : JSON.stringify(value));
    expect(await divergences.of(TASK)).toBeUndefined();
  }
});
