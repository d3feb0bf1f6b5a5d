import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import { type NumberedList, NumberedNames } from '../../../src/proxy/tasks/numbered-names.ts';
import { CASES } from '../../cases.ts';
import { OWNER } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const LIST: NumberedList = { owner: OWNER, name: 'list', era: '' };

function replicas(numbers_max = 1000) {
  const ttl_ms = 3_600_000;
  const { notes } = new MemoryStore({ time: new VirtualTime(), ttl_ms });
  const replicaOf = () => new NumberedNames({ notes, kind: 'task_step', ttl_ms, numbers_max });
  return { notes, replicaOf };
}

it('finds the last number of a name, at a replica that has not seen the list', async () => {
  const { replicaOf } = replicas();
  const names = replicaOf();
  for (let number = 1; number <= 250; number++) await names.add(LIST, `name ${number % 240}`, 0);
  const other = replicaOf();
  expect(await other.find(LIST, 'name 7', 0)).toBe(247);
  expect(await other.find(LIST, 'name 11', 0)).toBe(11);
  expect(await other.find(LIST, 'name 240', 0)).toBeUndefined();
});

it('finds nothing in an empty list', async () => {
  expect(await replicas().replicaOf().find(LIST, 'name', 0)).toBeUndefined();
});

it('gives no number above the highest one', async () => {
  const names = replicas(2).replicaOf();
  const added = [];
  for (const name of ['a', 'b', 'c']) added.push(await names.add(LIST, name, 0));
  expect(added).toEqual([1, 2, undefined]);
});

test('names that replicas add at once have numbers without a gap, and none twice', async () => {
  const adding = fc.array(fc.nat({ max: 2 }), { minLength: 2, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(adding, fc.scheduler(), async (by, scheduler) => {
      const { notes, replicaOf } = replicas();
      for (const method of ['claim', 'get'] as const) {
        const real = notes[method].bind(notes) as (...words: unknown[]) => Promise<never>;
        notes[method] = async (...words: unknown[]) => {
          await scheduler.schedule(Promise.resolve(), method);
          return real(...words);
        };
      }
      const three = [replicaOf(), replicaOf(), replicaOf()];
      const numbers = await scheduler.waitFor(
        Promise.all(by.map((replica, nth) => three[replica]?.add(LIST, `name ${nth}`, 0))),
      );
      expect(numbers.toSorted((one, other) => Number(one) - Number(other))).toEqual(
        by.map((_, index) => index + 1),
      );
    }),
    { numRuns: CASES },
  );
});
