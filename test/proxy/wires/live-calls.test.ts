import { describe, expect, test } from 'vitest';
import type { Fault } from '../../provider/fault.ts';
import type { Plan } from '../../provider/script.ts';
import { TOOLS } from '../../simulation/arbitraries.ts';
import type { RecordingClient } from '../../simulation/recording-client.ts';
import { type Simulation, type SimulationOptions, simulate } from '../../simulation/simulate.ts';

const TEXT = 'I will look.';
const WHOLE = '{"city":"Paris","days":7,"list":[1,2,3,4,5,6,7,8,9]}';
const ARGUMENTS = { first: '{"city":"Lyon"}', second: WHOLE };
const call = (id: string, text: string) => ({ tool: { id, name: 'forecast', arguments: text } });
const PARTS: Plan['parts'] = [
  { text: TEXT },
  call('call_1', ARGUMENTS.first),
  call('call_2', ARGUMENTS.second),
];
const CALLS = [
  { id: 'call_1', name: 'forecast', arguments: ARGUMENTS.first },
  { id: 'call_2', name: 'forecast', arguments: ARGUMENTS.second },
];

const reset = (within: number): Fault => ({ kind: 'reset', at: { event: within } });
const ask = (plan: Partial<Plan>, options: SimulationOptions): Promise<Simulation> =>
  simulate(
    { parts: PARTS, tool_shape: 'openai', ...plan },
    { events: 'live', ...options, request: { tools: TOOLS, ...options.request } },
  );
describe.each(['chat_completions', 'messages', 'responses'] as const)('on %s', (wire) => {
  /** The positions at which a cut is within the arguments of a call, so that the request is repeated unchanged. */
  async function placesWithin(): Promise<readonly number[]> {
    const places: number[] = [];
    for (let place = 0; place < 40; place++) {
      const { requests } = await ask({ faults: [reset(place)] }, { wire });
      const [first, second] = requests.map(({ body }) => JSON.stringify(body));
      // Before the first call, the answer starts again, or its text is continued.
      if (first === second && place > 4) places.push(place);
    }
    return places;
  }

  test('calls are shown as they come', async () => {
    const writes = { live: 0, none: 0 };
    for (const events of ['live', 'none'] as const) {
      let seen = 0;
      const onWrite = ({ body }: RecordingClient) => {
        if (/"arguments":"|partial_json|arguments\.delta/.test(body.slice(seen))) writes[events]++;
        seen = body.length;
      };
      const { stream } = await ask({}, { wire, events, onWrite, piece_bytes: 90 });
      expect(stream).toMatchObject({ text: TEXT, toolCalls: CALLS, done: true, violations: [] });
    }
    expect(writes.live).toBeGreaterThan(8);
    expect(writes.none).toBeLessThan(6);
  });

  test('a call that is cut is continued where it was, and nothing tells of it', async () => {
    const places = await placesWithin();
    expect(places.length).toBeGreaterThan(8);
    for (const place of places) {
      const { stream, client, outcome } = await ask({ faults: [reset(place)] }, { wire });
      const said = `cut after ${place} events`;
      expect(stream, said).toMatchObject({ text: TEXT, toolCalls: CALLS, done: true, violations: [] });
      expect(outcome).toBe('recovered');
      expect(client.body).not.toContain('"holdfast"');
    }
  });

  test('parallel calls end before the text behind them begins, wherever they are cut', async () => {
    const parts = [
      { tools: [call('call_1', ARGUMENTS.first).tool, call('call_2', ARGUMENTS.second).tool] },
      { text: TEXT },
    ];
    for (let place = 0; place < 60; place++) {
      const { stream } = await ask({ parts, faults: [reset(place)] }, { wire, recovery: { tool_proof: 3 } });
      expect(stream, `cut after ${place} events`).toMatchObject({ done: true, violations: [] });
    }
  });

  test('a call that is cut twice as well', async () => {
    const places = await placesWithin();
    const [first = 0, last = 0] = [places[2], places.at(-1)];
    const { stream, requests } = await ask({ faults: [reset(first), reset(last)] }, { wire });
    expect(stream).toMatchObject({ text: TEXT, toolCalls: CALLS, done: true, violations: [] });
    expect(requests).toHaveLength(3);
  });

  test('a call that comes out otherwise is not mixed with what was shown: the answer ends with an error', async () => {
    const other = [
      PARTS[0],
      call('call_1', ARGUMENTS.first),
      call('call_2', '{"city":"Rome"}'),
    ] as Plan['parts'];
    const place = (await placesWithin()).at(-1) ?? 0;
    const plans = (attempt: number): Plan => ({
      parts: attempt === 1 ? PARTS : other,
      tool_shape: 'openai',
      faults: [reset(place)],
    });
    const { stream, outcome, journal } = await simulate(plans, {
      wire,
      events: 'live',
      request: { tools: TOOLS },
    });
    expect(stream.violations).toEqual([]);
    expect(stream.done).toBe(false);
    expect(stream.error).toBeDefined();
    expect(outcome).toBe('failed');
    expect(WHOLE.startsWith(stream.toolCalls.at(-1)?.arguments ?? '')).toBe(true);
    expect(journal.finish).toBeUndefined();
  });
});
