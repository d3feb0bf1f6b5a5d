import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { EventsMode } from '../../src/proxy/wires/common/wire.ts';
import type { Plan, ToolCall } from '../provider/script.ts';
import { TOOLS } from '../simulation/arbitraries.ts';
import { Fleet } from '../simulation/fleet.ts';
import { assertInvariants } from '../simulation/invariants.ts';
import { type Simulation, type SimulationOptions, simulate } from '../simulation/simulate.ts';
import { readStream } from '../simulation/stream-reading.ts';
import { assertTakeoverInvariants } from '../simulation/takeover-invariants.ts';
import { type Fate, simulateTakeovers } from '../simulation/takeovers.ts';

const forecast = (id: string, text: string): ToolCall => ({ id, name: 'forecast', arguments: text });
const PARIS = forecast('call_a', '{"city":"Paris","days":3}');
const PARIS_AGAIN = forecast('call_b', '{ "days": 3, "city": "Paris" }');
const BREST = forecast('call_c', '{"city":"Brest","days":3}');
const PLANS: Readonly<Record<string, Plan>> = {
  'one after the other': { parts: [{ tool: PARIS }, { tool: PARIS_AGAIN }, { tool: BREST }] },
  'at once': { parts: [{ tools: [PARIS, PARIS_AGAIN] }, { tool: BREST }] },
  'whole, with text between': {
    parts: [{ tool: PARIS }, { text: 'Once more.' }, { tool: PARIS_AGAIN }, { tool: BREST }],
    tool_shape: 'whole',
  },
  'at the end': { parts: [{ text: 'I look.' }, { tool: BREST }, { tool: PARIS }, { tool: PARIS_AGAIN }] },
};
const MODES = ['none', 'chunks', 'comments'] as const;
const SCENES = Object.keys(PLANS).flatMap((name) => MODES.map((events) => [name, events] as const));

const dropping = (events: EventsMode): SimulationOptions => ({
  events,
  request: { tools: TOOLS },
  recovery: { drop_repeated_calls: true },
});

async function answer(plan: Plan, options: SimulationOptions): Promise<Simulation> {
  const run = await simulate(plan, options);
  assertInvariants(plan, options, run);
  return run;
}

describe.each(SCENES)('a call that is repeated %s, with Holdfast-Events: %s', (name, events) => {
  const plan = PLANS[name] as Plan;

  test('is delivered as it came, unless it is told to be dropped', async () => {
    const { stream, journal } = await answer(plan, { events, request: { tools: TOOLS } });
    expect(stream.toolCalls).toContainEqual(PARIS_AGAIN);
    expect(stream.toolCalls).toHaveLength(3);
    expect(journal.cancelled_calls).toEqual([]);
  });

  test('is delivered once, at the next position, and the answer ends as it did', async () => {
    const { stream, journal, outcome } = await answer(plan, dropping(events));
    expect(outcome).toBe('complete');
    expect(new Set(stream.toolCalls)).toEqual(new Set([PARIS, BREST]));
    expect(stream.finish).toBe('tool_calls');
    expect(journal.cancelled_calls.map(({ id }) => id)).toEqual(events === 'none' ? [] : ['call_b']);
  });

  test('is cancelled where it was seen', async () => {
    const { stream } = await answer(plan, dropping(events));
    const cancel = { type: 'ToolCallCancel', id: 'call_b', name: 'forecast', reason: 'repeated', attempt: 1 };
    expect(stream.advisories).toEqual(events === 'none' ? [] : [cancel]);
  });

  test('is delivered once, wherever the answer is cut', async () => {
    const options = dropping(events);
    const { stream } = await simulate(plan, options);
    for (let event = 0; event < stream.events; event++)
      await answer({ ...plan, faults: [{ kind: 'reset', at: { event } }] }, options);
  });

  test('is delivered once, whichever replica is lost, wherever', { timeout: 60_000 }, async () => {
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
  });
});

test.each(['chunks', 'comments'] as const)(
  'a client that comes back gets the same, with %s',
  async (events) => {
    const fleet = new Fleet(PLANS['at once'] as Plan, dropping(events));
    const { outcome } = fleet.begin(fleet.replica());
    await fleet.time.drive(outcome);
    const back = await fleet.follow(fleet.replica());
    await fleet.time.drive(back.outcome);
    const { toolCalls, advisories } = readStream(back.client.body, { live: true });
    expect(new Set(toolCalls)).toEqual(new Set([PARIS, BREST]));
    expect(advisories).toMatchObject([{ type: 'ToolCallCancel', id: 'call_b', reason: 'repeated' }]);
  },
);

test('the log tells once how many calls were dropped, and nothing of what they said', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const parts = [PARIS, PARIS_AGAIN, { ...PARIS_AGAIN, id: 'call_d' }].map((tool) => ({ tool }));
  await simulate({ parts }, { ...dropping('none'), log });
  expect(lines).toMatchObject([{ level: 30, calls: 2, msg: 'repeated tool calls dropped' }]);
  expect(JSON.stringify(lines)).not.toContain('Paris');
});
