import { setTimeout as pause } from 'node:timers/promises';
import { assertIntact, type Bench, countWindow, type Figures } from '../figures.ts';
import type { Target } from '../target.ts';

export interface ShortShape {
  /** Each connection requests the next answer as soon as the last one ends. */
  readonly connections: number;
  readonly events_each: number;
  readonly warm_up_ms: number;
  readonly window_ms: number;
}

/** Measures answers so short that starting and ending a run dominates their cost. */
export async function measureShort(bench: Bench, target: Target, shape: ShortShape): Promise<Figures> {
  const { load } = bench;
  await load.open(target, { connections: shape.connections, events: shape.events_each, repeat: true });
  await pause(shape.warm_up_ms);
  const counted = await countWindow(bench, target, () => pause(shape.window_ms));
  assertIntact(target, await load.finish());
  return { ...counted, ...(await load.timings()).last };
}
