import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileStoreDirectory, openStore } from '../../src/checkpoint/open-store.ts';
import { StoreConfigurationError } from '../../src/checkpoint/store.ts';
import { systemTime } from '../../src/time.ts';
import { temporaryDirectory } from './fixtures.ts';

const OPTIONS = { time: systemTime, ttl_s: 60, onError: () => {} };

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

test.each([
  ['file:./data', join(process.cwd(), 'data')],
  ['file:/var/lib/holdfast', '/var/lib/holdfast'],
  ['file:///var/lib/holdfast', '/var/lib/holdfast'],
  ['memory', undefined],
  ['file:', undefined],
])('the directory of %s is %s', (url, dir) => {
  expect(fileStoreDirectory(url)).toBe(dir);
});

test.each(['', 'file:', 'disk', 'redis:/localhost', 'memory:'])(
  '%j is refused with a remedy',
  async (url) => {
    const opened = openStore(url, OPTIONS);
    await expect(opened).rejects.toBeInstanceOf(StoreConfigurationError);
    await expect(opened).rejects.toThrow(
      /^checkpoint\.store: ".*" is not a store; use "memory" or "file:<directory>"$/,
    );
  },
);
