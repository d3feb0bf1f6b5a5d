import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Heartbeat } from '../../../src/checkpoint/file/heartbeat.ts';
import { temporaryDirectory } from '../fixtures.ts';

const LEASE_MS = 90;

function start(dir: string, errors: Error[] = []): { heartbeat: Heartbeat; path: string } {
  const onError = (error: Error) => errors.push(error);
  const heartbeat = new Heartbeat({ dir, replica: 'ab12', lease_ms: LEASE_MS, onError });
  onTestFinished(() => heartbeat.close());
  return { heartbeat, path: join(dir, 'replica-ab12.alive') };
}

const untilTouchedAfter = (path: string, at_ms: number): Promise<void> =>
  vi.waitFor(() => expect(statSync(path).mtimeMs).toBeGreaterThan(at_ms), { timeout: 5000, interval: 5 });

test('beats at once, and then at least three times per lease, until it is closed', async () => {
  const { heartbeat, path } = start(temporaryDirectory());
  expect(Date.now() - statSync(path).mtimeMs).toBeLessThan(LEASE_MS * 10);
  for (let beat = 0; beat < 3; beat++) await untilTouchedAfter(path, statSync(path).mtimeMs);
  await heartbeat.close();
  expect(existsSync(path)).toBe(false);
});

test('beats again when its file was swept while the process stood still', async () => {
  const { path } = start(temporaryDirectory());
  rmSync(path);
  await vi.waitFor(() => expect(existsSync(path)).toBe(true), { timeout: 5000, interval: 5 });
  utimesSync(path, 1, 1);
  await untilTouchedAfter(path, 1000);
});

test('reports once that it fails, and again when it fails another time', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const { path } = start(dir, errors);
  for (let failure = 1; failure <= 2; failure++) {
    rmSync(dir, { recursive: true });
    await vi.waitFor(() => expect(errors).toHaveLength(failure), { timeout: 5000, interval: 5 });
    await new Promise((resolve) => setTimeout(resolve, 2 * LEASE_MS));
    expect(errors).toHaveLength(failure);
    mkdirSync(dir);
    await vi.waitFor(() => expect(existsSync(path)).toBe(true), { timeout: 5000, interval: 5 });
  }
  expect(errors[0]).toMatchObject({ code: 'ENOENT' });
  expect(readdirSync(dir)).toEqual(['replica-ab12.alive']);
});
