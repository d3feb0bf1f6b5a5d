import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Configuration } from '../../src/config/configuration.ts';
import { WorkerPool } from '../../src/workers/worker-pool.ts';
import { WorkerFailure, type WorkerProcess } from '../../src/workers/worker-process.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';

/** How a worker ends. */
interface End {
  readonly lives_ms: number;
  /** The exit code; 1 by default. */
  readonly code?: number;
  /** Whether it ends before it serves. */
  readonly isUnable?: true;
}

const AT_ONCE: End = { lives_ms: 5 };

/**
 * A pool whose workers end as `ends` says, by worker number and in order. Later successors live on, and so do workers
 * with other numbers.
 */
function poolOf(ends: Readonly<Record<number, readonly End[]>>) {
  const time = new VirtualTime();
  const begun: { readonly number: number; readonly at_ms: number }[] = [];
  const ended: { readonly number: number; readonly at_ms: number }[] = [];
  const allEnded = Promise.withResolvers<void>();
  let left = Object.values(ends).flat().length;
  const begin = ({ number }: { readonly number: number }): WorkerProcess => {
    const end = ends[number]?.[begun.filter((worker) => worker.number === number).length];
    begun.push({ number, at_ms: time.now() });
    if (left === 0) allEnded.resolve();
    const exited = Promise.withResolvers<{ code: number | null; signal: string | null }>();
    const exit = (code: number) => {
      worker.isListening = false;
      ended.push({ number, at_ms: time.now() });
      exited.resolve({ code, signal: null });
    };
    const worker = {
      number,
      pid: begun.length,
      isListening: end?.isUnable !== true,
      started: Promise.resolve(),
      exited: exited.promise,
      stop: () => exit(0),
    };
    if (end?.isUnable) worker.started = Promise.reject(new WorkerFailure('CommandFailure', 'no port'));
    if (end)
      time.after(end.lives_ms, () => {
        left--;
        exit(end.code ?? 1);
      });
    return worker as unknown as WorkerProcess;
  };
  const handlers = { onStart() {}, onChange() {}, onEnd() {} };
  const pool = new WorkerPool(2, pino({ level: 'silent' }), handlers, { time, begin });
  onTestFinished(() => pool.stop(0));
  const start = () => time.drive(pool.start(() => ({}) as Configuration));
  /** How long the place of each ended worker with this number stayed empty, in order. */
  const pauses = (number: number): number[] => {
    const successors = begun.filter((worker) => worker.number === number).slice(1);
    const ends = ended.filter((worker) => worker.number === number);
    return successors.map(({ at_ms }, index) => at_ms - (ends[index]?.at_ms ?? Number.NaN));
  };
  return { time, pool, start, allEnded: allEnded.promise, begun, pauses };
}

describe('the successor of a worker', () => {
  test('waits twice as long after each one that died at once, up to ten seconds', async () => {
    const { time, start, allEnded, pauses } = poolOf({ 1: Array(8).fill(AT_ONCE) });
    await start();
    await time.drive(allEnded);
    expect(pauses(1)).toEqual([200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    expect(pauses(2)).toEqual([]);
  });

  test.each([
    ['has lived for half a minute', { lives_ms: 30_001 }],
    ['has ended in good order', { ...AT_ONCE, code: 0 }],
  ])('does not wait after one that %s, and the pauses are short again', async (_, end) => {
    const { time, start, allEnded, pauses } = poolOf({ 1: [AT_ONCE, AT_ONCE, end, AT_ONCE, AT_ONCE] });
    await start();
    await time.drive(allEnded);
    expect(pauses(1)).toEqual([200, 400, 0, 200, 400]);
  });

  test('waits after one that could not serve, and after each number by itself', async () => {
    const unable: End = { ...AT_ONCE, isUnable: true };
    const { time, start, allEnded, pauses } = poolOf({ 1: [unable, unable], 2: [{ lives_ms: 700 }] });
    await start();
    await time.drive(allEnded);
    expect(pauses(1).slice(0, 2)).toEqual([200, 400]);
    expect(pauses(2)).toEqual([200]);
  });

  test('does not come where the pool is stopped meanwhile', async () => {
    const { time, pool, start, begun } = poolOf({ 1: [AT_ONCE] });
    await start();
    await time.drive(new Promise<void>((resolve) => time.after(100, resolve)));
    expect(begun).toHaveLength(2);
    await time.drive(pool.stop(0));
    await time.drive(new Promise<void>((resolve) => time.after(1000, resolve)));
    expect(begun).toHaveLength(2);
  });
});
