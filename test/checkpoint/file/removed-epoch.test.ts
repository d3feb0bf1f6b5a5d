import { expect, test } from 'vitest';
import { encodeFrame } from '../../../src/checkpoint/file/frame.ts';
import { encodeClaim } from '../../../src/checkpoint/file/log-state.ts';
import { decodeRun } from '../../../src/checkpoint/file/run-image.ts';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { encodeRecordBody } from '../../../src/checkpoint/record-codec.ts';
import { createProofs, epochSeal } from '../../../src/checkpoint/seal.ts';
import { HEADER_RECORD, newRunId, OWNER, textOf, textRecord } from '../fixtures.ts';

const seal = createProofs('a secret of the deployment');
const run = newRunId();
const claim = (epoch: number, base: number) =>
  encodeClaim(run, { epoch, owner: OWNER, holder: 'x', base, isRewound: false }, seal);
const record = (epoch: number, content: JournalRecord) =>
  encodeFrame('r', run, epoch, encodeRecordBody(content, epochSeal(seal, run, OWNER, epoch)));

const FIRST = [claim(1, -1), record(1, HEADER_RECORD)];
const SECOND = [claim(2, 0), record(2, textRecord(0, 'x', 'y', 'z'))];
const THIRD = [claim(3, 3), record(3, textRecord(3, '!'))];
/** A record that the first epoch wrote after the second had begun; readers must ignore it there. */
const LATE = record(1, textRecord(0, 'a', 'b', 'c'));

const read = (lines: readonly string[]) => decodeRun(Buffer.from(lines.join('')), run, seal);

test('the epochs of a run in a directory are read as they have said it', () => {
  const image = read([...FIRST, ...SECOND, ...THIRD]);
  expect(image?.damage).toBeUndefined();
  expect(textOf(image?.records ?? [])).toBe('xyz!');
});

test('epochs that do not belong together are not joined when one between them was removed', () => {
  const image = read([...FIRST, LATE, ...THIRD]);
  expect(image?.damage?.reason).toContain('the claim of an earlier epoch is missing');
  expect(textOf(image?.records ?? [])).toBe('abc');
});
