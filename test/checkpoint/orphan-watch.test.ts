import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OrphanWatch } from '../../src/checkpoint/salvage.ts';
import type { Orphan } from '../../src/checkpoint/store.ts';
import { CASES } from '../cases.ts';
import { newRunId, OWNER } from './fixtures.ts';

const AFTER_MS = 1000;
const orphan = (epoch = 1): Orphan => ({ run: newRunId(), owner: OWNER, epoch });

describe('an orphan', () => {
  test('is due once it was seen for long enough, and stays due', () => {
    const watch = new OrphanWatch(AFTER_MS);
    const lost = orphan();
    expect(watch.due([lost], true, 5000)).toEqual([]);
    expect(watch.due([lost], true, 5999)).toEqual([]);
    expect(watch.due([lost], true, 6000)).toEqual([lost]);
    expect(watch.due([lost], true, 6001)).toEqual([lost]);
  });

  test('that had a holder in between is watched anew', () => {
    const watch = new OrphanWatch(AFTER_MS);
    const lost = orphan();
    watch.due([lost], true, 0);
    watch.due([], true, 500);
    expect(watch.due([lost], true, 1000)).toEqual([]);
    expect(watch.due([lost], true, 2000)).toEqual([lost]);
  });

  test('that was taken over and lost between two looks is watched anew', () => {
    const watch = new OrphanWatch(AFTER_MS);
    const lost = orphan();
    const again = { ...lost, epoch: 2 };
    watch.due([lost], true, 0);
    expect(watch.due([again], true, 1000)).toEqual([]);
    expect(watch.due([again], true, 2000)).toEqual([again]);
  });

  test('is remembered while the listing is cut short', () => {
    const watch = new OrphanWatch(AFTER_MS);
    const [lost, other] = [orphan(), orphan()];
    watch.due([lost], false, 0);
    watch.due([other], false, 500);
    expect(watch.due([lost], false, 1000)).toEqual([lost]);
  });

  test('is watched anew once it was forgotten', () => {
    const watch = new OrphanWatch(AFTER_MS);
    const lost = orphan();
    watch.due([lost], true, 0);
    watch.forget(lost.run);
    expect(watch.due([lost], true, 1000)).toEqual([]);
  });
});

test('what is remembered is bounded: the oldest sightings go', () => {
  const watch = new OrphanWatch(AFTER_MS);
  const lost = Array.from({ length: 10_001 }, () => orphan());
  watch.due(lost, false, 0);
  expect(watch.due([lost[0] as Orphan], false, 1000)).toEqual([]);
  expect(watch.due([lost[10_000] as Orphan], false, 1000)).toHaveLength(1);
});

test('no orphan is ever due that was not seen through one whole wait', () => {
  const looks = fc.array(
    fc.record({ seen: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }), gap_ms: fc.nat(700) }),
  );
  const runs = [orphan(), orphan(), orphan()];
  fc.assert(
    fc.property(looks, (sequence) => {
      const watch = new OrphanWatch(AFTER_MS);
      const since_ms: (number | undefined)[] = [undefined, undefined, undefined];
      let now_ms = 0;
      for (const { seen, gap_ms } of sequence) {
        now_ms += gap_ms;
        for (const [position, is] of seen.entries())
          since_ms[position] = is ? (since_ms[position] ?? now_ms) : undefined;
        const due = watch.due(
          runs.filter((_, position) => seen[position]),
          true,
          now_ms,
        );
        const expected = runs.filter((_, position) => now_ms - (since_ms[position] ?? now_ms) >= AFTER_MS);
        expect(due).toEqual(expected);
      }
    }),
    { numRuns: CASES },
  );
});
