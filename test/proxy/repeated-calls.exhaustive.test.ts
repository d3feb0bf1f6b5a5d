import { test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { simulate } from '../simulation/simulate.ts';
import { assertTakeoverInvariants } from '../simulation/takeover-invariants.ts';
import { type Fate, simulateTakeovers } from '../simulation/takeovers.ts';
import { dropping, PLANS, SCENES } from './repeated-calls-scenes.ts';

test.each(SCENES)(
  'a call that is repeated %s, with Holdfast-Events: %s, is delivered once, whichever replica is lost, wherever',
  { timeout: 60_000 },
  async (name, events) => {
    const plan = PLANS[name] as Plan;
    const { stream } = await simulate(plan, dropping(events));
    const fates: Fate[] = [];
    for (let event = 0; event <= stream.events; event++)
      fates.push({ kind: 'event', event }, { kind: 'hand_over', event });
    for (let append = 1; append <= 6; append++)
      fates.push({ kind: 'append', append, stored: true }, { kind: 'append', append, stored: false });
    for (const fate of fates) {
      for (const manner of ['wrapper', 'anew'] as const) {
        for (const durability of ['interval', 'write_ahead'] as const) {
          const options = { ...dropping(events), manner, durability, fates: [fate] };
          const run = await simulateTakeovers(plan, options);
          try {
            assertTakeoverInvariants(plan, options, run);
          } catch (error) {
            throw new Error(`${manner}, ${durability}, ${JSON.stringify(fate)}`, { cause: error });
          }
        }
      }
    }
  },
);
