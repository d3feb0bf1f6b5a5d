import { describe, expect, it } from 'vitest';
import { MemoryNotes } from '../../src/checkpoint/memory/notes.ts';
import type { Notes } from '../../src/checkpoint/notes.ts';
import type { Sign } from '../../src/status/fleet.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import { fleetOf, INTERVAL_MS } from './fleet-of.ts';

const DEAD_AFTER_MS = 3 * INTERVAL_MS;

function createStore() {
  const time = new VirtualTime();
  const notes = new MemoryNotes(time, new Map());
  return { time, notes };
}

const pass = async (time: VirtualTime, ms: number) => {
  await time.drive(new Promise<void>((resolve) => void time.after(ms, resolve)));
};

const run = (time: VirtualTime, work: () => Promise<void>) => time.drive(work());

describe('the fleet', () => {
  it('has every replica of the store, with its state and its runs, and says which one is asked', async () => {
    const { time, notes } = createStore();
    let said: Sign = { status: 'serving', runs: 7 };
    const one = fleetOf({ time, notes, name: 'b', sign: () => said });
    const other = fleetOf({ time, notes, name: 'a' });
    await run(time, async () => {
      await Promise.all([one.beat(), other.beat()]);
      expect(await other.read()).toMatchObject([
        { name: 'a', self: true, state: 'serving', runs: 0, release: '1.2.3' },
        { name: 'b', self: false, state: 'serving', runs: 7 },
      ]);
      said = { status: 'draining', runs: 2 };
      await one.beat();
    });
    await pass(time, 2000);
    await run(time, async () => {
      expect((await other.read())[1]).toMatchObject({ name: 'b', state: 'draining', runs: 2 });
    });
  });

  it('has a replica that fell silent as dead, without runs, until its successor takes its seat', async () => {
    const { time, notes } = createStore();
    const one = fleetOf({ time, notes, name: 'one' });
    const killed = fleetOf({ time, notes, name: 'killed' });
    await run(time, async () => void (await Promise.all([one.beat(), killed.beat()])));
    await pass(time, DEAD_AFTER_MS);
    await run(time, async () => {
      await one.beat();
      const members = await one.read();
      expect(members.map(({ name, state, runs }) => [name, state, runs])).toEqual([
        ['killed', 'dead', undefined],
        ['one', 'serving', 0],
      ]);
      await fleetOf({ time, notes, name: 'killed' }).beat();
    });
    await pass(time, 2000);
    await run(time, async () => {
      expect((await one.read()).map(({ name, state }) => [name, state])).toEqual([
        ['killed', 'serving'],
        ['one', 'serving'],
      ]);
    });
  });

  it('forgets a replica that was stopped in good order', async () => {
    const { time, notes } = createStore();
    const one = fleetOf({ time, notes, name: 'one' });
    const stopped = fleetOf({ time, notes, name: 'stopped' });
    await run(time, async () => {
      await Promise.all([one.beat(), stopped.beat()]);
      await stopped.close();
      expect(await one.read()).toMatchObject([{ name: 'one' }]);
    });
  });

  it('keeps its seat for as long as it lives, and gives a sign of life at every interval', async () => {
    const { time, notes } = createStore();
    const one = fleetOf({ time, notes, name: 'one' });
    const other = fleetOf({ time, notes, name: 'other' });
    one.start();
    await pass(time, 2 * 3_600_000);
    await run(time, async () => {
      expect(await other.read()).toMatchObject([
        { name: 'one', state: 'serving' },
        { name: 'other', self: true },
      ]);
    });
    await one.close();
  });

  it('takes the seat of a dead replica where there is no other', async () => {
    const { time, notes } = createStore();
    const all = Array.from({ length: 64 }, (_, nth) => fleetOf({ time, notes, name: `replica ${nth}` }));
    await run(time, async () => {
      for (const each of all) await each.beat();
    });
    await pass(time, DEAD_AFTER_MS);
    const late = fleetOf({ time, notes, name: 'late' });
    const viewer = fleetOf({ time, notes, name: 'viewer', isShared: true });
    await run(time, async () => {
      await late.beat();
      expect((await viewer.read()).filter(({ state }) => state === 'serving')).toMatchObject([
        { name: 'late' },
        { name: 'viewer' },
      ]);
    });
  });

  it('does not know how the others are while the store does not answer', async () => {
    const { time, notes } = createStore();
    let fails = false;
    const failing: Notes = {
      put: (...note) => notes.put(...note),
      claim: (...note) => notes.claim(...note),
      extend: (...note) => notes.extend(...note),
      consume: (...note) => notes.consume(...note),
      get: (...note) => (fails ? Promise.reject(new Error('it is away')) : notes.get(...note)),
    };
    const one = fleetOf({ time, notes: failing, name: 'one' });
    const other = fleetOf({ time, notes, name: 'other' });
    await run(time, async () => {
      await Promise.all([one.beat(), other.beat()]);
      expect((await one.read())[1]).toMatchObject({ state: 'serving' });
    });
    fails = true;
    await pass(time, 2000);
    await run(time, async () => {
      const members = await one.read();
      expect(members.map(({ name, state, runs }) => [name, state, runs])).toEqual([
        ['one', 'serving', 0],
        ['other', 'unknown', undefined],
      ]);
    });
  });

  it('is this replica alone where no other process can have the store', async () => {
    const { time, notes } = createStore();
    const other = fleetOf({ time, notes, name: 'other' });
    const alone = fleetOf({ time, notes, name: 'alone', isShared: false });
    await run(time, async () => {
      await other.beat();
      alone.start();
      expect(await alone.read()).toMatchObject([{ name: 'alone', self: true }]);
    });
  });

  it('passes over what it cannot read', async () => {
    const { time } = createStore();
    const texts = ['no JSON', '{}', '{"id":1,"name":"x","release":"y","started_at_ms":3}', '[]'];
    const odd: Notes = {
      put: async () => {},
      claim: async (_owner, _key, value) => value,
      extend: async () => {},
      consume: async () => undefined,
      get: async (_owner, { name }) => texts[Number(name) % texts.length],
    };
    const one = fleetOf({ time, notes: odd, name: 'one' });
    await run(time, async () => {
      expect(await one.read()).toMatchObject([{ name: 'one' }]);
    });
  });
});
