import { describe, expect, test } from 'vitest';
import { CheckpointCadence } from '../../src/checkpoint/checkpoint-scheduler.ts';
import { textEvent } from './fixtures.ts';
import { INTERVAL_MS, Situation } from './journal-situation.ts';

function observed(latency_ms: number, times = 100): CheckpointCadence {
  const cadence = new CheckpointCadence(INTERVAL_MS);
  for (let i = 0; i < times; i++) cadence.observe(latency_ms);
  return cadence;
}

describe('the time that journals wait', () => {
  test.each([
    ['is as configured before anything was stored', 0, 1],
    ['is as configured while the store answers within a quarter of it', 25, 1],
    ['is four times what the store takes', 50, 2],
    ['is ten times as configured at most', 250, 10],
    ['is ten times as configured at most, however slow the store is', 60_000, 10],
  ])('%s', (_, latency_ms, stretch) => {
    expect(observed(latency_ms).stretch).toBeCloseTo(stretch, 5);
  });

  test('is not given up for one answer that took long', () => {
    const cadence = observed(5);
    cadence.observe(60_000);
    expect(cadence.stretch).toBeLessThan(2.5);
  });

  test('is as configured again soon after the store has recovered', () => {
    const cadence = observed(1000);
    let answers = 0;
    for (; cadence.stretch > 1; answers++) cadence.observe(5);
    expect(answers).toBeLessThan(15);
  });
});

describe('a journal whose store is slow', () => {
  /** Records ten events per interval for a minute; returns the number of store calls and the outcome. */
  async function record(latency_ms: number) {
    const situation = new Situation();
    situation.store.latency_ms = latency_ms;
    const journal = await situation.open();
    let text = '';
    for (let i = 0; i < 6000; i++) {
      text += i % 10;
      journal.record(textEvent(String(i % 10)));
      await situation.pass(INTERVAL_MS / 10);
    }
    const { calls } = situation.store;
    expect(await situation.time.drive(journal.close({ status: 'complete' }))).toBe(true);
    expect(await situation.storedText()).toBe(text);
    return { calls, degraded: journal.degraded };
  }

  test('is stored as often as configured while it answers soon', async () => {
    const { calls } = await record(5);
    expect(calls).toBeGreaterThan(500);
  });

  test('is stored less often, but at least every ten intervals', async () => {
    const { calls, degraded } = await record(400);
    expect(degraded).toBe(false);
    expect(calls).toBeLessThan(80);
    expect(calls).toBeGreaterThanOrEqual(40);
  });

  test('has its first content and its closed calls stored at once all the same', async () => {
    const situation = new Situation();
    for (let i = 0; i < 100; i++) situation.scheduler.cadence.observe(10_000);
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    expect(situation.seqs).toEqual([[0, 1]]);
    // The cadence also observes this fast call, but one of them hardly changes its stretch.
    expect(situation.scheduler.cadence.stretch).toBeGreaterThan(5);
    journal.record(textEvent('b'));
    await situation.pass(2 * INTERVAL_MS);
    expect(situation.seqs).toEqual([[0, 1]]);
    journal.record({ deltas: [{ kind: 'tool_close', index: 0, proof: 3 }] });
    await situation.settle();
    expect(situation.seqs).toEqual([[0, 1], [3]]);
  });

  test('is stored at once when it is flushed', async () => {
    const situation = new Situation();
    for (let i = 0; i < 100; i++) situation.scheduler.cadence.observe(10_000);
    const journal = await situation.open();
    journal.record(textEvent('a'));
    await situation.settle();
    journal.record(textEvent('b'));
    expect(await journal.flush()).toBe(true);
    expect(await situation.storedText()).toBe('ab');
  });
});
