import { describe, expect, test } from 'vitest';
import { checkedLine } from '../../../src/checkpoint/checked-line.ts';
import type { JournalRecord } from '../../../src/checkpoint/journal.ts';
import { encodeRecord } from '../../../src/checkpoint/record-codec.ts';
import {
  encodeEnd,
  encodeOpening,
  endId,
  LogReader,
  openingId,
  recordId,
} from '../../../src/checkpoint/redis/log.ts';
import type { RawEntry } from '../../../src/checkpoint/redis/scripts.ts';
import { createProofs, createSeal, epochSeal, type Seal } from '../../../src/checkpoint/seal.ts';
import type { RunId, Takeover } from '../../../src/checkpoint/store.ts';
import { COMPLETE, HEADER_RECORD, newRunId, OWNER, SEALING_KEY, textOf, textRecord } from '../fixtures.ts';

const SECRET = 'a secret of the deployment';
const SEALS: Record<string, (accepts: boolean) => Seal> = {
  'with sealing keys': (accepts) => createSeal([SEALING_KEY], accepts),
  'with the secret alone': (accepts) => createProofs(SECRET, accepts),
};

const entry = (id: string, line: string): RawEntry => [
  Buffer.from(id),
  [Buffer.from('l'), Buffer.from(line)],
];

function read(run: RunId, entries: readonly RawEntry[], seal: Seal): LogReader {
  const reader = new LogReader(run, seal);
  for (const one of entries) reader.add(one);
  return reader;
}

describe.each(Object.entries(SEALS))('a log %s', (_, sealed) => {
  const seal = sealed(false);
  const run = newRunId();
  const opening = (epoch: number, base: number, takeovers: readonly Takeover[]) =>
    entry(openingId(epoch), encodeOpening({ run, owner: OWNER, epoch, holder: 'x', base, takeovers }, seal));
  const record = (epoch: number, content: JournalRecord) =>
    entry(recordId(epoch, content.seq), encodeRecord(content, epochSeal(seal, run, OWNER, epoch)));
  const takeovers: readonly Takeover[] = [
    { seq: 0, mark: '2e' },
    { seq: 3, mark: '3e' },
  ];
  // Epoch 2 starts before what epoch 1 said, and says as many events.
  const first = [opening(1, -1, []), record(1, HEADER_RECORD), record(1, textRecord(0, 'a', 'b', 'c'))];
  const second = [opening(2, 0, takeovers.slice(0, 1)), record(2, textRecord(0, 'x', 'y', 'z'))];
  const third = [
    opening(3, 3, takeovers),
    record(3, textRecord(3, '!')),
    entry(endId(3), encodeEnd(COMPLETE, 4, epochSeal(seal, run, OWNER, 3))),
  ];

  test('is read as its epochs have said it', () => {
    const log = read(run, [...first, ...second, ...third], seal);
    expect(log.prefix.damage).toBeUndefined();
    expect(textOf(log.prefix.records)).toBe('xyz!');
    expect(log.end).toEqual(COMPLETE);
  });

  test('joins no epochs that do not belong together when one between them was removed', () => {
    const log = read(run, [...first, ...third], seal);
    expect(log.prefix.damage?.reason).toContain('the opening of an earlier epoch is missing');
    expect(textOf(log.prefix.records)).toBe('abc');
    expect(log.end?.status).toBe('recovered_from_partial');
  });

  test('believes no opening of another owner that was proven for the same run', () => {
    const other = { run, owner: 'b'.repeat(64) as typeof OWNER, epoch: 2, base: 0, takeovers: [] };
    const log = read(run, [...first, entry(openingId(2), encodeOpening(other, seal))], seal);
    expect(log.opening?.owner).toBe(OWNER);
    expect(log.prefix.damage?.reason).toBe('an epoch was opened for another owner');
  });

  test('from before there were proofs is read only where that is accepted', () => {
    const old = 'run_AAAAAAAAAAAAAAAAAAAAAA';
    const lines = [
      ['1-0', `{"v":1,"run":"${old}","owner":"${OWNER}","epoch":1,"holder":"x","base":-1,"takeovers":[]}`],
      [
        '1-1',
        '[0,[],{"wire":"chat_completions","created_at_ms":1,"model":"m","upstream":"u","events":"none"},1]',
      ],
      ['1-4', '[3,[["t","Grüße 🙂, world",[5,3,7]]],null,1700000000100]'],
      [endId(1), '{"status":"complete","at_ms":1700000001000,"seq":3}'],
    ] as const;
    const entries = lines.map(([id, body]) => entry(id, checkedLine(body)));
    const refused = read(old, entries, sealed(false));
    expect(refused.opening).toBeUndefined();
    expect(refused.prefix.records).toEqual([]);
    expect(refused.prefix.damage?.reason).toMatch(/without a proof.*see checkpoint\.unproven/);
    const accepted = read(old, entries, sealed(true));
    expect(accepted.prefix.damage).toBeUndefined();
    expect(textOf(accepted.prefix.records)).toBe('Grüße 🙂, world');
    expect(accepted.end?.status).toBe('complete');
  });
});
