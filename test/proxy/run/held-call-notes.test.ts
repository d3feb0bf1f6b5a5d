import { describe, expect, test } from 'vitest';
import { CheckpointScheduler } from '../../../src/checkpoint/checkpoint-scheduler.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { Delta } from '../../../src/plans/delta.ts';
import { Transcript } from '../../../src/plans/transcript.ts';
import type { RunContext } from '../../../src/proxy/run/context/run-context.ts';
import { HeldCallNotes, readHeldCalls } from '../../../src/proxy/run/notices/held-calls.ts';
import { OWNER, RUN, SILENT_LOG } from '../../simulation/simulate.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const INTERVAL_MS = 100;
const FRAGMENTS = 500;
const start = (index: number): Delta => ({
  kind: 'tool_start',
  index,
  id: `call_${index}`,
  name: 'forecast',
});
const fragment = (index: number): Delta => ({ kind: 'tool_arguments', index, text: '"' });
const close = (index: number): Delta => ({ kind: 'tool_close', index, proof: 3 });
const named = (...ids: string[]) => ids.map((id) => ({ id, name: 'forecast' }));

/** The notes of one run, and the requests to the store. */
function situation({ isNoted = false, delay_ms = 0 } = {}) {
  const time = new VirtualTime();
  const store = new MemoryStore({ time, ttl_ms: 60_000 });
  const did: string[] = [];
  const { put, consume } = store.notes;
  const wait = () => new Promise<void>((resolve) => time.after(delay_ms, resolve));
  Object.assign(store.notes, {
    put: async (...asked: Parameters<typeof put>) => {
      did.push('put');
      await wait();
      return put.apply(store.notes, asked);
    },
    consume: (...asked: Parameters<typeof consume>) => {
      did.push('consume');
      return consume.apply(store.notes, asked);
    },
  });
  const scheduler = new CheckpointScheduler({ interval_ms: INTERVAL_MS, time });
  const transcript = new Transcript();
  const configuration = { checkpoint: { ttl_s: 60 } };
  const context = { store, time, scheduler, configuration, log: SILENT_LOG } as unknown as RunContext;
  const run = { id: RUN, owner: OWNER } as never;
  const heldNow = () => ({
    calls: transcript.openCalls.map(({ id, name }) => ({ id, name })),
    settled: transcript.closedCalls.length,
  });
  const notes = new HeldCallNotes(run, context, { heldNow, isNoted });
  const say = (...deltas: Delta[]) => {
    for (const delta of deltas) {
      transcript.fold(delta);
      if (delta.kind === 'tool_start') notes.began();
    }
  };
  const pass = (ms: number) => time.drive(new Promise<void>((resolve) => time.after(ms, resolve)));
  return { time, did, notes, say, pass, noted: () => readHeldCalls(store.notes, OWNER, RUN) };
}

describe('a call that is held', () => {
  test('is noted once, however many fragments it has and however long it takes', async () => {
    const { say, pass, noted, did } = situation();
    say(start(0));
    for (let at = 0; at < FRAGMENTS; at++) {
      say(fragment(0));
      await pass(10);
    }
    expect(did).toEqual(['put']);
    expect(await noted()).toEqual({ calls: named('call_0'), settled: 0 });
  });

  test('is not noted when it is settled within the interval', async () => {
    const { say, pass, notes, did } = situation();
    say(start(0), fragment(0));
    await pass(INTERVAL_MS / 2);
    say(close(0));
    await pass(5 * INTERVAL_MS);
    await notes.end(true);
    expect(did).toEqual([]);
  });

  test('is noted beside those that are held with it, and without those that were settled', async () => {
    const { say, pass, noted, did } = situation();
    say(start(0), start(1));
    await pass(2 * INTERVAL_MS);
    expect(await noted()).toEqual({ calls: named('call_0', 'call_1'), settled: 0 });
    say(close(0), start(2));
    await pass(2 * INTERVAL_MS);
    expect(await noted()).toEqual({ calls: named('call_1', 'call_2'), settled: 1 });
    expect(did).toEqual(['put', 'put']);
  });
});

describe('at the end of the run', () => {
  test('the note of one that was answered whole is forgotten, after it was written', async () => {
    const { say, pass, notes, noted, did, time } = situation({ delay_ms: 30 });
    say(start(0));
    await pass(2 * INTERVAL_MS);
    say(close(0));
    await time.drive(notes.end(true));
    await pass(100);
    expect(did).toEqual(['put', 'consume']);
    expect(await noted()).toBeUndefined();
  });

  test('the note of another replica is forgotten, too', async () => {
    const { notes, pass, did } = situation({ isNoted: true });
    await notes.end(true);
    await pass(0);
    expect(did).toEqual(['consume']);
  });

  test('what is still held is noted by then', async () => {
    const { say, notes, noted, time } = situation({ delay_ms: 30 });
    say(start(0));
    await time.drive(notes.end(false));
    expect(await noted()).toEqual({ calls: named('call_0'), settled: 0 });
  });

  test('a slow store is not waited for', async () => {
    const { say, notes, time } = situation({ delay_ms: 60_000 });
    say(start(0));
    await time.drive(notes.end(false));
    expect(time.now()).toBeLessThan(1000);
  });

  test('nothing is written in the name of a run that is another replica’s', async () => {
    const { say, pass, notes, did } = situation();
    say(start(0));
    notes.stop();
    await pass(INTERVAL_MS);
    await notes.end(false);
    expect(did).toEqual([]);
  });
});
