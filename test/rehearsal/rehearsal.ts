import { setTimeout as pause } from 'node:timers/promises';
import type { HoldfastProcess } from '../e2e/holdfast-process.ts';
import type { Slot } from './haproxy.ts';
import { type Findings, Scene, type SceneOptions } from './scene.ts';
import { Stage } from './stage.ts';

const REPLICAS = 3;

/**
 * Replaces three replicas one by one with SIGTERM. The successors of the first two start before their predecessors
 * stop; the last one starts afterwards, in the same slot.
 */
export async function rehearseRollout(options: SceneOptions): Promise<Findings> {
  const stage = await Stage.set(options);
  try {
    const [first, second, third, spare] = stage.slots as [Slot, Slot, Slot, Slot];
    const places = [first, second, third];
    const running = await Promise.all(places.map((slot) => stage.start(slot)));
    const scene = new Scene(stage, options);
    await scene.seated();
    let free = spare;
    for (const [index, slot] of places.entries()) {
      const isLast = slot === third;
      if (!isLast) await stage.start(free);
      scene.leaves(slot, options.drain_ms);
      const { code, signal } = await (running[index] as HoldfastProcess).stop();
      scene.left(slot, 'is gone');
      if (code !== 0) scene.wentWrong(`${slot.name} ended with ${code ?? signal}`);
      if (isLast) await stage.start(slot);
      free = slot;
    }
    return await scene.findings();
  } finally {
    await stage.clear();
  }
}

/** Stops the replica that has all the streams, and kills it after `grace_ms`, before it has drained. */
export async function rehearseEviction(
  options: SceneOptions & { readonly grace_ms: number },
): Promise<Findings> {
  const { grace_ms } = options;
  const stage = await Stage.set(options);
  try {
    const [crowded, ...others] = stage.slots as [Slot, ...Slot[]];
    const replica = await stage.start(crowded);
    const scene = new Scene(stage, options);
    await scene.seated();
    await Promise.all(others.slice(0, REPLICAS - 1).map((slot) => stage.start(slot)));
    scene.leaves(crowded, grace_ms);
    process.kill(replica.pid, 'SIGTERM');
    await pause(grace_ms);
    await replica.kill('SIGKILL');
    scene.left(crowded, 'was killed');
    return await scene.findings();
  } finally {
    await stage.clear();
  }
}
