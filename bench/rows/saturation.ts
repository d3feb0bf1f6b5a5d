import { assertIntact, type Bench, countWindow, type Figures } from '../figures.ts';
import type { Target } from '../target.ts';

export interface SaturationShape {
  readonly streams: number;
  readonly events_each: number;
}

/** The window spans the streams' lifetime: the result is the time that a fixed number of events takes. */
export async function measureSaturation(
  bench: Bench,
  target: Target,
  shape: SaturationShape,
): Promise<Figures> {
  const { load } = bench;
  const untilAllHaveEnded = async () => {
    await load.open(target, { connections: shape.streams, events: shape.events_each });
    assertIntact(target, await load.finish());
  };
  const counted = await countWindow(bench, target, untilAllHaveEnded);
  return { ...counted, ...(await load.timings()).last };
}
