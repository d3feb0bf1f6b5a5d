import { describe, expect, test } from 'vitest';
import type { JournalEvent, JournalRecord } from '../../src/checkpoint/journal.ts';
import { salvagedRun } from '../../src/checkpoint/salvaged-run.ts';
import type { StoredRun } from '../../src/checkpoint/store.ts';
import { HEADER_RECORD, newRunId, OWNER, SMALL_RUN, textEvent } from './fixtures.ts';

const AT_MS = 1_700_000_005_000;
const errorEvent = (cause: string): JournalEvent => ({
  deltas: [],
  payload: JSON.stringify({ error: { message: 'gone', holdfast: { run_id: 'run_x', cause } } }),
});

const stored = (records: readonly JournalRecord[], damage?: StoredRun['damage']): StoredRun => ({
  status: 'running',
  epoch: 1,
  holder: { state: 'lost' },
  takeovers: [],
  seq: records.at(-1)?.seq ?? 0,
  records,
  ...(damage && { damage }),
});

/** A journal of the header and these events. */
const saying = (...events: JournalEvent[]): readonly JournalRecord[] =>
  events.length === 0 ? [HEADER_RECORD] : [HEADER_RECORD, { seq: events.length, events }];

const endOf = (records: readonly JournalRecord[], damage?: StoredRun['damage']) =>
  salvagedRun(newRunId(), OWNER, stored(records, damage), AT_MS).end;

describe('an orphan ends as', () => {
  test.each<[string, readonly JournalRecord[], object]>([
    [
      'a partial when something was delivered',
      saying(textEvent('Kelp')),
      { status: 'recovered_from_partial', cause: 'replica_lost' },
    ],
    [
      'a partial when a call was settled',
      SMALL_RUN.slice(0, 3),
      { status: 'recovered_from_partial', cause: 'replica_lost' },
    ],
    [
      'a partial when it had only thought',
      saying({ deltas: [{ kind: 'reasoning', text: 'hm' }] }),
      { status: 'recovered_from_partial', cause: 'replica_lost' },
    ],
    ['complete when only the seal was missing', SMALL_RUN, { status: 'complete' }],
    ['failed when it never said anything', saying(), { status: 'failed', cause: 'replica_lost' }],
    ['failed without even a header', [], { status: 'failed', cause: 'replica_lost' }],
    [
      'failed when all it sent was a role',
      saying({ deltas: [], payload: '{"choices":[{"delta":{"role":"assistant"}}]}' }),
      { status: 'failed', cause: 'replica_lost' },
    ],
    [
      'failed when its client was told so',
      saying(textEvent('Kelp'), errorEvent('provider_5xx')),
      { status: 'failed', cause: 'provider_5xx' },
    ],
    [
      'timed out when its client was told so',
      saying(textEvent('Kelp'), errorEvent('idle_stall')),
      { status: 'timeout_partial', cause: 'idle_stall' },
    ],
    [
      'a partial when the provider calls a chunk an error that is none',
      saying({ deltas: [{ kind: 'text', text: 'x' }], payload: '{"error":null,"choices":[]}' }),
      { status: 'recovered_from_partial', cause: 'replica_lost' },
    ],
  ])('%s', (_, records, end) => {
    expect(endOf(records)).toEqual({ ...end, at_ms: AT_MS });
  });

  test('a partial when what followed the finish is damaged', () => {
    const damage = { record: 4, seq: 7, reason: 'checksum mismatch' };
    expect(endOf(SMALL_RUN, damage)).toMatchObject({ status: 'recovered_from_partial' });
  });
});

test('it is known whether the client got the error', () => {
  const givenUp = (...events: JournalEvent[]) =>
    salvagedRun(newRunId(), OWNER, stored(saying(...events)), AT_MS).givenUp;
  expect(givenUp(textEvent('Kelp'))).toBe(false);
  expect(givenUp(textEvent('Kelp'), errorEvent('provider_5xx'))).toBe(true);
});
