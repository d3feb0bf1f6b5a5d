import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { JournalEvent } from '../../src/checkpoint/journal.ts';
import { JournalWriter } from '../../src/checkpoint/journal-writer.ts';
import { JournalLostError } from '../../src/checkpoint/store.ts';
import type { Delta } from '../../src/plans/delta.ts';
import { caseShare } from '../cases.ts';
import { HEADER, HEADER_RECORD, OWNER, textEvent, textOf } from './fixtures.ts';
import { INTERVAL_MS, Situation } from './journal-situation.ts';

const ROLE: JournalEvent = { deltas: [] };
const eventOf = (...deltas: Delta[]): JournalEvent => ({ deltas });

describe('a journal is stored', () => {
  test('at once with its first content, behind its header', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(ROLE);
    await situation.settle();
    expect(situation.seqs).toEqual([]);
    journal.record(textEvent('a'));
    await situation.settle();
    const { at_ms } = situation.store.batches[0]?.[0] ?? {};
    expect(situation.store.batches).toEqual([
      [
        { ...HEADER_RECORD, at_ms },
        { seq: 2, at_ms, events: [ROLE, textEvent('a')] },
      ],
    ]);
    expect(at_ms).toBeTypeOf('number');
  });

  test('every interval after that', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    for (let i = 0; i < 10; i++) {
      journal.record(textEvent('x'));
      await situation.pass(30);
    }
    await situation.pass(INTERVAL_MS);
    expect(situation.seqs).toEqual([[0, 1], [4], [7], [10]]);
  });

  test('at once when 32 events have gathered', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    for (let i = 0; i < 33; i++) {
      journal.record(textEvent('x'));
      await situation.settle();
    }
    expect(situation.seqs).toEqual([[0, 1], [33]]);
  });

  test.each<[string, Delta[]]>([
    ['a tool call was closed', [{ kind: 'tool_close', index: 0, proof: 3 }]],
    [
      'a whole tool call came in one event',
      [
        { kind: 'tool_start', index: 0, id: 'call_a', name: 'f' },
        { kind: 'tool_arguments', index: 0, text: '{}' },
        { kind: 'tool_close', index: 0, proof: 2 },
      ],
    ],
    ['the answer is finished', [{ kind: 'finish', reason: 'stop' }]],
  ])('at once when %s', async (_, deltas) => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    await situation.settle();
    expect(situation.seqs).toEqual([[0, 1]]);
    journal.record(eventOf(...deltas));
    await situation.settle();
    expect(situation.seqs).toEqual([[0, 1], [3]]);
  });

  test('once, at whichever moment of an append something urgent is recorded', async () => {
    for (let moment = 0; moment < 30; moment++) {
      const situation = new Situation();
      const journal = await situation.open();
      journal.record(textEvent('a'));
      for (let turn = 0; turn < moment; turn++) await Promise.resolve();
      journal.record(eventOf({ kind: 'finish', reason: 'stop' }));
      await situation.settle();
      const seqs = situation.seqs.flat();
      expect(seqs, `after ${moment} turns`).toEqual([...new Set(seqs)]);
      expect(seqs.at(-1)).toBe(2);
    }
  });

  test('without a timer while there is nothing to store', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.pass(INTERVAL_MS * 2);
    await expect(situation.time.drive(new Promise(() => {}))).rejects.toThrow('waits for something');
  });

  test('with one timer for all runs', async () => {
    const situation = new Situation();
    let timers = 0;
    const time = situation.time;
    const after = time.after.bind(time);
    time.after = (delay_ms, callback) => {
      timers++;
      return after(delay_ms, callback);
    };
    const lease = await situation.store.acquire(situation.run, OWNER);
    const callbacks = { onAppend: () => {}, onError: () => {}, onStale: () => {} };
    for (let i = 0; i < 500; i++) {
      const { store, scheduler } = situation;
      new JournalWriter({ store, lease, scheduler, start: HEADER, ...callbacks }).record(ROLE);
    }
    expect(timers).toBe(1);
  });

  test('from where its predecessor stopped when it was taken over', async () => {
    const situation = new Situation();
    const first = await situation.open();
    first.record(textEvent('a'));
    await situation.settle();
    const lease = await situation.store.acquire(situation.run, OWNER, 1);
    const { store, scheduler } = situation;
    const unexpected = (error: unknown) => expect.unreachable(String(error));
    const callbacks = { onAppend: () => {}, onError: unexpected, onStale: unexpected };
    const second = new JournalWriter({ store, lease, scheduler, start: 1, ...callbacks });
    second.record(textEvent('b'));
    expect(second.seq).toBe(2);
    expect(await situation.time.drive(second.close({ status: 'complete' }))).toBe(true);
    expect(await situation.storedText()).toBe('ab');
  });
});

