import {
  existsSync,
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
import { FileStore } from '../../src/checkpoint/file-store.ts';
import { encodeRecord } from '../../src/checkpoint/record-codec.ts';
import type { Lease, RunId, StoredRun } from '../../src/checkpoint/store.ts';
import { StaleLeaseError, StoreConfigurationError } from '../../src/checkpoint/store.ts';
import {
  HEADER_RECORD,
  newRunId,
  OWNER,
  SMALL_RUN,
  STRANGER,
  storeRun,
  temporaryDirectory,
  textOf,
  textRecord,
} from './fixtures.ts';

const HOUR_MS = 3_600_000;

function openIn(dir: string, errors: Error[] = []): FileStore {
  const store = new FileStore({
    dir,
    fsync: 'never',
    ttl_ms: HOUR_MS,
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
    await store.finish(lease, 'complete');
    expect(readdirSync(dir).sort()).toEqual([`${lease.run}.run`, 'takeovers']);
  });

  test('do not name their owner', async () => {
    const dir = temporaryDirectory();
    const run = newRunId();
    await storeRun(openIn(dir), run, SMALL_RUN);
    expect(readFileSync(join(dir, `${run}.run`), 'utf8')).not.toContain(OWNER);
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
    const first = new FileStore({ dir, fsync: 'append', ttl_ms: HOUR_MS, onError: () => {} });
    const lease = await first.acquire(newRunId(), OWNER);
    await first.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    await first.close();
    const second = openIn(dir);
    const taken = await second.acquire(lease.run, OWNER);
    expect(taken.epoch).toBe(2);
    expect(await second.append(taken, [textRecord(1, 'b')])).toBe(2);
    await second.finish(taken, 'complete');
    expect(textOf((await readWhole(second, lease.run)).records)).toBe('ab');
  });

  test('of a run that was taken over are read whole while they are put together', async () => {
    const [writer, reader] = openSeveral(2) as [FileStore, FileStore];
    for (let i = 0; i < 30; i++) {
      const first = await writer.acquire(newRunId(), OWNER);
      await writer.append(first, [HEADER_RECORD, textRecord(0, 'a')]);
      const second = await writer.acquire(first.run, OWNER);
      await writer.append(second, [textRecord(1, 'b')]);
      let finished = false;
      const finishing = writer.finish(second, 'complete').then(() => {
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

  test('under the name of another run belong to nobody', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    const other = newRunId();
    renameSync(join(dir, `${run}.run`), join(dir, `${other}.run`));
    expect(await store.read(other, OWNER, 0)).toBeNull();
  });
});

describe('a damaged file', () => {
  /** Stores the small run, changes its file, and reads it. */
  async function damage(change: (file: Buffer) => Buffer, name = 'run') {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const store = openIn(dir, errors);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    const file = readFileSync(join(dir, `${run}.run`));
    return {
      errors,
      store,
      run,
      file,
      read: (changed = change(file)) => {
        writeFileSync(join(dir, `${run}.${name}`), changed);
        return store.read(run, OWNER, 0);
      },
    };
  }

  const linesOf = (file: Buffer) => file.toString('latin1').split(/(?<=\n)/);
  const fileOf = (lines: readonly string[]) => Buffer.from(lines.join(''), 'latin1');

  test('never gives a wrong record, whichever byte of it was flipped', async () => {
    const { errors, file, read } = await damage((intact) => intact);
    const openingLength = linesOf(file)[0]?.length ?? 0;
    for (let position = 0; position < file.length; position++) {
      const changed = Buffer.from(file);
      changed[position] = (changed[position] as number) ^ (1 << (position % 8));
      const stored = await read(changed);
      expect(errors.splice(0)).toMatchObject([{ name: 'DamagedRunError' }]);
      if (position < openingLength) {
        expect(stored).toBeNull();
        continue;
      }
      const lineOfByte = linesOf(file.subarray(0, position + 1)).filter((line) => line !== '').length - 1;
      const valid = Math.min(lineOfByte - 1, SMALL_RUN.length);
      expect(stored?.status).toBe('recovered_from_partial');
      expect(stored?.damage).toEqual({ record: stored?.records.length, reason: expect.any(String) });
      expect(stored?.records).toEqual(SMALL_RUN.slice(0, valid));
    }
  });

  test('gives what was whole, wherever it was cut', async () => {
    const { file, read } = await damage((intact) => intact);
    const lines = linesOf(file);
    const openingLength = lines[0]?.length ?? 0;
    for (let length = 0; length < file.length; length++) {
      const stored = await read(file.subarray(0, length));
      if (length < openingLength) {
        expect(stored).toBeNull();
        continue;
      }
      const whole = file.subarray(0, length).toString('latin1').split('\n').length - 2;
      expect(stored?.records).toEqual(SMALL_RUN.slice(0, whole));
      expect(stored?.status).toBe('recovered_from_partial');
    }
  });

  test.each<[string, number[], number, string]>([
    ['a record was deleted', [0, 1, 3, 4, 5], 1, 'events 4 to 5 do not follow event 0'],
    ['the last record was deleted', [0, 1, 2, 3, 5], 3, 'events up to 7 are missing'],
    ['two records changed places', [0, 1, 3, 2, 4, 5], 1, 'events 4 to 5 do not follow event 0'],
    ['a record was doubled', [0, 1, 2, 2, 3, 4, 5], 2, 'events 1 to 3 do not follow event 3'],
    ['the final line was deleted', [0, 1, 2, 3, 4], 4, 'the final line is missing'],
    ['records follow the final line', [0, 1, 2, 3, 4, 5, 4], 4, 'a line after the final one'],
  ])('says so when %s', async (_, order, record, reason) => {
    const { errors, read } = await damage((file) => {
      const lines = linesOf(file);
      return fileOf(order.map((position) => lines[position] ?? ''));
    });
    expect(await read()).toMatchObject({
      status: 'recovered_from_partial',
      records: SMALL_RUN.slice(0, record),
      damage: { record, reason },
    });
    expect(errors).toMatchObject([{ name: 'DamagedRunError' }]);
  });

  test('that still runs is taken over at its last valid record', async () => {
    const dir = temporaryDirectory();
    const first = openIn(dir);
    const lease = await first.acquire(newRunId(), OWNER);
    await first.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    const path = join(dir, `${lease.run}.partial`);
    const torn = encodeRecord(textRecord(1, 'torn')).slice(0, -9);
    writeFileSync(path, readFileSync(path, 'utf8') + torn);

    const second = openIn(dir);
    expect(await second.read(lease.run, OWNER, 0)).toMatchObject({
      status: 'running',
      seq: 1,
      damage: { record: 2, reason: 'the last line is torn' },
    });
    const taken = await second.acquire(lease.run, OWNER);
    expect(await second.append(taken, [textRecord(1, 'b')])).toBe(2);
    expect(await second.read(lease.run, OWNER, 0)).not.toHaveProperty('damage');
    await second.finish(taken, 'complete');
    expect(textOf((await readWhole(second, lease.run)).records)).toBe('ab');
  });
});

describe('fencing between processes', () => {
  test('refuses the older lease and never shows what it wrote afterwards', async () => {
    const [first, second, reader] = openSeveral(3) as [FileStore, FileStore, FileStore];
    const older = await first.acquire(newRunId(), OWNER);
    await first.append(older, [HEADER_RECORD, textRecord(0, 'a')]);
    const newer = await second.acquire(older.run, OWNER);
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    await second.append(newer, [textRecord(1, 'b')]);
    expect(await readWhole(reader, older.run)).toMatchObject({ status: 'running', seq: 2 });
    await expect(first.finish(older, 'failed')).rejects.toBeInstanceOf(StaleLeaseError);
    await second.finish(newer, 'complete');
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    const stored = await readWhole(reader, older.run);
    expect(stored).toMatchObject({ status: 'complete', seq: 2 });
    expect(textOf(stored.records)).toBe('ab');
  });

  test('refuses a lease whose run was finished by its successor meanwhile', async () => {
    const [first, second] = openSeveral(2) as [FileStore, FileStore];
    const older = await first.acquire(newRunId(), OWNER);
    await first.append(older, [HEADER_RECORD, textRecord(0, 'a')]);
    const newer = await second.acquire(older.run, OWNER);
    await second.finish(newer, 'recovered_from_partial');
    await expect(first.append(older, [textRecord(1, 'STALE')])).rejects.toBeInstanceOf(StaleLeaseError);
    await expect(first.finish(older, 'complete')).rejects.toBeInstanceOf(StaleLeaseError);
    expect(await readWhole(first, older.run)).toMatchObject({ status: 'recovered_from_partial', seq: 1 });
  });

  test('survives a claim whose holder died at once', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const lease = await store.acquire(newRunId(), OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
    writeFileSync(join(dir, `${lease.run}.2.partial`), '');
    expect(await readWhole(store, lease.run)).toEqual({
      status: 'running',
      seq: 1,
      records: expect.any(Array),
    });
    const taken = await store.acquire(lease.run, OWNER);
    expect(taken.epoch).toBe(3);
    await store.append(taken, [textRecord(1, 'b')]);
    await store.finish(taken, 'complete');
    expect(textOf((await readWhole(store, lease.run)).records)).toBe('ab');
    expect(readdirSync(dir).sort()).toEqual([`${lease.run}.run`, 'takeovers']);
  });

  test('lets nobody take over a run whose last line was written but whose file was not yet renamed', async () => {
    const dir = temporaryDirectory();
    const store = openIn(dir);
    const run = newRunId();
    await storeRun(store, run, SMALL_RUN);
    renameSync(join(dir, `${run}.run`), join(dir, `${run}.partial`));
    expect(await readWhole(store, run)).toMatchObject({ status: 'complete', seq: 7 });
    await expect(store.acquire(run, OWNER)).rejects.toMatchObject({ reason: 'finished' });
    await expect(store.acquire(run, STRANGER)).rejects.toMatchObject({ reason: 'foreign' });
    expect(readdirSync(dir).sort()).toEqual([`${run}.partial`, 'takeovers']);
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
            leases[who] = await store.acquire(run, OWNER);
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
            expect(result.reason.name).toMatch(/^(StaleLease|JournalGap)Error$/);
        }
        const last = (await stores[0]?.acquire(run, OWNER)) as Lease;
        await stores[0]?.finish(last, 'complete');
        const words = textOf((await readWhole(stores[1] as FileStore, run)).records).match(/<\d+>/g) ?? [];
        for (const [seq, word] of acknowledged.entries()) if (word) expect(words[seq]).toBe(word);
      }),
      { numRuns: 40 },
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
    await Promise.all(leases.map((lease) => store.finish(lease, 'complete')));
    for (const { run } of leases.slice(0, 20))
      expect(textOf((await readWhole(store, run)).records)).toBe('xxx');
    expect(readdirSync(dir)).toHaveLength(1201);
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
