import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeRun } from '../../../src/checkpoint/file/file-format.ts';
import { createSeal } from '../../../src/checkpoint/seal.ts';
import type { Damage, RunId } from '../../../src/checkpoint/store.ts';
import { DamagedRunError } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, SMALL_RUN, temporaryDirectory, textOf, textRecord } from '../fixtures.ts';
import { damagedOf, HISTORIES, type History, open, SEALS } from './damaged-run.ts';

const linesOf = (file: Buffer): string[] => file.toString('latin1').split(/(?<=\n)/);
const fileOf = (lines: readonly string[]): Buffer => Buffer.from(lines.join(''), 'latin1');

const CASES = Object.keys(HISTORIES).flatMap((history) =>
  Object.keys(SEALS).map((seal) => [history, seal] as const),
);

describe.each(CASES)('%s, %s', (name, seal) => {
  const { finished } = HISTORIES[name] as History;

  test('is sound', async () => {
    const damaged = await damagedOf(name, seal);
    expect(damaged.expectPrefix(damaged.read(0, damaged.intact[0] as Buffer), true)).toBe(SMALL_RUN.length);
  });

  test('is read from any event on as it is from the first', async () => {
    const { intact, run } = await damagedOf(name, seal);
    const { records, ...whole } = decodeRun(intact, run, SEALS[seal]) ?? { records: [] };
    for (let from = 0; from <= 9; from++) {
      const { records: wanted, ...rest } = decodeRun(intact, run, SEALS[seal], from) ?? { records: [] };
      expect(rest).toEqual(whole);
      expect(wanted).toEqual(records.filter((record) => from === 0 || record.seq > from));
    }
  });

  test('is never read wrongly from an event on, whichever byte was flipped', async () => {
    const { intact, run } = await damagedOf(name, seal);
    for (const [position, file] of intact.entries()) {
      for (let byte = 0; byte < file.length; byte++) {
        const changed = Buffer.from(file);
        changed[byte] = (changed[byte] as number) ^ (1 << (byte % 8));
        const from = 1 + (byte % 7);
        const image = decodeRun(intact.with(position, changed), run, SEALS[seal], from);
        if (!image) continue;
        expect(image.damage).toBeDefined();
        const wanted = SMALL_RUN.filter(({ seq }) => seq > from && seq <= image.seq);
        expect(image.records).toEqual(wanted);
      }
    }
  });

  test('is used up to the record before the byte that was flipped', async () => {
    const damaged = await damagedOf(name, seal);
    let before = 0;
    for (const [position, file] of damaged.intact.entries()) {
      for (let byte = 0; byte < file.length; byte++) {
        const changed = Buffer.from(file);
        changed[byte] = (changed[byte] as number) ^ (1 << (byte % 8));
        const line = linesOf(file.subarray(0, byte + 1)).length - 1;
        const count = damaged.expectPrefix(damaged.read(position, changed), false);
        expect(count).toBe(line === 0 ? before : Math.min(before + line - 1, SMALL_RUN.length));
      }
      before += linesOf(file).length - 1;
    }
  });

  test('is used up to where it was cut', async () => {
    const damaged = await damagedOf(name, seal);
    for (const [position, file] of damaged.intact.entries()) {
      for (let length = 0; length < file.length; length++) {
        const isLast = position === damaged.intact.length - 1;
        // An empty file is one that its replica died before it wrote.
        const isWhole = length === 0 ? position > 0 : file[length - 1] === 0x0a;
        const read = damaged.read(position, file.subarray(0, length));
        damaged.expectPrefix(read, !finished && isLast && isWhole);
      }
    }
  });

  test('is used up to a line that was deleted, doubled, or changed places with the next one', async () => {
    const damaged = await damagedOf(name, seal);
    for (const [position, file] of damaged.intact.entries()) {
      const lines = linesOf(file);
      const isLastFile = position === damaged.intact.length - 1;
      for (const [at, line] of lines.entries()) {
        const next = lines[at + 1];
        const deleted = damaged.read(position, fileOf(lines.toSpliced(at, 1)));
        damaged.expectPrefix(deleted, !finished && isLastFile && !next);
        const doubled = damaged.read(position, fileOf(lines.toSpliced(at, 0, line)));
        // What a writer adds that was superseded is never looked at.
        damaged.expectPrefix(doubled, !isLastFile && !next);
        if (!next) continue;
        const swapped = damaged.read(position, fileOf(lines.toSpliced(at, 2, next, line)));
        damaged.expectPrefix(swapped, false);
      }
    }
  });
});

