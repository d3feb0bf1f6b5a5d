import { describe, expect, it } from 'vitest';
import { MemoryBudget } from '../../../src/lib/memory-budget.ts';
import { HAND_OVER, LEFT } from '../../../src/proxy/run/context/run.ts';
import { ActiveRun, type DetachTimeout } from '../../../src/proxy/run/run-registry.ts';
import { newRunId, OWNER } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const RUN = newRunId();
const DETACHED_MS = 1000;

const newRun = () => new ActiveRun(OWNER, new MemoryBudget().share(), { onAnswered() {}, onEnd() {} });

const aborted = ({ signal }: ActiveRun): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

/** A resumable run whose client has left. `readers`: how many of the first checks find a reader. */
function detachedRun(readers: number) {
  const time = new VirtualTime();
  const asked: unknown[] = [];
  const detached: unknown[] = [];
  const grace: DetachTimeout = {
    time,
    detached_ms: DETACHED_MS,
    isRead: async (...question) => asked.push(question) <= readers,
    onDetached: (...noted) => detached.push([time.now(), ...noted]),
  };
  const run = newRun();
  run.outlive(RUN, grace);
  run.leave();
  return { time, run, asked, detached };
}

describe('a run whose client leaves', () => {
  it('is over at once', () => {
    const run = newRun();
    run.leave();
    expect(run.signal.aborted).toBe(true);
    expect(run.signal.reason).toBe(LEFT);
  });

  it('continues for detached_ms if it is resumable', async () => {
    const { time, run, asked } = detachedRun(0);
    expect(run.signal.aborted).toBe(false);
    await time.drive(aborted(run));
    expect(time.now()).toBe(DETACHED_MS);
    expect(run.signal.reason).toBe(LEFT);
    expect(asked).toEqual([[RUN, OWNER]]);
  });

  it('continues for detached_ms from the last time that a client read it', async () => {
    const { time, run, detached } = detachedRun(3);
    await time.drive(aborted(run));
    expect(time.now()).toBe(4 * DETACHED_MS);
    const starts = [0, 1, 2, 3].map((turn) => turn * DETACHED_MS);
    expect(detached).toEqual(starts.map((at_ms) => [at_ms, RUN, OWNER]));
  });

  it('is not taken for left when it is cancelled', () => {
    const run = newRun();
    run.cancel();
    run.leave();
    expect(run.signal.reason).not.toBe(LEFT);
  });

  it('is not noted as left once it is over', () => {
    const { run, detached } = detachedRun(0);
    run.handOver();
    run.leave();
    expect(detached).toHaveLength(1);
  });

  it('does not outlive its end', async () => {
    const { time, run, asked } = detachedRun(3);
    run.end();
    await time.drive(run.ended);
    expect(asked).toEqual([]);
    await expect(time.drive(new Promise(() => {}))).rejects.toThrow('never happen');
  });
});

it('a run that is handed over says so to its relay, whatever happens to its client', () => {
  const run = newRun();
  run.handOver();
  run.leave();
  run.end();
  expect(run.signal.reason).toBe(HAND_OVER);
});
