import { assertIntact, type Bench, countWindow, type Figures } from '../figures.ts';
import type { Target } from '../target.ts';

export interface StartsShape {
  /** Clients that connect and send a request at the same moment. */
  readonly clients: number;
  /** Volleys per round. */
  readonly volleys: number;
  readonly events_each: number;
  readonly interval_us: number;
}

/** Measures how long the last client waits for its first token when many start at once. */
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
