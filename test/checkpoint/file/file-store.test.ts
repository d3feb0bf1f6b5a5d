import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { Lease, RunEnd, RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { StaleLeaseError, StoreConfigurationError } from '../../../src/checkpoint/store.ts';
import { caseShare } from '../../cases.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  SMALL_RUN,
  STRANGER,
  storeRun,
  temporaryDirectory,
  textOf,
  textRecord,
} from '../fixtures.ts';

const HOUR_MS = 3_600_000;
const LEASE_MS = 3000;
const FAILED: RunEnd = { status: 'failed', at_ms: 1 };

function openIn(dir: string, errors: Error[] = []): FileStore {
  const store = new FileStore({
    dir,
    fsync: 'never',
    ttl_ms: HOUR_MS,
    lease_ms: LEASE_MS,
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => store.close());
  return store;
}

const runFiles = (dir: string): string[] =>
  readdirSync(dir)
    .filter((name) => name.startsWith('run_'))
    .sort();

const readWhole = async (store: FileStore, run: RunId): Promise<StoredRun> => {
  const stored = await store.read(run, OWNER, 0);
  if (!stored) throw new Error('the run is unknown');
  return stored;
};

/** Several stores in one directory are to each other what several processes are: each has its own thread and memory. */
function openSeveral(count: number): FileStore[] {
  const dir = temporaryDirectory();
  return Array.from({ length: count }, () => openIn(dir));
}

describe('the files of a run', () => {
  test('are private, and renamed when the run is finished', async () => {
    const dir = join(temporaryDirectory(), 'made', 'on', 'demand');
    const store = openIn(dir);
    const lease = await store.acquire(newRunId(), OWNER);
    expect(readdirSync(dir)).toContain(`${lease.run}.partial`);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, `${lease.run}.partial`)).mode & 0o777).toBe(0o600);
    await store.finish(lease, COMPLETE);
    expect(runFiles(dir)).toEqual([`${lease.run}.run`]);
  });

  test('are read by another process as soon as an append resolves', async () => {
    const [writer, reader] = openSeveral(2) as [FileStore, FileStore];
    const lease = await writer.acquire(newRunId(), OWNER);
    for (const [position, record] of SMALL_RUN.entries()) {
      await writer.append(lease, [record]);
      expect((await readWhole(reader, lease.run)).records).toEqual(SMALL_RUN.slice(0, position + 1));
    }
  });

  test('are found again by the next process', async () => {
    const dir = temporaryDirectory();
    const first = new FileStore({
      dir,
      fsync: 'append',
      ttl_ms: HOUR_MS,
      lease_ms: LEASE_MS,
      onError: () => {},
    });
    const lease = await first.acquire(newRunId(), OWNER);
    await first.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    await first.close();
    const second = openIn(dir);
    const taken = await second.acquire(lease.run, OWNER, 1);
    expect(taken.epoch).toBe(2);
    expect(await second.append(taken, [textRecord(1, 'b')])).toBe(2);
    await second.finish(taken, COMPLETE);
    expect(textOf((await readWhole(second, lease.run)).records)).toBe('ab');
  });

  test('of a run that was taken over are read whole while they are put together', async () => {
    const [writer, reader] = openSeveral(2) as [FileStore, FileStore];
    for (let i = 0; i < 30; i++) {
      const first = await writer.acquire(newRunId(), OWNER);
      await writer.append(first, [HEADER_RECORD, textRecord(0, 'a')]);
      const second = await writer.acquire(first.run, OWNER, 1);
      await writer.append(second, [textRecord(1, 'b')]);
      let finished = false;
      const finishing = writer.finish(second, COMPLETE).then(() => {
        finished = true;
      });
      while (!finished) {
        const stored = await readWhole(reader, first.run);
        expect(textOf(stored.records)).toBe('ab');
        expect(stored).not.toHaveProperty('damage');
      }
      await finishing;
      expect((await readWhole(reader, first.run)).status).toBe('complete');
    }
  });

  test('under the name of another run have no owner', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    const other = newRunId();
    renameSync(join(dir, `${run}.run`), join(dir, `${other}.run`));
    expect(await store.read(other, OWNER, 0)).toBeNull();
  });
});

