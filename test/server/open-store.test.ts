import { existsSync, mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { segmentName } from '../../src/checkpoint/file/names.ts';
import { StoreConfigurationError } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/lib/time.ts';
import { type OpenStoreOptions, openStore } from '../../src/server/open-store.ts';
import { HEADER_RECORD, newRunId, OWNER, temporaryDirectory } from '../checkpoint/fixtures.ts';

const OPTIONS: OpenStoreOptions = {
  time: systemTime,
  ttl_s: 60,
  lease_ms: 3000,
  sealing_keys: [],
  secret: 'the secret of a deployment',
  on_unreachable: 'fail',
  onError: () => {},
  onOutage: () => {},
  onRecovery: () => {},
};

test('`memory` opens a store in memory', async () => {
  expect((await openStore('memory', OPTIONS)).name).toBe('memory');
});

test('`file:` opens a store in a directory, relative to the working directory', async () => {
  const dir = join(temporaryDirectory(), 'data');
  const store = await openStore(`file:${relative(process.cwd(), dir)}`, OPTIONS);
  onTestFinished(() => store.close());
  expect(store.name).toBe('file');
  expect(existsSync(dir)).toBe(true);
});

test('a directory whose log cannot be read is refused before anything is served', async () => {
  const dir = temporaryDirectory();
  mkdirSync(join(dir, segmentName(1)));
  await expect(openStore(`file:${dir}`, OPTIONS)).rejects.toThrow(StoreConfigurationError);
});

test('what is sealed is opened with any of the keys, and not without', async () => {
  const url = `file:${temporaryDirectory()}`;
  const [old, fresh] = ['o'.repeat(32), 'f'.repeat(32)];
  const run = newRunId();
  const first = await openStore(url, { ...OPTIONS, sealing_keys: [old] });
  await first.append(await first.acquire(run, OWNER), [HEADER_RECORD]);
  await first.close();
  const readWith = async (sealing_keys: readonly string[]) => {
    const store = await openStore(url, { ...OPTIONS, sealing_keys });
    onTestFinished(() => store.close());
    return (await store.read(run, OWNER, 0))?.records;
  };
  expect(await readWith([fresh, old])).toEqual([HEADER_RECORD]);
  expect(await readWith([fresh])).toBeUndefined();
  expect(await readWith([])).toBeUndefined();
});

test.each(['', 'file:', 'disk', 'redis:/localhost', 'memory:', 'https://me:hunter2@redis'])(
  '%j is refused with a remedy, and without its password',
  async (url) => {
    const opened = openStore(url, OPTIONS);
    await expect(opened).rejects.toBeInstanceOf(StoreConfigurationError);
    await expect(opened).rejects.toThrow(
      /^checkpoint\.store: ".*" is not a store; use "memory", "file", "file:<directory>" or "redis:\/\/<host>"$/,
    );
    await expect(opened).rejects.not.toThrow(/hunter2/);
  },
);

test('a URL of Redis that is not well formed is refused with a remedy', async () => {
  const opened = openStore('redis://redis/main', OPTIONS);
  await expect(opened).rejects.toBeInstanceOf(StoreConfigurationError);
  await expect(opened).rejects.toThrow('checkpoint.store: "main" is not the number of a database');
});