describe('the reason', () => {
  test.each<[string, number[], number, string]>([
    [
      'a record was deleted',
      [0, 1, 3, 4, 5],
      1,
      'events 4 to 5 do not follow event 0; missing: events 1 to 3; discarded: events 4 to 7',
    ],
    ['the last record was deleted', [0, 1, 2, 3, 5], 3, 'the journal is too short; missing: events 6 to 7'],
    [
      'two records changed places',
      [0, 1, 3, 2, 4, 5],
      1,
      'events 4 to 5 do not follow event 0; discarded: events 1 to 7',
    ],
    [
      'a record was doubled',
      [0, 1, 2, 2, 3, 4, 5],
      2,
      'events 1 to 3 do not follow event 3; discarded: events 4 to 7',
    ],
    ['the final line was deleted', [0, 1, 2, 3, 4], 4, 'the final line is missing'],
    ['records follow the final line', [0, 1, 2, 3, 4, 5, 4], 4, 'a line after the final one'],
  ])('says what is missing when %s', async (_, order, record, reason) => {
    const damaged = await damagedOf('a finished run', 'plain');
    const lines = linesOf(damaged.intact[0] as Buffer);
    const { damage } = damaged.read(0, fileOf(order.map((position) => lines[position] ?? '')));
    expect(damage).toMatchObject({ record, reason });
  });

  test('is reported once, with the run and the event it continues after, however often it is read', async () => {
    const { run, intact } = await damagedOf('a finished run', 'plain');
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const store = open(dir, undefined, errors);
    writeFileSync(join(dir, `${run}.run`), fileOf(linesOf(intact[0] as Buffer).toSpliced(4, 1)));
    const stored = await store.read(run, OWNER, 0);
    expect(stored?.end).toEqual({
      status: 'recovered_from_partial',
      at_ms: expect.any(Number),
      cause: 'damaged_checkpoint',
    });
    expect(stored?.holder).toEqual({ state: 'released' });
    expect(await store.read(run, OWNER, 0)).toEqual(stored);
    expect(errors).toEqual([new DamagedRunError(run, stored?.damage as Damage)]);
    expect(errors[0]?.message).toBe(
      `${run} is damaged in record 3 (the journal is too short; missing: events 6 to 7); it goes on after event 5`,
    );
  });

  test('says so when the key of a sealed run is gone', async () => {
    const { run, intact } = await damagedOf('a finished run', 'sealed');
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    writeFileSync(join(dir, `${run}.run`), intact[0] as Buffer);
    const store = open(dir, createSeal(['another'.repeat(5)]), errors);
    const reason = 'sealed with a key that is not configured, or for another run; missing: events 1 to 7';
    expect(await store.read(run, OWNER, 0)).toMatchObject({ records: [], damage: { record: 0, reason } });
    expect(errors).toHaveLength(1);
  });
});

