import { expect, test } from 'vitest';
import { inTime, systemTime } from '../../src/lib/time.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';

const LIMIT_MS = 250;

test('gives what comes in time', async () => {
  expect(await inTime(Promise.resolve('kept'), new VirtualTime(), LIMIT_MS)).toBe('kept');
});

test('passes on the failure that comes in time', async () => {
  await expect(inTime(Promise.reject(new Error('refused')), new VirtualTime(), LIMIT_MS)).rejects.toThrow(
    'refused',
  );
});

test('gives nothing when nothing comes, and is not disturbed by what comes later', async () => {
  const time = new VirtualTime();
  const work = Promise.withResolvers<string>();
  expect(await time.drive(inTime(work.promise, time, LIMIT_MS))).toBeUndefined();
  expect(time.now()).toBeCloseTo(LIMIT_MS);
  work.reject(new Error('too late'));
  await Promise.resolve();
});

test('does not take this process, when it was busy, for a slow store', async () => {
  const work = new Promise<string>((resolve) => setImmediate(() => resolve('answered long ago')));
  const waiting = inTime(work, systemTime, LIMIT_MS);
  const until_ms = performance.now() + 2 * LIMIT_MS;
  while (performance.now() < until_ms);
  expect(await waiting).toBe('answered long ago');
});
