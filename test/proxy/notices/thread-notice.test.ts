import { describe, expect, test } from 'vitest';
import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import { MemoryRuns } from '../../../src/checkpoint/memory/memory-runs.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/memory-store.ts';
import type { SalvagedRun } from '../../../src/checkpoint/salvaged-run.ts';
import {
  leaveThreadNote,
  readThreadNote,
  salvageNote,
  threadKey,
  threadNote,
  threadNoticeText,
} from '../../../src/proxy/notices/thread-notice.ts';
import { HEADER, HEADER_RECORD, newRunId, OWNER, STRANGER, textRecord } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const AT_MS = Date.UTC(2026, 10, 21, 12);
const cut = (text: string, created_at_ms = AT_MS - 5000) => ({
  run: newRunId(),
  created_at_ms,
  model: 'gpt-test',
  end: { status: 'recovered_from_partial', at_ms: AT_MS, cause: 'replica_lost' } as const,
  text,
});

describe('what the model is told', () => {
  test('has a fixed beginning, compact JSON, and one sentence', () => {
    expect(threadNoticeText(threadNote(cut('Kelp grips "the" rock')))).toBe(
      'last_partial_recovery: {"status":"recovered_from_partial","interrupted_at":"2026-11-21T12:00:00.000Z",' +
        '"model":"gpt-test","cause":"replica_lost","partial_tail":"Kelp grips \\"the\\" rock"} ' +
        'Your previous answer in this conversation was cut off after the text in partial_tail: ' +
        'go on from there or start again, whichever the conversation calls for now.',
    );
  });

  test('brings no more than the end of a long text', () => {
    expect(threadNote(cut(`${'x'.repeat(1000)}end`)).partial_tail).toBe(`${'x'.repeat(397)}end`);
  });

  test('fits a note whatever the text was', () => {
    const note = threadNote(cut('\u0000'.repeat(100_000)));
    expect(JSON.stringify(note).length).toBeLessThan(16_384);
  });
});

describe('the note of a thread', () => {
  const notes = () =>
    new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000, runs: new MemoryRuns() }).notes;

  test('is found under its name by its owner alone', async () => {
    const store = notes();
    const note = threadNote(cut('Kelp'));
    await leaveThreadNote(store, OWNER, 'thread', note, 1000);
    expect(await store.take(STRANGER, threadKey('thread'))).toBeUndefined();
    expect(await store.take(OWNER, threadKey('other'))).toBeUndefined();
    expect(readThreadNote((await store.take(OWNER, threadKey('thread'))) ?? '')).toEqual(note);
    expect(await store.take(OWNER, threadKey('thread'))).toBeUndefined();
  });

  test.each([
    ['first', true],
    ['last', false],
  ])('is about the later of two runs when that is salvaged %s', async (_, laterFirst) => {
    const store = notes();
    const earlier = threadNote(cut('earlier', 1000));
    const later = threadNote(cut('later', 2000));
    for (const note of laterFirst ? [later, earlier] : [earlier, later])
      await leaveThreadNote(store, OWNER, 'thread', note, 1000);
    expect(readThreadNote((await store.take(OWNER, threadKey('thread'))) ?? '')).toEqual(later);
  });
});

describe('a salvaged run', () => {
  const salvaged = (
    status: SalvagedRun['end']['status'],
    more: Partial<SalvagedRun> = {},
    said = ['Kelp'],
  ): SalvagedRun => ({
    run: newRunId(),
    owner: OWNER,
    end: { status, at_ms: AT_MS, cause: 'replica_lost' },
    journal: foldJournal([HEADER_RECORD, ...(said.length > 0 ? [textRecord(0, ...said)] : [])]),
    givenUp: false,
    ...more,
  });

  test('has its thread told about the partial', () => {
    const run = salvaged('recovered_from_partial', {}, ['Kelp', ' grips']);
    expect(salvageNote(run)).toEqual({
      run: run.run,
      created_at_ms: HEADER.created_at_ms,
      status: 'recovered_from_partial',
      interrupted_at: '2026-11-21T12:00:00.000Z',
      model: 'gpt-test',
      cause: 'replica_lost',
      partial_tail: 'Kelp grips',
    });
  });

  test.each<[string, SalvagedRun]>([
    ['nothing was cut', salvaged('complete')],
    ['nothing was said', salvaged('failed', {}, [])],
    ['it left its note when it was given up', salvaged('failed', { givenUp: true })],
  ])('has nothing to tell when %s', (_, run) => {
    expect(salvageNote(run)).toBeUndefined();
  });
});
