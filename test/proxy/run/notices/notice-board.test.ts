import pino from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { Notes } from '../../../../src/checkpoint/notes.ts';
import { completeConfiguration } from '../../../../src/config/load.ts';
import { leaveLostCallNote, lostCallNote } from '../../../../src/proxy/run/notices/lost-calls.ts';
import {
  NoticeBoard,
  type NoticedRequest,
  type PendingNotices,
  wantsNotices,
} from '../../../../src/proxy/run/notices/notice-board.ts';
import { leaveThreadNote, threadNote } from '../../../../src/proxy/run/notices/thread-notice.ts';
import { newRunId, OWNER, STRANGER } from '../../../checkpoint/fixtures.ts';
import { call, transcriptOf } from '../../../plans/saying.ts';
import { DEFAULTS } from '../../../simulation/simulate.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const TTL_MS = 604_800_000;
const CALL = { id: 'call_a', name: 'now', arguments: '{}' };

/** A store whose notes answer late or fail, and that records what was asked. */
class SlowStore extends MemoryStore {
  delay_ms = 0;
  failing = false;
  readonly asked: string[] = [];
  override readonly notes: Notes;

  constructor(time: VirtualTime) {
    super({ time, ttl_ms: TTL_MS });
    const prompt = new MemoryStore({ time, ttl_ms: TTL_MS }).notes;
    const late = async <Result>(name: string, answer: () => Promise<Result>): Promise<Result> => {
      this.asked.push(name);
      const result = await answer();
      if (this.delay_ms > 0) await new Promise<void>((resolve) => time.after(this.delay_ms, resolve));
      if (this.failing) throw new Error('no route to store');
      return result;
    };
    this.notes = {
      put: (...note) => late('put', () => prompt.put(...note)),
      claim: (...note) => late('claim', () => prompt.claim(...note)),
      get: (owner, key) => late('get', () => prompt.get(owner, key)),
      extend: (...note) => late('extend', () => prompt.extend(...note)),
      consume: (owner, key) => late('take', () => prompt.consume(owner, key)),
    };
  }
}

class Replica {
  readonly time = new VirtualTime();
  readonly store = new SlowStore(this.time);
  readonly lines: { readonly msg: string; readonly [field: string]: unknown }[] = [];
  readonly #board = new NoticeBoard({
    time: this.time,
    store: this.store,
    configuration: DEFAULTS,
    log: pino({ base: null }, { write: (line) => void this.lines.push(JSON.parse(line)) }),
  });

  take(request: Partial<NoticedRequest> = {}): Promise<PendingNotices | undefined> {
    return this.drive(this.#board.claim({ owner: OWNER, answered: [], ...request }));
  }

  async leave({ run = newRunId(), created_at_ms = 0, text = 'Kelp' } = {}): Promise<void> {
    const end = { status: 'failed', cause: 'provider_5xx' } as const;
    const note = threadNote({ run, created_at_ms, interrupted_at_ms: 0, model: 'm', end, text, calls: [] });
    await this.drive(leaveThreadNote(this.store.notes, OWNER, 'thread', note, TTL_MS));
  }

  async loseCall(run = newRunId()): Promise<void> {
    const note = lostCallNote(run, [CALL], transcriptOf(call(1, 'tides')).toolCalls);
    if (note) await this.drive(leaveLostCallNote(this.store.notes, OWNER, note, TTL_MS));
  }

  drive<Result>(work: Promise<Result>): Promise<Result> {
    return this.time.drive(work);
  }

  pass(delay_ms: number): Promise<void> {
    return this.drive(new Promise<void>((resolve) => this.time.after(delay_ms, resolve)));
  }
}

const SILENT = 'models are told of nothing that was cut off: the store does not answer';
const textsOf = (pending: PendingNotices | undefined) => pending?.notices.map(({ text }) => text) ?? [];
const told = (partial: string) => [expect.stringContaining(`"partial_tail":"${partial}"`)];

