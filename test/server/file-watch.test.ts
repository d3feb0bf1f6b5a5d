import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FileWatch } from '../../src/server/file-watch.ts';
import { temporaryDirectory } from '../cli-process.ts';

/** A watch, and the next change that it reports. */
function watched(path: string) {
  const watch = new FileWatch(path);
  let waiting = Promise.withResolvers<void>();
  let changes = 0;
  const start = () =>
    watch.start({
      onChange: () => {
        changes++;
        waiting.resolve();
        waiting = Promise.withResolvers();
      },
      onFault: (error) => waiting.reject(error),
    });
  onTestFinished(() => watch.close());
  return { start, next: () => waiting.promise, count: () => changes };
}

function fileIn(directory: string, text = 'one'): string {
  const path = join(directory, 'holdfast.yaml');
  writeFileSync(path, text);
  return path;
}

describe.concurrent('FileWatch', () => {
  it('notices a file that is written in its place', async () => {
    const path = fileIn(temporaryDirectory());
    const { start, next } = watched(path);
    start();
    writeFileSync(path, 'two');
    await next();
  });

  it('notices another file that is renamed to it, time and again', async () => {
    const path = fileIn(temporaryDirectory());
    const { start, next } = watched(path);
    start();
    for (const text of ['two', 'three']) {
      const changed = next();
      writeFileSync(`${path}~`, text);
      renameSync(`${path}~`, path);
      await changed;
    }
  });

  it('notices that Kubernetes has changed where a link beside it leads, time and again', async () => {
    const mount = temporaryDirectory();
    const put = (version: string) => {
      mkdirSync(join(mount, `..${version}`));
      writeFileSync(join(mount, `..${version}`, 'holdfast.yaml'), version);
      symlinkSync(`..${version}`, join(mount, '..data_tmp'));
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    };
    put('one');
    symlinkSync('..data/holdfast.yaml', join(mount, 'holdfast.yaml'));
    const { start, next } = watched(join(mount, 'holdfast.yaml'));
    start();
    for (const [before, version] of [
      ['one', 'two'],
      ['two', 'three'],
    ] as const) {
      const changed = next();
      put(version);
      rmSync(join(mount, `..${before}`), { recursive: true });
      await changed;
    }
  });

  it('notices a change in the directory that a link leads to', async () => {
    const target = fileIn(temporaryDirectory());
    const link = join(temporaryDirectory(), 'holdfast.yaml');
    symlinkSync(target, link);
    const { start, next } = watched(link);
    start();
    writeFileSync(target, 'two');
    await next();
  });

  it('reports a file that was removed, and one change for many writes', async () => {
    const path = fileIn(temporaryDirectory());
    const { start, next, count } = watched(path);
    start();
    const removed = next();
    rmSync(path);
    await removed;
    const back = next();
    for (const text of ['a', 'ab', 'abc']) writeFileSync(path, text);
    await back;
    expect(count()).toBe(2);
  });

  it('reports what has changed before it was started', async () => {
    const path = fileIn(temporaryDirectory());
    const { start, next } = watched(path);
    writeFileSync(path, 'two');
    const changed = next();
    start();
    await changed;
  });
});