describe('a damaged run that is taken over', () => {
  test.each(Object.keys(SEALS))(
    'continues after its last sound record, and the log says so (%s)',
    async (seal) => {
      const { run, intact } = await damagedOf('a run whose replicas were killed one after the other', seal);
      const dir = temporaryDirectory();
      const errors: Error[] = [];
      const store = open(dir, SEALS[seal], errors);
      const [first, second, third] = intact as [Buffer, Buffer, Buffer];
      const changed = Buffer.from(second);
      changed[second.length - 5] = 0;
      writeFileSync(join(dir, `${run}.partial`), first);
      writeFileSync(join(dir, `${run}.2.partial`), changed);
      writeFileSync(join(dir, `${run}.3.partial`), third);

      const before = await store.read(run, OWNER, 0);
      expect(before).toMatchObject({ seq: 3, epoch: 3, takeovers: [{ seq: 3 }, { seq: 5 }] });
      expect(before?.damage?.reason).toMatch(/; missing: events 4 to 5; discarded: events 6 to 7$/);
      errors.length = 0;
      const lease = await store.acquire(run, OWNER, 3);
      expect(errors).toEqual([new DamagedRunError(run, before?.damage as Damage)]);
      expect(await store.append(lease, [textRecord(3, 'again')])).toBe(4);
      const after = await store.read(run, OWNER, 0);
      expect(after).toMatchObject({ seq: 4, takeovers: [{ seq: 3 }, { seq: 5 }, { seq: 3 }] });
      expect(after).not.toHaveProperty('damage');
      expect(after?.records).toEqual([...SMALL_RUN.slice(0, 2), textRecord(3, 'again')]);
      await store.finish(lease, COMPLETE);
      expect(textOf((await store.read(run, OWNER, 0))?.records ?? [])).toBe('Grüße 🙂, worldagain');
    },
  );

  test('is not finished as complete when the damage is found as late as that', async () => {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const store = open(dir, undefined, errors);
    const run = newRunId();
    await store.append(await store.acquire(run, OWNER), SMALL_RUN.slice(0, 3));
    const lease = await store.acquire(run, OWNER, 1);
    await store.append(lease, SMALL_RUN.slice(3));
    const path = join(dir, `${run}.partial`);
    writeFileSync(path, readFileSync(path).subarray(0, -20));
    await store.finish(lease, COMPLETE);
    expect(errors).toMatchObject([{ name: 'DamagedRunError' }]);
    expect(await store.read(run, OWNER, 0)).toMatchObject({
      status: 'recovered_from_partial',
      seq: 3,
      records: SMALL_RUN.slice(0, 2),
    });
  });
});

describe('a run that is being written', () => {
  async function begin() {
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    const store = open(dir, undefined, errors);
    const lease = await store.acquire(newRunId(), OWNER);
    await store.append(lease, SMALL_RUN.slice(0, 3));
    const path = join(dir, `${lease.run}.partial`);
    return { dir, errors, store, lease, path, file: readFileSync(path) };
  }

  test('is not damaged because its last line is not whole yet', async () => {
    const { errors, store, lease, path, file } = await begin();
    for (let length = linesOf(file).slice(0, 3).join('').length; length < file.length; length++) {
      writeFileSync(path, file.subarray(0, length));
      const stored = await store.read(lease.run, OWNER, 0);
      expect(stored?.records).toEqual(SMALL_RUN.slice(0, 2));
      expect(stored).not.toHaveProperty('damage');
    }
    expect(errors).toEqual([]);
  });

  test('is damaged in earnest like any other', async () => {
    const { errors, store, lease, path, file } = await begin();
    const lines = linesOf(file);
    writeFileSync(path, fileOf(lines.toSpliced(2, 1)));
    const stored = await store.read(lease.run, OWNER, 0);
    expect(stored?.damage?.reason).toMatch(/missing: events 1 to 3/);
    expect(errors).toHaveLength(1);
  });
});

test('a record of another run is not opened in the place of one’s own', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const store = open(dir, SEALS.sealed, errors);
  const runs = [newRunId(), newRunId()];
  const files: string[][] = [];
  for (const run of runs) {
    const lease = await store.acquire(run, OWNER);
    for (const record of SMALL_RUN) await store.append(lease, [record]);
    await store.finish(lease, COMPLETE);
    files.push(linesOf(readFileSync(join(dir, `${run}.run`))));
  }
  const [own, other] = files as [string[], string[]];
  writeFileSync(join(dir, `${runs[0]}.run`), fileOf(own.toSpliced(2, 1, other[2] as string)));
  expect(await store.read(runs[0] as RunId, OWNER, 0)).toMatchObject({
    records: SMALL_RUN.slice(0, 1),
    damage: { record: 1 },
  });
});
