import { expect, test } from 'vitest';
import { PauseWatch } from '../../src/lib/pause-watch.ts';
import { sleep } from '../../src/lib/time.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';

const PAUSE_MS = 900;
const NEVER = Number.NEGATIVE_INFINITY;

function setUp() {
  const time = new VirtualTime();
  const watch = new PauseWatch(time, PAUSE_MS);
  const pass = (delay_ms: number) => time.drive(sleep(time, delay_ms, new AbortController().signal));
  return { time, watch, pass };
}

test('time that passes as it should is no pause, however long nothing happens', async () => {
  const { time, watch, pass } = setUp();
  watch.enter();
  await pass(60_000);
  expect(watch.resumedAt(time.now())).toBe(NEVER);
});

test('a pause is noticed by the first look at the clock after it, before any timer has fired', () => {
  const { time, watch } = setUp();
  watch.enter();
  time.skip(PAUSE_MS);
  expect(watch.resumedAt(time.now())).toBe(PAUSE_MS);
});

test('a pause is noticed by the timer that fires late, too, and remembered', async () => {
  const { time, watch, pass } = setUp();
  watch.enter();
  await pass(1_000);
  time.skip(PAUSE_MS);
  const resumed_ms = time.now();
  await pass(10_000);
  expect(watch.resumedAt(time.now())).toBe(resumed_ms);
});

test('a process that is busy for less than that was not stopped', async () => {
  const { time, watch, pass } = setUp();
  watch.enter();
  for (let stall = 0; stall < 20; stall++) {
    time.skip(PAUSE_MS / 2);
    await pass(PAUSE_MS / 3);
  }
  expect(watch.resumedAt(time.now())).toBe(NEVER);
});

test('the clock is looked at as long as a run needs it, and the time in between is no pause', async () => {
  const { time, watch, pass } = setUp();
  watch.enter();
  watch.enter();
  watch.leave();
  time.skip(PAUSE_MS);
  expect(watch.resumedAt(time.now())).toBe(PAUSE_MS);
  watch.leave();
  await expect(time.drive(new Promise(() => {}))).rejects.toThrow('everything waits');
  time.skip(60_000);
  watch.enter();
  await pass(60_000);
  expect(watch.resumedAt(time.now())).toBe(PAUSE_MS);
});
