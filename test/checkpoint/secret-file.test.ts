import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadOrCreateSecret } from '../../src/checkpoint/secret-file.ts';
import { StoreConfigurationError } from '../../src/checkpoint/store.ts';
import { temporaryDirectory } from './fixtures.ts';

test('a secret is made once, for this user only, and found again', async () => {
  const dir = join(temporaryDirectory(), 'data');
  const secret = await loadOrCreateSecret(dir);
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(statSync(join(dir, 'secret')).mode & 0o777).toBe(0o600);
  expect(await loadOrCreateSecret(dir)).toBe(secret);
});

test('processes that start together agree on one secret', async () => {
  const dir = temporaryDirectory();
  const secrets = await Promise.all(Array.from({ length: 20 }, () => loadOrCreateSecret(dir)));
  expect(new Set(secrets).size).toBe(1);
  expect(readdirSync(dir)).toEqual(['secret']);
});

test.each(['', 'short\n'])('a file that says %j is no secret', async (content) => {
  const dir = temporaryDirectory();
  writeFileSync(join(dir, 'secret'), content);
  const loaded = loadOrCreateSecret(dir);
  await expect(loaded).rejects.toBeInstanceOf(StoreConfigurationError);
  await expect(loaded).rejects.toThrow(/secret is shorter than 32 characters; remove it/);
});

test('a directory that cannot be made is named, with a remedy', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  await expect(loadOrCreateSecret(join(file, 'data'))).rejects.toThrow(
    /file\/data\/secret cannot be used .*configure `secret`/,
  );
});
