import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createSeal } from '../../../src/checkpoint/seal.ts';
import type { Damage, RunId } from '../../../src/checkpoint/store.ts';
import { DamagedRunError } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, OWNER, SMALL_RUN, temporaryDirectory, textOf, textRecord } from '../fixtures.ts';
import {
  type Damaged,
  damagedOf,
  HISTORIES,
  linesOf,
  open,
  type RunLine,
  SEALS,
  segmentIn,
} from './damaged-run.ts';

const CASES = Object.keys(HISTORIES).flatMap((history) =>
  Object.keys(SEALS).map((seal) => [history, seal] as const),
);

/** The segment with the run's lines in this order; a line may be missing or occur twice. */
function reordered({ segment, lines }: Damaged, order: readonly number[]): Buffer {
  const [first, last] = [lines[0], lines.at(-1)];
  const parts = order.map((at) => segment.subarray(lines[at]?.start, lines[at]?.end));
  return Buffer.concat([segment.subarray(0, first?.start), ...parts, segment.subarray(last?.end)]);
}

/** The segment with one bit of the byte at `place` flipped. */
function flipped(segment: Buffer, place: number): Buffer {
  const changed = Buffer.from(segment);
  changed.writeUInt8(segment.readUInt8(place) ^ (1 << (place % 8)), place);
  return changed;
}

describe.each(CASES)('%s, %s', (name, seal) => {
  test('is sound', async () => {
    const damaged = await damagedOf(name, seal);
    const { found, errors } = damaged.read(damaged.segment);
    expect(errors).toEqual([]);
    expect(found?.damage).toBeUndefined();
    expect(found && damaged.expectPrefix(found)).toBe(SMALL_RUN.length);
  });

  test('is read from any event on as it is from the first', async () => {
    const damaged = await damagedOf(name, seal);
    const whole = damaged.read(damaged.segment).found?.stored;
    for (let from = 0; from <= 9; from++) {
      const stored = damaged.read(damaged.segment, from).found?.stored;
      const records = whole?.records.filter((record) => from === 0 || record.seq > from);
      expect(stored).toEqual({ ...whole, records, holder: expect.anything() });
    }
  });

  test('is used up to the record before the byte that was flipped while the process ran', async () => {
    const damaged = await damagedOf(name, seal);
    let before = 0;
    for (const [at, { kind, start, end }] of damaged.lines.entries()) {
      for (let place = start; place < end - 1; place++) {
        const found = damaged.readLater(flipped(damaged.segment, place));
        if (kind === 'i') continue;
        expect(found.damage).toBeDefined();
        expect(damaged.expectPrefix(found)).toBe(at === 0 ? 0 : before);
      }
      if (kind === 'r') before++;
    }
  });

  test('is never read wrongly, whichever byte was flipped before the process started, and the damage is told', async () => {
    const damaged = await damagedOf(name, seal);
    for (const { kind, start, end } of damaged.lines) {
      for (let place = start; place < end; place += 5 + (place % 5)) {
        const from = place % 2 === 0 ? 0 : 1 + (place % 7);
        // The last line of the log may legitimately be incomplete.
        if (place === damaged.segment.length - 1) continue;
        const { found, errors } = damaged.read(flipped(damaged.segment, place), from);
        // Damage to a newline doesn't affect the line before it.
        const isNoticed = !found || found.damage !== undefined || errors.length > 0;
        if (kind !== 'i' && place < end - 1)
          expect([isNoticed, kind, place - start]).toEqual([true, kind, place - start]);
        if (!found?.stored) continue;
        const sound = SMALL_RUN.slice(0, found.damage?.record);
        expect(found.stored.records).toEqual(sound.filter(({ seq }) => from === 0 || seq > from));
      }
    }
  });

  test('is known to be damaged when a byte of its id has become a newline', async () => {
    const damaged = await damagedOf(name, seal);
    const { start, end } = damaged.lines.filter(({ kind }) => kind === 'r').at(-1) as RunLine;
    for (const at of [5, 12, damaged.run.length - 1]) {
      const changed = Buffer.from(damaged.segment);
      changed.write('\n', changed.subarray(start, end).indexOf(damaged.run) + start + at, 'latin1');
      const { found, errors } = damaged.read(changed);
      expect(errors).toEqual([]);
      expect(found?.damage).toMatchObject({ record: SMALL_RUN.length - 1 });
      expect(found && damaged.expectPrefix(found)).toBe(SMALL_RUN.length - 1);
    }
  });

  test('is used up to where the log was cut', async () => {
    const damaged = await damagedOf(name, seal);
    for (let length = 0; length < damaged.segment.length; length += 11 + (length % 9)) {
      const { found, errors } = damaged.read(damaged.segment.subarray(0, length));
      expect(errors).toEqual([]);
      if (found) damaged.expectPrefix(found);
      expect(found?.damage).toBeUndefined();
    }
  });

  test('is used up to a line that was deleted, doubled, or changed places with the next one', async () => {
    const damaged = await damagedOf(name, seal);
    const all = damaged.lines.map((_, at) => at);
    for (const at of all) {
      const orders = [all.toSpliced(at, 1), all.toSpliced(at, 0, at)];
      if (at + 1 < all.length) orders.push(all.toSpliced(at, 2, at + 1, at));
      for (const order of orders) {
        const { found } = damaged.read(reordered(damaged, order));
        if (found) damaged.expectPrefix(found);
      }
    }
  });
});

