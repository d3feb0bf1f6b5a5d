import { describe, expect, test } from 'vitest';
import type { EpochName } from '../../../src/checkpoint/epoch.ts';
import type { JournalEvent } from '../../../src/checkpoint/journal.ts';
import type { Holder, RunId, StoredRun } from '../../../src/checkpoint/store.ts';
import { forkOf, reachable } from '../../../src/proxy/resume/reachable.ts';
import type { Position } from '../../../src/proxy/resume/reader.ts';
import { withEnding } from '../../../src/proxy/resume/stored-ending.ts';

const RUN: RunId = `run_${'0'.repeat(22)}`;
const HEADER = {
  wire: 'chat_completions',
  created_at_ms: 1_700_000_000_000,
  model: 'model',
  upstream: 'default',
  events: 'none',
} as const;

const chunk = (content: string): string =>
  JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] });
const kept = (content: string): JournalEvent => ({
  deltas: [{ kind: 'text', text: content }],
  payload: chunk(content),
});
const plain = (text: string): JournalEvent => ({ deltas: [{ kind: 'text', text }] });

/** Four events, `a` to `d`, of which only the first has its payload. */
function storedRun(changes: Partial<StoredRun> = {}): StoredRun {
  return {
    status: 'running',
    epoch: 1,
    holder: { state: 'lost' },
    takeovers: [],
    seq: 4,
    records: [
      { seq: 0, header: HEADER, events: [] },
      { seq: 2, events: [kept('a'), plain('b')] },
      { seq: 4, events: [plain('c'), plain('d')] },
    ],
    ...changes,
  };
}

const at = (cursor: number, tail: readonly string[] = [], epoch?: EpochName): Position => ({
  run: RUN,
  cursor,
  tail,
  ...(epoch !== undefined && { epoch }),
});
const alive: Holder = { state: 'alive', silent_ms: 0 };

describe('a client within the log', () => {
  test.each([0, 1, 3, 4])('after %i events', (cursor) => {
    expect(reachable(storedRun(), at(cursor))).toBe(true);
  });

  test('that says of its last events what the log says', () => {
    expect(reachable(storedRun(), at(3, [chunk('a'), chunk('b'), chunk('c')]))).toBe(true);
  });

  test.each([
    ['an event whose payload is stored', at(2, [chunk('x'), chunk('b')])],
    ['an event of which only the text is stored', at(3, [chunk('b'), chunk('x')])],
    ['an end where the log continues', at(3, [chunk('b'), '[DONE]'])],
  ])('that says otherwise of %s', (_, position) => {
    expect(reachable(storedRun(), position)).toBe(false);
  });

  test('that brings more events than it says it has', () => {
    expect(reachable(storedRun(), at(1, [chunk('a'), chunk('b')]))).toBe(false);
  });
});

describe('a client ahead of the log', () => {
  test('waits for a replica that lives', () => {
    expect(reachable(storedRun({ holder: alive }), at(6))).toBe(true);
  });

  test.each(['lost', 'released'] as const)('of a replica that is %s brings what is missing', (state) => {
    const stored = storedRun({ holder: { state } });

    expect(reachable(stored, at(6))).toBe(false);
    expect(reachable(stored, at(6, [chunk('f')]))).toBe(false);
    expect(reachable(stored, at(6, [chunk('e'), chunk('f')]))).toBe(true);
    expect(reachable(stored, at(6, [chunk('d'), chunk('e'), chunk('f')]))).toBe(true);
    expect(reachable(stored, at(6, [chunk('x'), chunk('e'), chunk('f')]))).toBe(false);
  });

  test('brings nothing that no run could have sent', () => {
    expect(reachable(storedRun(), at(5, ['{"choices":']))).toBe(false);
    expect(reachable(storedRun(), at(5, ['"text"']))).toBe(false);
    expect(reachable(storedRun(), at(5, ['[DONE] ']))).toBe(false);
  });

  test('is not ahead of a run that is over', () => {
    const end = { status: 'complete', at_ms: 1 } as const;
    const done = { seq: 5, events: [{ deltas: [], payload: '[DONE]' }] };
    const stored = storedRun({ status: 'complete', end, holder: { state: 'released' } });
    const whole = { ...stored, seq: 5, records: [...stored.records, done] };

    expect(reachable(whole, at(5))).toBe(true);
    expect(reachable(whole, at(6, [chunk('f')]))).toBe(false);
  });

  test('may have the error that ends a run which did not end itself, if it can show it', () => {
    const end = { status: 'recovered_from_partial', at_ms: 1 } as const;
    const stored = storedRun({ status: 'recovered_from_partial', end, holder: { state: 'released' } });
    const error = withEnding(RUN, stored).records.at(-1)?.events[0]?.payload ?? '';

    expect(reachable(stored, at(4))).toBe(true);
    expect(reachable(stored, at(5, [error]))).toBe(true);
    expect(reachable(stored, at(6))).toBe(false);
    // The client may have got more from a replica that couldn't store it.
    expect(reachable(stored, at(5))).toBe(false);
    expect(reachable(stored, at(5, [chunk('e')]))).toBe(false);
  });
});