describe('a journal whose lease comes later', () => {
  test('stores nothing before it, and everything at once with it', async () => {
    const situation = new Situation();
    const journal = situation.openWith(undefined);
    journal.record(ROLE);
    journal.record(textEvent('a'));
    expect(await journal.flush()).toBe(false);
    await situation.pass(INTERVAL_MS * 3);
    expect(situation.seqs).toEqual([]);
    journal.begin(await situation.lease(), situation.time.now());
    await situation.settle();
    expect(situation.seqs).toEqual([[0, 2]]);
    expect(await situation.storedText()).toBe('a');
  });

  test('stores what need not hurry within the interval', async () => {
    const situation = new Situation();
    const journal = situation.openWith(undefined);
    journal.record(ROLE);
    await situation.pass(INTERVAL_MS * 3);
    journal.begin(await situation.lease(), situation.time.now());
    await situation.settle();
    expect(situation.seqs).toEqual([]);
    await situation.pass(INTERVAL_MS);
    expect(situation.seqs).toEqual([[0, 1]]);
  });

  test('takes nothing more once there will be none', async () => {
    const situation = new Situation();
    const journal = situation.openWith(undefined);
    journal.record(textEvent('a'));
    journal.begin(undefined, situation.time.now());
    expect(journal.isOver).toBe(true);
    journal.record(textEvent('b'));
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(false);
    expect(situation.errors).toEqual([]);
  });
});

describe('flushing', () => {
  test('resolves once everything recorded so far is stored', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    expect(journal.stored_seq).toBe(1);
    expect(await journal.flush()).toBe(true);
    expect(journal.stored_seq).toBe(2);
    expect(await situation.storedText()).toBe('ab');
  });

  test('covers what was recorded while an append was under way', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    const letGo = situation.store.hold();
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    const flushed = journal.flush();
    letGo();
    expect(await situation.time.drive(flushed)).toBe(true);
    expect(await situation.storedText()).toBe('ab');
  });

  test('does not hold a run back when the store fails', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    situation.store.failures = 3;
    journal.record(textEvent('a'));
    expect(await journal.flush()).toBe(false);
    expect(journal.degraded).toBe(true);
    journal.record(textEvent('b'));
    expect(await journal.flush()).toBe(false);
    await situation.pass(2000);
    expect(journal.degraded).toBe(false);
    journal.record(textEvent('c'));
    expect(await journal.flush()).toBe(true);
  });

  test('does not hold a run back when the store does not answer', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    const letGo = situation.store.hold();
    journal.record(textEvent('a'));
    const started_ms = situation.time.now();
    expect(await situation.time.drive(journal.flush())).toBe(false);
    expect(situation.time.now() - started_ms).toBeLessThanOrEqual(1000 + INTERVAL_MS);
    expect(journal.degraded).toBe(true);
    letGo();
    await situation.settle();
    expect(journal.degraded).toBe(false);
    expect(journal.stored_seq).toBe(1);
  });
});

