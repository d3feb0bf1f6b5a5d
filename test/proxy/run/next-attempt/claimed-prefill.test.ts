import { expect, test } from 'vitest';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { OBEDIENT, PREFILLED } from '../../../plans/seam/manners.ts';
import type { Plan } from '../../../provider/script.ts';
import { simulate } from '../../../simulation/simulate.ts';

const TEXT =
  'Kelp grips the rock through the surge, and lets go of nothing at all; what is torn off grows again from the holdfast.';

/** The first attempt is cut. `continuation`: how the target answers a request for the rest. */
async function run(continuation: Partial<Plan>, memories: CapabilityMemory[] = []) {
  const cut: Plan = { parts: [{ text: TEXT }], faults: [{ kind: 'reset', at: { event: 12 } }] };
  const simulation = await simulate(
    (attempt) => (attempt === 1 ? cut : { parts: [{ text: TEXT }], ...continuation }),
    {
      dialect: 'vllm',
      capabilities: (time) => {
        memories[0] ??= new CapabilityMemory(time);
        return memories[0];
      },
    },
  );
  const asked = simulation.requests.map(({ body }) => body.messages.at(-1)?.role);
  return { asked, stream: simulation.stream, learnt: memories[0]?.prefill('default', 'model') };
}

test('a dialect that claims an exact prefill is asked by one', async () => {
  const { asked, stream, learnt } = await run({ prefilled: 'exact' });
  expect(asked).toEqual(['user', 'assistant']);
  expect([stream.text, stream.done]).toEqual([TEXT, true]);
  expect(learnt).toBeUndefined();
});

test('a gateway that drops the fields of the dialect makes the model answer anew: the client sees no text twice', async () => {
  const memories: CapabilityMemory[] = [];
  const dropped: Partial<Plan> = {
    says: { prefill: PREFILLED['answers anew'], nudge: OBEDIENT['repeats the anchor'] },
  };
  const first = await run(dropped, memories);
  expect(first.asked).toEqual(['user', 'assistant', 'user']);
  expect([first.stream.text, first.stream.done]).toEqual([TEXT, true]);
  expect(first.learnt).toBe('new_turn');

  const second = await run(dropped, memories);
  expect(second.asked).toEqual(['user', 'user']);
  expect(second.stream.text).toBe(TEXT);
});
