import { describe, expect, test } from 'vitest';
import type { EventsMode } from '../../../src/proxy/wires/common/wire.ts';
import { expectedAnswer } from '../../provider/expected.ts';
import type { Plan } from '../../provider/script.ts';
import { TOOLS } from '../../simulation/arbitraries.ts';
import { chatRequest } from '../../simulation/simulate.ts';
import { assertTakeoverInvariants } from '../../simulation/takeover-invariants.ts';
import {
  type Fate,
  type Manner,
  simulateTakeovers,
  type TakeoverOptions,
} from '../../simulation/takeovers.ts';

const call = (id: string) => ({ id, name: 'forecast', arguments: '{"city":"北京"}' });

/** Every phase of an answer in its shortest form, and whatever may follow a call. */
const PLANS: Readonly<Record<string, Plan>> = {
  'reasoning, text, a call': {
    parts: [
      { reasoning: 'First a thought.' },
      { text: 'Für 北京 I look 🙂 at the weather.' },
      { tool: call('call_a') },
    ],
  },
  'calls at once, then text': {
    parts: [{ tools: [call('call_a'), call('call_b')] }, { text: 'These two, and no more.' }],
  },
  text: { parts: [{ text: 'Kelp grips the rock\n\nthrough the surge and does not let go.' }] },
};
const APPENDS = 6;

interface Scene {
  readonly manner: Manner;
  readonly durability: TakeoverOptions['durability'];
  readonly events: EventsMode;
}

const SCENES: readonly Scene[] = (['wrapper', 'event_id', 'anew'] as const).flatMap((manner) =>
  (['interval', 'write_ahead'] as const).flatMap((durability) =>
    (['none', 'chunks'] as const).map((events) => ({ manner, durability, events })),
  ),
);

async function lose(plan: Plan, scene: Scene, ...fates: Fate[]): Promise<void> {
  const options = { ...scene, fates, request: { tools: TOOLS } };
  const run = await simulateTakeovers(plan, options);
  try {
    assertTakeoverInvariants(plan, options, run);
    if (run.outcome !== 'recovered' || scene.events !== 'none') return;
    // Where the parts of two replicas join, several tokens may be one event, or white space may come again.
    const { usage } = expectedAnswer(plan, chatRequest(options.request) as never);
    const { prompt_tokens, completion_tokens } = run.stream.usage ?? {};
    expect(prompt_tokens).toBe(usage.prompt_tokens);
    expect(Math.abs(Number(completion_tokens) - usage.completion_tokens)).toBeLessThanOrEqual(fates.length);
  } catch (error) {
    throw new Error(`${JSON.stringify(scene)}, ${JSON.stringify(fates)}`, { cause: error });
  }
}

describe.each(Object.entries(PLANS))('%s', (_, plan) => {
  test('the replica is lost at every event, and at every append', { timeout: 60_000 }, async () => {
    const { stream } = await simulateTakeovers(plan, { manner: 'anew', durability: 'interval', fates: [] });
    for (const scene of SCENES) {
      for (let event = 0; event <= stream.events; event++) await lose(plan, scene, { kind: 'event', event });
      for (let append = 1; append <= APPENDS; append++) {
        await lose(plan, scene, { kind: 'append', append, stored: false });
        await lose(plan, scene, { kind: 'append', append, stored: true });
      }
    }
  });

  test('and its successor at every event after that', { timeout: 60_000 }, async () => {
    const { stream } = await simulateTakeovers(plan, { manner: 'anew', durability: 'interval', fates: [] });
    for (const scene of SCENES.filter(({ events, manner }) => events === 'none' && manner !== 'event_id')) {
      for (let first = 0; first < stream.events; first++) {
        const rest = scene.manner === 'anew' ? stream.events : stream.events - first;
        for (let second = 0; second <= rest; second++)
          await lose(plan, scene, { kind: 'event', event: first }, { kind: 'event', event: second });
      }
    }
  });
});
