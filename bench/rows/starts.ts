import { assertIntact, type Bench, countWindow, type Figures } from '../figures.ts';
import type { Target } from '../target.ts';

export interface StartsShape {
  /** Clients that connect and ask at the same moment. */
  readonly clients: number;
  /** How often they do so within a round. */
  readonly volleys: number;
  readonly events_each: number;
  readonly interval_us: number;
}

/** How long the last of many who start at once waits for its first token. */
export async function measureStarts(bench: Bench, target: Target, shape: StartsShape): Promise<Figures> {
  const { load } = bench;
  const { clients, events_each, interval_us } = shape;
  const untilAllVolleysEnd = async () => {
    for (let volley = 0; volley < shape.volleys; volley += 1) {
      await load.open(target, { connections: clients, events: events_each, interval_us });
      assertIntact(target, await load.finish());
    }
  };
  const counted = await countWindow(bench, target, untilAllVolleysEnd);
  return { ...counted, ...(await load.timings()).last };
}