describe('a thread', () => {
  test('is reported once', async () => {
    const replica = new Replica();
    await replica.leave();
    const pending = await replica.take({ thread: 'thread' });
    expect(textsOf(pending)).toEqual(told('Kelp'));
    await replica.drive(pending?.settle('told') ?? Promise.resolve());
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
  });

  test('is reported once, however many ask at the same time', async () => {
    const replica = new Replica();
    await replica.leave();
    const asked = Array.from({ length: 20 }, () => replica.take({ thread: 'thread' }));
    expect((await Promise.all(asked)).flatMap(textsOf)).toEqual(told('Kelp'));
  });

  test.each<[string, Partial<NoticedRequest>]>([
    ['another thread', { thread: 'other' }],
    ['another owner', { thread: 'thread', owner: STRANGER }],
    ['nobody', {}],
  ])('is not mistaken for %s', async (_, request) => {
    const replica = new Replica();
    await replica.leave();
    expect(await replica.take(request)).toBeUndefined();
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('is told by the next request when the model has not read this one', async () => {
    const replica = new Replica();
    await replica.leave();
    const pending = await replica.take({ thread: 'thread' });
    await replica.drive(pending?.settle('unseen') ?? Promise.resolve());
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('is told what is newer than the notice that came back', async () => {
    const replica = new Replica();
    await replica.leave({ created_at_ms: 1, text: 'older' });
    const pending = await replica.take({ thread: 'thread' });
    await replica.leave({ created_at_ms: 2, text: 'newer' });
    await replica.drive(pending?.settle('unseen') ?? Promise.resolve());
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('newer'));
  });

  test('is reported once what is left once more after that', async () => {
    const replica = new Replica();
    const run = newRunId();
    await replica.leave({ run });
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
    await replica.leave({ run });
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
    await replica.leave();
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('is told what is left once more if the model has not read it', async () => {
    const replica = new Replica();
    const run = newRunId();
    await replica.leave({ run });
    const pending = await replica.take({ thread: 'thread' });
    await replica.leave({ run });
    await replica.drive(pending?.settle('unseen') ?? Promise.resolve());
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
  });

  test('is not asked to tell again what its provider refuses, and the log says so', async () => {
    const replica = new Replica();
    await replica.leave();
    const pending = await replica.take({ thread: 'thread' });
    await replica.drive(pending?.settle('refused') ?? Promise.resolve());
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
    expect(replica.lines.map(({ msg }) => msg)).toEqual(['notice dropped: the provider refuses it']);
    expect(JSON.stringify(replica.lines)).not.toContain('Kelp');
  });
});

describe('a lost call', () => {
  test('is delivered once, with the result of a call beside it', async () => {
    const replica = new Replica();
    await replica.loseCall();
    expect(await replica.take()).toBeUndefined();
    expect(textsOf(await replica.take({ answered: [CALL] }))).toEqual([expect.stringContaining('`tides`')]);
    expect(await replica.take({ answered: [CALL] })).toBeUndefined();
  });

  test('is reported once, however many requests bring results', async () => {
    const replica = new Replica();
    await replica.loseCall();
    const asked = Array.from({ length: 20 }, () => replica.take({ answered: [CALL] }));
    expect((await Promise.all(asked)).flatMap(textsOf)).toHaveLength(1);
  });

  test('is told by the next request when the model has not read this one', async () => {
    const replica = new Replica();
    await replica.loseCall();
    const pending = await replica.take({ answered: [CALL] });
    await replica.drive(pending?.settle('unseen') ?? Promise.resolve());
    expect(textsOf(await replica.take({ answered: [CALL] }))).toHaveLength(1);
  });

  test('is reported once, left twice', async () => {
    const replica = new Replica();
    const run = newRunId();
    await replica.loseCall(run);
    expect(textsOf(await replica.take({ answered: [CALL] }))).toHaveLength(1);
    await replica.loseCall(run);
    expect(await replica.take({ answered: [CALL] })).toBeUndefined();
  });

  test('is told beside a partial', async () => {
    const replica = new Replica();
    await replica.leave();
    await replica.loseCall();
    const pending = await replica.take({ thread: 'thread', answered: [CALL] });
    expect(pending?.notices.map(({ place }) => place)).toEqual(['instructions', 'tool_results']);
  });
});

describe('the store', () => {
  test('is not asked about a request that has no results and is of no thread', async () => {
    const replica = new Replica();
    await replica.take();
    expect(replica.store.asked).toEqual([]);
  });

  test('is not waited for, and what it gives too late is put back', async () => {
    const replica = new Replica();
    await replica.leave();
    replica.store.delay_ms = 2000;
    const began_ms = replica.time.now();
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
    expect(replica.time.now() - began_ms).toBe(250);
    await replica.pass(10_000);
    replica.store.delay_ms = 0;
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('may give what it has at the very last moment', async () => {
    const replica = new Replica();
    await replica.leave();
    // The store is asked twice: for the note, and for the right to deliver it.
    replica.store.delay_ms = 124;
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('may fail: no notice is delivered, nothing is thrown, and the log says so', async () => {
    const replica = new Replica();
    await replica.leave();
    replica.store.failing = true;
    expect(await replica.take({ thread: 'thread', answered: [CALL] })).toBeUndefined();
    expect(replica.lines.map(({ msg }) => msg)).toEqual([SILENT]);
  });

  test('may fail to say which request carries the notice: the next one does', async () => {
    const replica = new Replica();
    await replica.leave();
    vi.spyOn(replica.store.notes, 'claim').mockRejectedValueOnce(new Error('no route to store'));
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
    await replica.pass(5000);
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('that failed is not asked again for a while', async () => {
    const replica = new Replica();
    await replica.leave();
    replica.store.failing = true;
    await replica.take({ thread: 'thread' });
    replica.store.failing = false;
    const asked = replica.store.asked.length;
    await replica.pass(4999);
    expect(await replica.take({ thread: 'thread' })).toBeUndefined();
    expect(replica.store.asked).toHaveLength(asked);
    await replica.leave();
    await replica.pass(1);
    expect(textsOf(await replica.take({ thread: 'thread' }))).toEqual(told('Kelp'));
  });

  test('may fail to take a notice back, or take its time: no request waits', async () => {
    const replica = new Replica();
    await replica.leave();
    const pending = await replica.take({ thread: 'thread' });
    replica.store.delay_ms = 10_000;
    replica.store.failing = true;
    const began_ms = replica.time.now();
    await replica.drive(pending?.settle('unseen') ?? Promise.resolve());
    expect(replica.time.now() - began_ms).toBe(250);
    await replica.pass(20_000);
    expect(replica.lines.map(({ msg }) => msg)).toEqual(['notice lost: the store would not take it back']);
  });
});

describe('notices are wanted', () => {
  const configuration = (notices: boolean) =>
    completeConfiguration({ upstreams: { main: { base_url: 'http://x.test/v1' } }, resume: { notices } });

  test('unless the request or the configuration says otherwise', () => {
    expect(wantsNotices(undefined, configuration(true))).toBe(true);
    expect(wantsNotices('none', configuration(true))).toBe(false);
    expect(wantsNotices(undefined, configuration(false))).toBe(false);
  });

  test('or the header cannot be understood', () => {
    expect(() => wantsNotices('all', configuration(true))).toThrow('Holdfast-Notices');
  });
});
