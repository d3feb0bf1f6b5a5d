import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { TOOLS } from '../simulation/arbitraries.ts';
import { Fleet } from '../simulation/fleet.ts';
import { assertInvariants } from '../simulation/invariants.ts';
import { type Simulation, type SimulationOptions, simulate } from '../simulation/simulate.ts';
import { readStream } from '../simulation/stream-reading.ts';
import { BREST, dropping, PARIS, PARIS_AGAIN, PLANS, SCENES } from './repeated-calls-scenes.ts';

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
