import { describe, expect, it } from 'vitest';
import { systemTime } from '../../src/lib/time.ts';
import { BoardHistory } from '../../src/status/board-history.ts';

describe('the last quarter of an hour', () => {
  it('is counted in slots of half a minute, of which the last is under way', () => {
    let now_ms = 1000;
    const history = new BoardHistory({ ...systemTime, now: () => now_ms });
    const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
    history.add('begun');
    history.add('begun');
    now_ms += 60_000;
    history.add('begun');
    history.add('failed');
    const { slot_ms, begun, failed, rescued } = history.read();
    expect(slot_ms * begun.length).toBe(900_000);
    expect(begun.slice(-3)).toEqual([2, 0, 1]);
    expect(failed.slice(-3)).toEqual([0, 0, 1]);
    expect(sum(rescued)).toBe(0);

    // Two slots have counts: the first one drops out, then the second one.
    now_ms += 810_000;
    expect(sum(history.read().begun)).toBe(3);
    now_ms += 30_000;
    expect(sum(history.read().begun)).toBe(1);
    now_ms += 60_000;
    expect(sum(history.read().begun)).toBe(0);
    now_ms += 1e9;
    history.add('rescued');
    expect(history.read().rescued.at(-1)).toBe(1);
  });
});
