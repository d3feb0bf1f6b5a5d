import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import { AgreedNumbers } from '../../../src/proxy/tasks/agreed-numbers.ts';
import type { NumberedList } from '../../../src/proxy/tasks/numbered-names.ts';
import { CASES } from '../../cases.ts';
import { OWNER } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const TTL_MS = 3_600_000;
const LIST: NumberedList = { owner: OWNER, name: 'list', era: '' };

function replicas() {
  const time = new VirtualTime();
  const { notes } = new MemoryStore({ time, ttl_ms: TTL_MS });
  const replicaOf = () =>
    new AgreedNumbers({
      notes,
      kind: 'task_call',
      turn: 'call_number',
      ttl_ms: TTL_MS,
      numbers_max: 1000,
    });
  return { notes, time, replicaOf };
}

describe('a list of names', () => {
  it('gives a name that was removed the next number, and no number twice', async () => {
    const { replicaOf } = replicas();
    const names = replicaOf();
    for (const name of ['a', 'b', 'c']) await names.numberOf(LIST, name, 0);
    await names.remove(LIST, { number: 2, name: 'b' });
    expect(await names.names(LIST, 1, 3)).toEqual([
      { number: 1, name: 'a' },
      { number: 3, name: 'c' },
    ]);
    expect(await names.numberOf(LIST, 'b', 0)).toBe(4);
  });

  it('numbers all names that three replicas add at once', async () => {
    const { notes, replicaOf } = replicas();
    const random = fc.sample(fc.nat({ max: 3 }), { seed: 1, numRuns: 100_000 }).values();
    const claim = notes.claim.bind(notes);
    // With random delays, as in a network, no replica is always the first.
    notes.claim = async (...words) => {
      for (let turns = random.next().value ?? 0; turns > 0; turns--) await setImmediate();
      return claim(...words);
    };
    const three = [replicaOf(), replicaOf(), replicaOf()];
    const adding = Array.from({ length: 300 }, (_, nth) => three[nth % 3]?.numberOf(LIST, `name ${nth}`, 0));
    const numbers = await Promise.all(adding);
    expect(numbers.toSorted((one, other) => Number(one) - Number(other))).toEqual(
      Array.from({ length: 300 }, (_, index) => index + 1),
    );
  });

  it('goes on where one name could not be numbered', async () => {
    const { notes, replicaOf } = replicas();
    const names = replicaOf();
    vi.spyOn(notes, 'claim').mockRejectedValueOnce(new Error('away'));
    const refused = expect(names.numberOf(LIST, 'a', 0)).rejects.toThrow('away');
    expect(await names.numberOf(LIST, 'b', 0)).toBe(1);
    await refused;
  });

  it('that was emptied begins anew at a replica that knows it by its new era', async () => {
    const { replicaOf } = replicas();
    const [one, other] = [replicaOf(), replicaOf()];
    for (const name of ['a', 'b']) await one.numberOf(LIST, name, 0);
    for (const each of await other.names(LIST, 1, 2)) await other.remove(LIST, each);
    expect(await one.numberOf({ ...LIST, era: 'second' }, 'c', 0)).toBe(1);
    expect(await other.numberOf({ ...LIST, era: 'second' }, 'd', 0)).toBe(2);
  });

  it('has a name keep its number for longer, unless another name has it', async () => {
    const { time, replicaOf } = replicas();
    const names = replicaOf();
    await names.numberOf(LIST, 'a', 0);
    time.skip(TTL_MS - 1);
    expect(await names.keep(LIST, { number: 1, name: 'a' })).toBe(true);
    expect(await names.keep(LIST, { number: 1, name: 'b' })).toBe(false);
    time.skip(TTL_MS - 1);
    expect(await names.nameAt(LIST, 1)).toBe('a');
  });
});

test('each name has one number and each number one name, however many replicas number them at once', async () => {
  const requests = fc.array(fc.record({ replica: fc.nat({ max: 2 }), name: fc.nat({ max: 5 }) }), {
    minLength: 1,
    maxLength: 12,
  });
  let contended = 0;
  await fc.assert(
    fc.asyncProperty(requests, fc.scheduler(), async (asked, scheduler) => {
      const { notes, replicaOf } = replicas();
      for (const method of ['claim', 'get', 'put'] as const) {
        const real = notes[method].bind(notes) as (...words: unknown[]) => Promise<never>;
        notes[method] = async (...words: unknown[]) => {
          await scheduler.schedule(Promise.resolve(), method);
          return real(...words);
        };
      }
      const three = [replicaOf(), replicaOf(), replicaOf()];
      const numbering = asked.map(async ({ replica, name }) => {
        const number = await three[replica]?.numberOf(LIST, `name ${name}`, 0);
        return { name, number };
      });
      const numbered = await scheduler.waitFor(Promise.all(numbering));
      const pairs = new Set(numbered.map(({ name, number }) => `${name} ${number}`));
      const names = new Set(asked.map(({ name }) => name));
      const numbers = new Set(numbered.map(({ number }) => number));
      expect(pairs.size).toBe(names.size);
      // All numbers from 1 upwards.
      expect(numbers).toEqual(new Set(Array.from({ length: names.size }, (_, index) => index + 1)));
      if (names.size > 1) contended++;
    }),
    { numRuns: CASES },
  );
  expect(contended).toBeGreaterThan(CASES / 2);
});