describe('a client that knows the epoch of its last event', () => {
  const taken = (holder: Holder = { state: 'lost' }) =>
    storedRun({ epoch: 2, takeovers: [{ seq: 3 }], holder });

  test('has what came before the takeover', () => {
    expect(reachable(taken(), at(3, [], '1'))).toBe(true);
    expect(reachable(taken(), at(4, [], '2'))).toBe(true);
  });

  test('has not what its epoch lost, and another one put in its place', () => {
    expect(reachable(taken(), at(4, [], '1'))).toBe(false);
    expect(reachable(taken(alive), at(5, [], '1'))).toBe(false);
  });

  test('has it if it can tell what that is', () => {
    expect(reachable(taken(), at(4, [chunk('d')], '1'))).toBe(true);
    expect(reachable(taken(), at(4, [chunk('x')], '1'))).toBe(false);
    expect(reachable(taken(), at(5, [chunk('e')], '1'))).toBe(false);
  });

  test('that the log does not know: whatever the log had of it was lost', () => {
    expect(reachable(taken(), at(4, [], '3'))).toBe(false);
    expect(reachable(taken(alive), at(4, [chunk('d')], '3'))).toBe(false);
    expect(reachable(taken(), at(4, [chunk('a'), chunk('b'), chunk('c'), chunk('d')], '3'))).toBe(true);
    expect(reachable(taken(), at(0, [], '3'))).toBe(true);
  });

  test('that the log knows no more, and whose number another takeover has now', () => {
    const again = storedRun({ epoch: 2, takeovers: [{ seq: 3, mark: 'b2' }], holder: { state: 'lost' } });
    expect(reachable(again, at(4, [], '2-b2'))).toBe(true);
    expect(reachable(again, at(4, [], '2-a1'))).toBe(false);
    expect(reachable(again, at(4, [], '2'))).toBe(false);
    expect(reachable(again, at(3, [], '1'))).toBe(true);
  });
});

describe('a client that only counts its events', () => {
  const taken = (holder: Holder = { state: 'lost' }) =>
    storedRun({ epoch: 2, takeovers: [{ seq: 3 }], holder });

  test('has what no takeover can have replaced', () => {
    expect(reachable(storedRun(), at(4))).toBe(true);
    expect(reachable(taken(), at(3))).toBe(true);
    expect(reachable(taken(), at(0))).toBe(true);
  });

  test('may have what another replica put something else in the place of, unless it can tell', () => {
    expect(reachable(taken(), at(4))).toBe(false);
    expect(reachable(taken(alive), at(4))).toBe(false);
    expect(reachable(taken(), at(4, [chunk('d')]))).toBe(true);
    expect(reachable(taken(), at(4, [chunk('x')]))).toBe(false);
  });
});

describe('a client whose answer is another one than that of the log', () => {
  const taken = (changes: Partial<StoredRun> = {}) =>
    storedRun({ epoch: 2, takeovers: [{ seq: 2 }], holder: alive, ...changes });
  const forked = (stored: StoredRun, position: Position) => forkOf(stored, position)?.seq;

  test('has in common with it what both had before the takeover', () => {
    expect(forkOf(taken(), at(4, [chunk('x'), chunk('y')], '1'))).toEqual({
      status: 'running',
      epoch: 1,
      holder: { state: 'released' },
      takeovers: [],
      seq: 2,
      records: storedRun().records.slice(0, 2),
    });
  });

  test('and the takeover came in the middle of a record', () => {
    const records = forkOf(taken({ takeovers: [{ seq: 1 }] }), at(2, [chunk('x')]))?.records;
    expect(records).toEqual([
      { seq: 0, header: HEADER, events: [] },
      { seq: 1, events: [kept('a')] },
    ]);
  });

  test.each([
    ['running, and delivered', taken()],
    ['lost', taken({ holder: { state: 'lost' } })],
    ['complete', taken({ status: 'complete', end: { status: 'complete', at_ms: 1 } })],
    ['failed', taken({ status: 'failed', end: { status: 'failed', at_ms: 1 } })],
    ['left', taken({ status: 'cancelled', end: { status: 'cancelled', at_ms: 1, cause: 'client_left' } })],
  ])('keeps it although the run is %s', (_, stored) => {
    expect(forked(stored, at(4, [chunk('x'), chunk('y')], '1'))).toBe(2);
    expect(forked(stored, at(5, [chunk('b'), chunk('x'), chunk('y'), chunk('z')], '1'))).toBe(2);
  });

  test('is longer than that of a run that has ended', () => {
    const end = { status: 'complete', at_ms: 1 } as const;
    const stored = storedRun({ status: 'complete', end, holder: { state: 'released' } });
    expect(forked(stored, at(6, [chunk('e'), chunk('f')]))).toBe(4);
    expect(forked(stored, at(6, [chunk('f')]))).toBeUndefined();
  });

  test.each([
    ['leaves out events since the takeover', at(4, [chunk('y')], '1')],
    ['brings none of its events', at(4, [], '1')],
    ['says otherwise of what came before the takeover', at(3, [chunk('x'), chunk('y')], '1')],
    ['has only what came before the takeover', at(2, [chunk('x')], '1')],
    ['brings what no run could have sent', at(3, ['{"choices":'], '1')],
    ['brings more events than it says it has', at(3, Array(4).fill(chunk('x')), '1')],
  ])('has no run of its own if it %s', (_, position) => {
    expect(forked(taken(), position)).toBeUndefined();
  });

  test('has none after the run was cancelled', () => {
    const stored = taken({ status: 'cancelled', end: { status: 'cancelled', at_ms: 1 } });
    expect(forked(stored, at(4, [chunk('x'), chunk('y')], '1'))).toBeUndefined();
  });
});