describe('a store that fails', () => {
  test('is tried again, ever more slowly, and nothing is lost, doubled or reordered', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    situation.store.failures = 6;
    for (let i = 0; i < 100; i++) {
      journal.record(textEvent(String.fromCharCode(97 + (i % 26))));
      await situation.pass(100);
    }
    expect(situation.errors).toHaveLength(6);
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
    const text = Array.from({ length: 100 }, (_, i) => String.fromCharCode(97 + (i % 26))).join('');
    expect(await situation.storedText()).toBe(text);
    expect(situation.appends).toBe(situation.store.calls - 6);
  });

  test('and stored what it said it had not, is not given it twice', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    situation.store.failures = 2;
    situation.store.failAfterStoring = true;
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
    expect(await situation.storedText()).toBe('ab');
  });

  test('for good costs a bounded amount of memory, and the journal stays a true prefix', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('kept'));
    await situation.settle();
    situation.store.failures = Number.POSITIVE_INFINITY;
    journal.record(textEvent('x'));
    await situation.pass(INTERVAL_MS);
    for (let i = 0; i < 40; i++) journal.record(textEvent('x'.repeat(64 * 1024)));
    await situation.settle();
    expect(situation.errors.filter((error) => error instanceof JournalLostError)).toHaveLength(1);
    expect(journal.degraded).toBe(true);
    expect(journal.seq).toBe(42);
    situation.store.failures = 0;
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
    const stored = await situation.store.read(situation.run, OWNER, 0);
    expect(stored?.status).toBe('recovered_from_partial');
    expect(textOf(stored?.records ?? [])).toMatch(/^kept(x*)$/);
  });

  test('does not keep a finished run waiting for ever', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    situation.store.failures = Number.POSITIVE_INFINITY;
    const release = vi.spyOn(situation.store, 'release');
    journal.record(textEvent('a'));
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(false);
    expect(situation.time.now()).toBeLessThanOrEqual(10_000 + INTERVAL_MS);
    expect(situation.errors.at(-1)).toBeInstanceOf(JournalLostError);
    expect(release).toHaveBeenCalledOnce();
  });

  test('in whatever way, ends with a prefix of what was recorded, and with all of it once it works', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.string({ minLength: 1, maxLength: 3 }).map((text) => ({ text })) },
      { weight: 2, arbitrary: fc.nat(400).map((pass_ms) => ({ pass_ms })) },
      { weight: 1, arbitrary: fc.record({ failures: fc.nat(4), failAfterStoring: fc.boolean() }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const situation = new Situation();
        const journal = await situation.open();
        let recorded = '';
        for (const one of steps) {
          if ('text' in one) {
            recorded += one.text;
            journal.record(textEvent(one.text));
          } else if ('pass_ms' in one) {
            await situation.pass(one.pass_ms);
            expect(recorded.startsWith(await situation.storedText())).toBe(true);
          } else {
            Object.assign(situation.store, one);
          }
        }
        situation.store.failures = 0;
        expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
        expect(await situation.storedText()).toBe(recorded);
        expect(await situation.store.read(situation.run, OWNER, 0)).toMatchObject({ status: 'complete' });
      }),
      { numRuns: caseShare(80) },
    );
  });
});

describe('a lease that was taken over', () => {
  test('is reported once, and the journal stays quiet once there is no other', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    await situation.store.acquire(situation.run, OWNER, 1);
    journal.record(textEvent('b'));
    const flushed = journal.flush();
    expect(await situation.time.drive(flushed)).toBe(false);
    expect(situation.stale).toHaveLength(1);
    const { calls } = situation.store;
    journal.begin(undefined, 0);
    journal.record(textEvent('c'));
    expect(await journal.flush()).toBe(false);
    expect(await journal.close({ status: 'complete' })).toBe(false);
    await situation.pass(INTERVAL_MS);
    expect(situation.store.calls).toBe(calls);
    expect(situation.errors).toEqual([]);
    expect(await situation.storedText()).toBe('a');
  });
});

