import { expect, test } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, SMALL_RUN, storeRun, textRecord } from '../fixtures.ts';

const TTL_MS = 1000;

test('finished runs are dropped when their time is over, running ones never', async () => {
  const time = new VirtualTime();
  const store = new MemoryStore({ time, ttl_ms: TTL_MS });
  const [finished, running] = [newRunId(), newRunId()];
  await storeRun(store, finished, SMALL_RUN);
  const lease = await store.acquire(running, OWNER);
  await time.drive(new Promise<void>((resolve) => time.after(TTL_MS - 1, resolve)));
  expect(await store.read(finished, OWNER, 0)).not.toBeNull();
  await time.drive(new Promise<void>((resolve) => time.after(1, resolve)));
  expect(await store.read(finished, OWNER, 0)).toBeNull();
  expect(await store.append(lease, [HEADER_RECORD])).toBe(0);
});

test('complete runs are dropped earlier than others, where that is asked for', async () => {
  const time = new VirtualTime();
  const store = new MemoryStore({ time, ttl_ms: TTL_MS, complete_ttl_ms: TTL_MS / 2 });
  const [failed, complete] = [newRunId(), newRunId()];
  const lease = await store.acquire(failed, OWNER);
  await store.finish(lease, { status: 'failed', at_ms: 0 });
  await storeRun(store, complete, SMALL_RUN);
  await time.drive(new Promise<void>((resolve) => time.after(TTL_MS / 2, resolve)));
  expect(await store.read(complete, OWNER, 0)).toBeNull();
  expect(await store.read(failed, OWNER, 0)).not.toBeNull();
});

test('the oldest finished runs make room for new ones, and when none is left appends are refused', async () => {
  const store = new MemoryStore({ time: new VirtualTime(), ttl_ms: TTL_MS, runs: new MemoryRuns(2300) });
  const runs = [newRunId(), newRunId(), newRunId()];
  for (const run of runs) await storeRun(store, run, SMALL_RUN);
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, [HEADER_RECORD, textRecord(0, 'x'.repeat(1000))]);
  const left = await Promise.all(runs.map((run) => store.read(run, OWNER, 0)));
  expect(left.map((stored) => stored !== null)).toEqual([false, true, true]);
  await expect(store.append(lease, [textRecord(1, 'x'.repeat(2000))])).rejects.toThrow('full');
  expect(await store.append(lease, [textRecord(1, 'x'.repeat(500))])).toBe(2);
});

test('a store that was closed refuses everything but reading', async () => {
  const store = new MemoryStore({ time: new VirtualTime(), ttl_ms: TTL_MS });
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, SMALL_RUN);
  await store.close();
  for (const refused of [
    store.acquire(newRunId(), OWNER),
    store.append(lease, []),
    store.finish(lease, COMPLETE),
    store.release(lease),
    store.check(),
  ])
    await expect(refused).rejects.toThrow('the memory store is closed');
  expect(await store.read(lease.run, OWNER, 0)).toMatchObject({ holder: { state: 'lost' }, seq: 7 });
});