describe('fencing between processes', () => {
  test('refuses the older lease and never shows what it wrote afterwards', async () => {
    const [first, second, reader] = openSeveral(3) as [FileStore, FileStore, FileStore];
    const older = await first.acquire(newRunId(), OWNER);
    await first.append(older, [HEADER_RECORD, textRecord(0, 'a')]);
    const newer = await second.acquire(older.run, OWNER, 1);
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    await second.append(newer, [textRecord(1, 'b')]);
    expect(await readWhole(reader, older.run)).toMatchObject({ status: 'running', seq: 2 });
    await expect(first.finish(older, FAILED)).rejects.toBeInstanceOf(StaleLeaseError);
    await second.finish(newer, COMPLETE);
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    const stored = await readWhole(reader, older.run);
    expect(stored).toMatchObject({ status: 'complete', seq: 2 });
    expect(textOf(stored.records)).toBe('ab');
  });

  test('refuses a lease whose run was finished by its successor meanwhile', async () => {
    const [first, second] = openSeveral(2) as [FileStore, FileStore];
    const older = await first.acquire(newRunId(), OWNER);
    await first.append(older, [HEADER_RECORD, textRecord(0, 'a')]);
    const newer = await second.acquire(older.run, OWNER, 1);
    await second.finish(newer, { status: 'recovered_from_partial', at_ms: 2 });
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(first.finish(older, COMPLETE)).rejects.toBeInstanceOf(StaleLeaseError);
    expect(await readWhole(first, older.run)).toMatchObject({ status: 'recovered_from_partial', seq: 1 });
  });

  test('survives a claim whose holder died at once', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const lease = await store.acquire(newRunId(), OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    writeFileSync(join(dir, `${lease.run}.2.partial`), '');
    const claimed = await readWhole(store, lease.run);
    expect(claimed).toMatchObject({ status: 'running', seq: 1, epoch: 2, holder: { state: 'alive' } });
    expect(claimed).not.toHaveProperty('damage');
    const long_ago_s = Date.now() / 1000 - LEASE_MS;
    utimesSync(join(dir, `${lease.run}.2.partial`), long_ago_s, long_ago_s);
    expect(await readWhole(store, lease.run)).toMatchObject({ holder: { state: 'lost' } });
    expect(await store.orphans(10)).toEqual([{ run: lease.run, owner: OWNER, epoch: 2 }]);
    const taken = await store.acquire(lease.run, OWNER, 2);
    await store.append(taken, [textRecord(1, 'b')]);
    await store.finish(taken, COMPLETE);
    expect(textOf((await readWhole(store, lease.run)).records)).toBe('ab');
    expect(runFiles(dir)).toEqual([`${lease.run}.run`]);
  });

  test('completes a run whose last line was written but whose file was not yet renamed', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    renameSync(join(dir, `${run}.run`), join(dir, `${run}.partial`));
    expect(await readWhole(store, run)).toMatchObject({ status: 'complete', seq: 7 });
    await expect(store.acquire(run, STRANGER, 1)).rejects.toMatchObject({ reason: 'foreign' });
    expect(runFiles(dir)).toEqual([`${run}.partial`]);
    await expect(store.acquire(run, OWNER, 1)).rejects.toMatchObject({ reason: 'finished' });
    expect(runFiles(dir)).toEqual([`${run}.run`]);
  });

  test('keeps every acknowledged event through any race for a run', async () => {
    const stores = openSeveral(3);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(2), { minLength: 10, maxLength: 60 }), async (turns) => {
        const run = newRunId();
        const leases = [await stores[0]?.acquire(run, OWNER)];
        const acknowledged: string[] = [];
        // Every turn is begun at once, so that the claims and appends of the three overlap in every way.
        const work = turns.map(async (who, turn) => {
          const store = stores[who] as FileStore;
          const held = leases[who];
          if (!held || turn % 5 === 0) {
            const { epoch } = await readWhole(store, run);
            leases[who] = await store.acquire(run, OWNER, epoch);
            return;
          }
          const { seq } = await readWhole(store, run);
          const word = `<${turn}>`;
          const records = seq === 0 ? [HEADER_RECORD, textRecord(0, word)] : [textRecord(seq, word)];
          // A store that knows the event already skips it and says how far it is.
          if ((await store.append(held, records)) === seq + 1) acknowledged[seq] ??= word;
        });
        for (const result of await Promise.allSettled(work)) {
          if (result.status === 'rejected')
            expect(String(result.reason)).toMatch(/^(StaleLeaseError|JournalGapError|.*: taken$)/);
        }
        const { epoch } = await readWhole(stores[0] as FileStore, run);
        const last = (await stores[0]?.acquire(run, OWNER, epoch)) as Lease;
        await stores[0]?.finish(last, COMPLETE);
        const words = textOf((await readWhole(stores[1] as FileStore, run)).records).match(/<\d+>/g) ?? [];
        for (const [seq, word] of acknowledged.entries()) if (word) expect(words[seq]).toBe(word);
      }),
      { numRuns: caseShare(125) },
    );
  });
});

