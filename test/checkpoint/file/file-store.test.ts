import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import { encodeFrame } from '../../../src/checkpoint/file/frame.ts';
import { segmentName } from '../../../src/checkpoint/file/names.ts';
import type { Lease, RunEnd, RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { StaleLeaseError, StoreConfigurationError } from '../../../src/checkpoint/store.ts';
import { caseShare } from '../../cases.ts';
import {
  COMPLETE,
  HEADER_RECORD,
  newRunId,
  OWNER,
  SMALL_RUN,
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

    ttl_ms: HOUR_MS,
    lease_ms: LEASE_MS,
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => store.close());
  return store;
}

const readWhole = async (store: FileStore, run: RunId): Promise<StoredRun> => {
  const stored = await store.read(run, OWNER, 0);
  if (!stored) throw new Error('the run is unknown');
  return stored;
};

/** Opens several stores in one directory. Each has its own thread and memory, so they stand for separate processes. */
function openSeveral(count: number): FileStore[] {
  const dir = temporaryDirectory();
  return Array.from({ length: count }, () => openIn(dir));
}

describe('what is stored of a run', () => {
  test('is private, in one log', async () => {
    const dir = join(temporaryDirectory(), 'made', 'on', 'demand');
    const store = openIn(dir);
    const lease = await store.acquire(newRunId(), OWNER);
    await store.finish(lease, COMPLETE);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const names = readdirSync(dir);
    expect(names).toEqual([segmentName(1), expect.stringMatching(/^replica-\w+\.alive$/)]);
    for (const name of names) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  });

  test('is read by another process as soon as an append resolves', async () => {
    const [writer, reader] = openSeveral(2) as [FileStore, FileStore];
    const lease = await writer.acquire(newRunId(), OWNER);
    for (const [position, record] of SMALL_RUN.entries()) {
      await writer.append(lease, [record]);
      expect((await readWhole(reader, lease.run)).records).toEqual(SMALL_RUN.slice(0, position + 1));
    }
  });

  test('is found again by the next process', async () => {
    const dir = temporaryDirectory();
    const first = new FileStore({
      dir,

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

  test('is read whole while a run that was taken over is finished', async () => {
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

  test('cannot be read any more once it is purged, in the files neither', async () => {
    const dir = temporaryDirectory();
    const [store, other] = [openIn(dir), openIn(dir)];
    const [purged, kept] = [newRunId(), newRunId()];
    for (const run of [purged, kept]) await storeRun(store, run, SMALL_RUN);
    expect(readFileSync(join(dir, segmentName(1)), 'utf8')).toContain(`r ${purged}`);
    await other.purge(purged, OWNER);
    const content = readFileSync(join(dir, segmentName(1)), 'utf8');
    expect(content.match(new RegExp(`. ${purged}`, 'g'))).toEqual([`p ${purged}`]);
    const fresh = openIn(dir);
    for (const each of [store, other, fresh]) {
      expect(await each.read(purged, OWNER, 0)).toBeNull();
      expect((await readWhole(each, kept)).records).toEqual(SMALL_RUN);
    }
  });

  test('is overwritten by the next process when the one that purged it was killed before it could', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    appendFileSync(join(dir, segmentName(1)), `\n${encodeFrame('p', run, 0, '')}`);
    await openIn(dir).check();
    expect(readFileSync(join(dir, segmentName(1)), 'utf8')).not.toContain('world');
    expect(await store.read(run, OWNER, 0)).toBeNull();
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
    const other = openIn(dir);
    await other.acquire(lease.run, OWNER, 1);
    const claimed = await readWhole(store, lease.run);
    expect(claimed).toMatchObject({ status: 'running', seq: 1, epoch: 2, holder: { state: 'alive' } });
    expect(claimed).not.toHaveProperty('damage');
    await other.close();
    expect(await readWhole(store, lease.run)).toMatchObject({ holder: { state: 'lost' } });
    expect(await store.orphans(10)).toEqual([{ run: lease.run, owner: OWNER, epoch: 2 }]);
    const taken = await store.acquire(lease.run, OWNER, 2);
    await store.append(taken, [textRecord(1, 'b')]);
    await store.finish(taken, COMPLETE);
    expect(textOf((await readWhole(store, lease.run)).records)).toBe('ab');
  });

  test('keeps every acknowledged event through any race for a run', async () => {
    const stores = openSeveral(3);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(2), { minLength: 10, maxLength: 60 }), async (turns) => {
        const run = newRunId();
        const leases = [await stores[0]?.acquire(run, OWNER)];
        const acknowledged: string[] = [];
        // All turns start at once, so that the claims and appends of the three stores overlap in every way.
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
          // A store that already has the event skips it and returns its position.
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
  test('are stored in one directory, without a file for each', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const leases = await Promise.all(Array.from({ length: 1200 }, () => store.acquire(newRunId(), OWNER)));
    for (let seq = 0; seq < 3; seq++) {
      const records = seq === 0 ? [HEADER_RECORD, textRecord(0, 'x')] : [textRecord(seq, 'x')];
      await Promise.all(leases.map((lease) => store.append(lease, records)));
    }
    expect(readdirSync(dir).length).toBeLessThan(5);
    await Promise.all(leases.map((lease) => store.finish(lease, COMPLETE)));
    for (const { run } of leases.slice(0, 20))
      expect(textOf((await readWhole(store, run)).records)).toBe('xxx');
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

  test.each([`${newRunId()}.partial`, `${newRunId()}.2.partial`, `${newRunId()}.run`, 'takeovers', 'notes'])(
    'is refused when it holds what an older version has left (%s)',
    (name) => {
      const dir = temporaryDirectory();
      writeFileSync(join(dir, name), '');
      expect(() => openIn(dir)).toThrow(StoreConfigurationError);
      expect(() => openIn(dir)).toThrow(
        `the directory ${dir} holds runs in a format that is not read any more (${name}); move it away`,
      );
    },
  );

  test('is refused when a newer version wrote it', () => {
    const dir = temporaryDirectory();
    writeFileSync(join(dir, segmentName(7)), `\n${encodeFrame('h', '-', 1, '4')}`);
    expect(() => openIn(dir)).toThrow(StoreConfigurationError);
    expect(() => openIn(dir)).toThrow(
      `the directory ${dir} was written by a newer version (format 4, this one reads 3)`,
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
    // Before the thread has started.
    mkdirSync(join(dir, segmentName(1)));
    await expect(store.acquire(newRunId(), OWNER)).rejects.toThrow('EISDIR');
  });
});

test('a store whose writing thread died refuses everything, and says so when it is checked', async () => {
  const dir = temporaryDirectory();
  const store = openIn(dir);
  // Before the thread has started, so it finds no directory to open.
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
  expect(readFileSync(join(dir, segmentName(1)), 'utf8')).toContain(`r ${lease.run} 1 `);
});
