import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { segmentName } from '../../src/checkpoint/file/names.ts';
import { fileStoreDirectory, stateDirectory } from '../../src/server/store-directory.ts';
import { temporaryDirectory } from '../checkpoint/fixtures.ts';

/** Makes this process appear to run in a new directory, and returns that. */
function inDirectory(): string {
  const directory = temporaryDirectory();
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(directory);
  onTestFinished(() => cwd.mockRestore());
  return directory;
}

describe('the directory of the store', () => {
  test.each([
    ['file:./data', join(process.cwd(), 'data')],
    ['file:/var/lib/holdfast', '/var/lib/holdfast'],
    ['file:///var/lib/holdfast', '/var/lib/holdfast'],
    ['memory', undefined],
    ['file:', undefined],
  ])('%s is %s', (store, directory) => {
    expect(fileStoreDirectory(store)).toBe(directory);
  });

  test('file is the state directory', () => {
    expect(fileStoreDirectory('file')).toBe(stateDirectory(process.env));
  });
});

describe('the state directory', () => {
  test.each([
    [{ HOME: '/home/ann' }, '/home/ann/.local/state/holdfast'],
    [{ HOME: '/home/ann', XDG_STATE_HOME: '/var/state' }, '/var/state/holdfast'],
    [{ HOME: '/home/ann', XDG_STATE_HOME: 'state' }, '/home/ann/.local/state/holdfast'],
    [{ HOME: '/home/ann', XDG_STATE_HOME: '', STATE_DIRECTORY: '' }, '/home/ann/.local/state/holdfast'],
    [{ XDG_STATE_HOME: '/var/state', STATE_DIRECTORY: '/var/lib/holdfast' }, '/var/lib/holdfast'],
    [{ STATE_DIRECTORY: '/var/lib/holdfast:/var/lib/more' }, '/var/lib/holdfast'],
    [{}, join(homedir(), '.local/state/holdfast')],
  ])('with %j is %s', (environment, directory) => {
    inDirectory();
    expect(stateDirectory(environment)).toBe(directory);
  });

  test.each([{ HOME: '' }, { HOME: '/' }, { HOME: 'relative' }])(
    'of a user with %j is ./data',
    (environment) => {
      const directory = inDirectory();
      expect(stateDirectory(environment)).toBe(join(directory, 'data'));
    },
  );

  test('is ./data as long as that holds a store of an earlier version', () => {
    const directory = inDirectory();
    const data = join(directory, 'data');
    const [service, user] = [{ STATE_DIRECTORY: '/var/lib/holdfast' }, { XDG_STATE_HOME: '/var/state' }];
    mkdirSync(data);
    writeFileSync(join(data, 'secret'), 'of something else');
    expect(stateDirectory(user)).toBe('/var/state/holdfast');
    writeFileSync(join(data, segmentName(1)), '');
    expect(stateDirectory(user)).toBe(data);
    expect(stateDirectory(service)).toBe('/var/lib/holdfast');
  });
});