describe('many runs at once', () => {
  test('are stored in one directory, far more of them than files are kept open', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const leases = await Promise.all(Array.from({ length: 1200 }, () => store.acquire(newRunId(), OWNER)));
    for (let seq = 0; seq < 3; seq++) {
      const records = seq === 0 ? [HEADER_RECORD, textRecord(0, 'x')] : [textRecord(seq, 'x')];
      await Promise.all(leases.map((lease) => store.append(lease, records)));
    }
    expect(readdirSync('/proc/self/fd').length).toBeLessThan(1024 + 200);
    await Promise.all(leases.map((lease) => store.finish(lease, COMPLETE)));
    for (const { run } of leases.slice(0, 20))
      expect(textOf((await readWhole(store, run)).records)).toBe('xxx');
    expect(runFiles(dir)).toHaveLength(1200);
  });
});

describe('a directory that cannot be used', () => {
  test('is refused when the store is opened, with its name and a remedy', () => {
    const file = join(temporaryDirectory(), 'a-file');
    writeFileSync(file, '');
    const open = () => openIn(join(file, 'below'));
    expect(open).toThrow(StoreConfigurationError);
    expect(open).toThrow(
      /checkpoint\.store: the directory .*a-file\/below cannot be used .*configure another directory/,
    );
  });

  test('later makes the check fail and appends reject, and works again when it does', async () => {
    const dir = join(temporaryDirectory(), 'store');
    const store = openIn(dir);
    const lease = await store.acquire(newRunId(), OWNER);
    renameSync(dir, `${dir}-gone`);
    await expect(store.check()).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(store.acquire(newRunId(), OWNER)).rejects.toMatchObject({ code: 'ENOENT' });
    renameSync(`${dir}-gone`, dir);
    await expect(store.check()).resolves.toBeUndefined();
    expect(await store.append(lease, [HEADER_RECORD])).toBe(0);
  });

  test('does not hide behind a directory of the same name', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    mkdirSync(join(dir, `${run}.partial`));
    await expect(store.acquire(run, OWNER)).rejects.toMatchObject({ code: 'EISDIR' });
  });
});

test('a store whose writing thread died refuses everything, and says so when it is checked', async () => {
  const dir = temporaryDirectory();
  const store = openIn(dir);
  // Before the thread has come up: it finds nothing to open.
  rmSync(dir, { recursive: true });
  await expect(store.acquire(newRunId(), OWNER)).rejects.toThrow('ENOENT');
  await expect(store.check()).rejects.toThrow('ENOENT');
  await store.close();
});

test('a closed store refuses everything', async () => {
  const dir = temporaryDirectory();
  const store = openIn(dir);
  const lease = await store.acquire(newRunId(), OWNER);
  const appended = store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
  await store.close();
  expect(await appended).toBe(1);
  await expect(store.append(lease, [textRecord(1, 'b')])).rejects.toThrow('the file store is closed');
  await expect(store.acquire(newRunId(), OWNER)).rejects.toThrow('the file store is closed');
  await expect(store.check()).rejects.toThrow('the file store is closed');
  await store.close();
  expect(existsSync(join(dir, `${lease.run}.partial`))).toBe(true);
});