describe('the reason', () => {
  // The lines include the index entry, which follows the first record.
  test.each<[string, number[], number, string]>([
    [
      'a record was deleted',
      [0, 1, 2, 4, 5, 6],
      1,
      'events 4 to 5 do not follow event 0; missing: events 1 to 3; discarded: events 4 to 7',
    ],
    [
      'the last record was deleted',
      [0, 1, 2, 3, 4, 6],
      3,
      'the journal is too short; missing: events 6 to 7',
    ],
  ])('says what is missing when %s', async (_, order, record, reason) => {
    const damaged = await damagedOf('a finished run', 'plain');
    const { found } = damaged.read(reordered(damaged, order));
    expect(found?.damage).toMatchObject({ record, reason });
  });

  test('is reported once, with the run and the event it continues after, however often it is read', async () => {
    const damaged = await damagedOf('a finished run', 'plain');
    const { run } = damaged;
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    writeFileSync(segmentIn(dir), reordered(damaged, [0, 1, 2, 3, 4, 6]));
    const store = open(dir, undefined, errors);
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
      `${run} is damaged in record 3 (the journal is too short; missing: events 6 to 7); it continues after event 5`,
    );
  });

  test('says so when the key of a sealed run is gone', async () => {
    const { run, segment } = await damagedOf('a finished run', 'sealed');
    const dir = temporaryDirectory();
    const errors: Error[] = [];
    writeFileSync(segmentIn(dir), segment);
    const store = open(dir, createSeal(['another'.repeat(5)]), errors);
    expect(await store.read(run, OWNER, 0)).toBeNull();
    const message = 'the opening line is proven with a key that is not configured';
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining(message) })]);
  });
});

describe('a damaged run that is taken over', () => {
  test.each(Object.keys(SEALS))(
    'continues after its last sound record, and the log says so (%s)',
    async (seal) => {
      const damaged = await damagedOf('a run whose replicas were killed one after the other', seal);
      const { run, segment, lines } = damaged;
      const dir = temporaryDirectory();
      const errors: Error[] = [];
      // The record of the second epoch.
      const { end } = lines.filter(({ kind }) => kind === 'r')[2] as { end: number };
      const changed = Buffer.from(segment);
      changed[end - 5] = 0;
      writeFileSync(segmentIn(dir), changed);
      const store = open(dir, SEALS[seal], errors);

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
    const segment = readFileSync(segmentIn(dir));
    const third = linesOf(segment, run).filter(({ kind }) => kind === 'r')[2];
    writeFileSync(segmentIn(dir), flipped(segment, (third?.end ?? 0) - 20));
    await store.finish(lease, COMPLETE);
    expect(errors).toMatchObject([{ name: 'DamagedRunError' }]);
    expect(await store.read(run, OWNER, 0)).toMatchObject({
      status: 'recovered_from_partial',
      seq: 3,
      records: SMALL_RUN.slice(0, 2),
    });
  });
});

test('a run that is being written is damaged in earnest like any other', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const store = open(dir, undefined, errors);
  const lease = await store.acquire(newRunId(), OWNER);
  await store.append(lease, SMALL_RUN.slice(0, 3));
  const segment = readFileSync(segmentIn(dir));
  const second = linesOf(segment, lease.run).filter(({ kind }) => kind === 'r')[1];
  writeFileSync(segmentIn(dir), flipped(segment, (second?.end ?? 0) - 9));
  const stored = await store.read(lease.run, OWNER, 0);
  expect(stored?.damage?.reason).toMatch(/missing: events 1 to 3/);
  expect(errors).toHaveLength(1);
});

test('a record of another run is not opened in the place of one’s own', async () => {
  const dir = temporaryDirectory();
  const errors: Error[] = [];
  const store = open(dir, SEALS.sealed, errors);
  const [own, other] = [`run_${'a'.repeat(22)}`, `run_${'b'.repeat(22)}`] as [RunId, RunId];
  for (const run of [own, other]) {
    const lease = await store.acquire(run, OWNER);
    for (const record of SMALL_RUN) await store.append(lease, [record]);
    await store.finish(lease, COMPLETE);
  }
  const segment = readFileSync(segmentIn(dir));
  const secondOf = (run: RunId) => linesOf(segment, run).filter(({ kind }) => kind === 'r')[1];
  const [at, from] = [secondOf(own), secondOf(other)];
  segment.copy(segment, at?.start, from?.start, from?.end);
  writeFileSync(segmentIn(dir), segment);
  expect(await store.read(own, OWNER, 0)).toMatchObject({
    records: SMALL_RUN.slice(0, 1),
    damage: { record: 1 },
  });
});