test('an event is as large as it is: while the store works, nothing is dropped for its size', async () => {
  const situation = new Situation();
  situation.store.latency_ms = 50;
  const journal = await situation.open();
  const document = 'x'.repeat(2 * 1024 * 1024);
  journal.record(textEvent(document));
  await situation.settle();
  journal.record(textEvent(document));
  journal.record(textEvent('.'));

  expect(journal.degraded).toBe(false);
  expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
  expect((await situation.storedText())?.length).toBe(2 * document.length + 1);
  const stored = await situation.store.read(situation.run, OWNER, 0);
  expect(stored?.status).toBe('complete');
});

describe('the end of a journal', () => {
  test('says what became of the run, why, and when', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.pass(1234);
    const closed = journal.close({ status: 'failed', cause: 'connection_reset' });
    expect(await situation.time.drive(closed)).toBe(true);
    const stored = await situation.store.read(situation.run, OWNER, 0);
    const at_ms = situation.time.wall();
    expect(stored?.end).toEqual({ status: 'failed', cause: 'connection_reset', at_ms });
  });

  test('can leave the run to another replica, with everything that was recorded', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    expect(await situation.time.drive(journal.release())).toBe(true);
    const stored = await situation.store.read(situation.run, OWNER, 0);
    expect(stored).toMatchObject({ status: 'running', holder: { state: 'released' }, seq: 2 });
    expect(await situation.storedText()).toBe('ab');
    journal.record(textEvent('c'));
    await situation.pass(INTERVAL_MS);
    expect(await situation.storedText()).toBe('ab');
    expect(situation.errors).toEqual([]);
  });

  test('can leave a run to another replica although the store fails at first', async () => {
    const situation = new Situation();
    const journal = await situation.open();
    situation.store.failures = 2;
    journal.record(textEvent('a'));
    expect(await situation.time.drive(journal.release())).toBe(true);
    expect(await situation.storedText()).toBe('a');
  });
});

describe('a lease that another one follows after it was lost', () => {
  /** Loses the lease after one event is stored and before the next one is. */
  async function lose() {
    const situation = new Situation();
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    const taken = await situation.store.acquire(situation.run, OWNER, 1);
    journal.record(textEvent('b'));
    await situation.pass(INTERVAL_MS);
    return { situation, journal, taken };
  }

  test('stores what was recorded until then, and meanwhile, and the end', async () => {
    const { situation, journal, taken } = await lose();
    expect(situation.stale).toHaveLength(1);
    journal.record(textEvent('c'));
    const closed = journal.close({ status: 'complete' });
    await situation.store.release(taken);
    expect(await situation.storedText()).toBe('a');

    journal.begin(await situation.store.acquire(situation.run, OWNER, 3), 0);
    expect(await situation.time.drive(closed)).toBe(true);
    expect(await situation.storedText()).toBe('abc');
    expect(situation.stale).toHaveLength(1);
  });

  test('holds so much in memory until then, and no more', async () => {
    const { situation, journal } = await lose();
    for (let size = 0; size < 2 * 1024 * 1024; size += 100_000)
      journal.record(textEvent('x'.repeat(100_000)));

    journal.begin(await situation.store.acquire(situation.run, OWNER, 2), 0);
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
    expect(await situation.storedText()).toBe('ab');
    expect(await situation.store.read(situation.run, OWNER, 0)).toMatchObject({
      status: 'recovered_from_partial',
    });
  });
});

test('a process that was stopped does not take the silence of its own sleep for that of the store', async () => {
  const situation = new Situation();
  const journal = await situation.open();
  const letGo = situation.store.hold();
  journal.record(textEvent('a'));
  await situation.settle();
  situation.time.skip(10_000);
  await situation.pass(INTERVAL_MS);
  await situation.store.acquire(situation.run, OWNER, 1);
  journal.record(textEvent('b'));
  let isAnswered = false;
  const flushed = journal.flush().finally(() => {
    isAnswered = true;
  });
  await situation.pass(INTERVAL_MS);
  expect(isAnswered).toBe(false);
  letGo();

  expect(await situation.time.drive(flushed)).toBe(false);
  expect(situation.stale).toHaveLength(1);
});
