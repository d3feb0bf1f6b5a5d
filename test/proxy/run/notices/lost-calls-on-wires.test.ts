import { describe, expect, test } from 'vitest';
import type { WireName } from '../../../../src/checkpoint/journal.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { Store } from '../../../../src/checkpoint/store.ts';
import { runWithLostCall } from '../../../../src/proxy/run/notices/lost-calls.ts';
import { WIRES } from '../../../../src/proxy/wires/registry.ts';
import { cutInCall } from '../../../provider/cut-in-call.ts';
import type { Part, Plan } from '../../../provider/script.ts';
import { TOOLS } from '../../../simulation/arbitraries.ts';
import { OWNER, RUN, type SimulationOptions, simulate } from '../../../simulation/simulate.ts';

const SAID: Part = { text: 'I look.' };
const forecast = (id: string, city: string) => ({
  id,
  name: 'forecast',
  arguments: JSON.stringify({ city, days: 2 }),
});
const now = { id: 'call_n', name: 'now', arguments: '{}' };

async function ask(wire: WireName, plan: Plan | ((attempt: number) => Plan), more: SimulationOptions = {}) {
  let store: Store | undefined;
  const simulation = await simulate(plan, {
    wire,
    request: { tools: TOOLS },
    store: (time) => (store = new MemoryStore({ time, ttl_ms: 3_600_000 })),
    ...more,
  });
  if (!store) throw new Error('no store was opened');
  const { notes } = store;
  /** The run that is found by a request which returns what the client was given. */
  const found = (request: object) => {
    const answered = WIRES[wire].notices?.answeredCalls({ ...request }) ?? [];
    return runWithLostCall(notes, OWNER, answered);
  };
  return { ...simulation, found };
}

type Calls = Awaited<ReturnType<typeof ask>>['stream']['toolCalls'];

/** What the client was given, with results, as the SDK of each wire sends it back. */
const BROUGHT_BACK: Partial<Record<WireName, (calls: Calls) => object>> = {
  chat_completions: (calls) => ({
    messages: [
      {
        role: 'assistant',
        tool_calls: calls.map(({ id, name, arguments: json }) => ({
          id,
          function: { name, arguments: json },
        })),
      },
      ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'rain' })),
    ],
  }),
  messages: (calls) => ({
    messages: [
      {
        role: 'assistant',
        content: calls.map(({ id, name, arguments: json }) => ({
          type: 'tool_use',
          id,
          name,
          input: JSON.parse(json) as unknown,
        })),
      },
      {
        role: 'user',
        content: calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'rain' })),
      },
    ],
  }),
  responses: (calls) => ({
    input: [
      ...calls.map(({ id, name, arguments: json }) => ({
        type: 'function_call',
        id: `fc_${id}`,
        call_id: id,
        name,
        arguments: json,
      })),
      ...calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: 'rain' })),
    ],
  }),
};

describe.each(Object.keys(BROUGHT_BACK) as WireName[])('on %s, a call that was cut', (wire) => {
  const back = BROUGHT_BACK[wire] as (calls: Calls) => object;
  const halfCalled = (first: string, second: string) =>
    cutInCall(wire, second, [SAID, { tool: forecast(first, 'Paris') }, { tool: forecast(second, 'Brest') }]);

  test('is found by the result of the one that was delivered', async () => {
    const { outcome, stream, found } = await ask(wire, halfCalled('call_a', 'call_b'));
    expect(outcome).toBe('salvaged');
    expect(stream.toolCalls).toEqual([forecast('call_a', 'Paris')]);
    expect(await found(back(stream.toolCalls))).toBe(RUN);
  });

  test('is not found by the result of another call with the same id', async () => {
    const { found } = await ask(wire, halfCalled('call_a', 'call_b'));
    expect(await found(back([forecast('call_a', 'Rome')]))).toBeUndefined();
  });

  test('is found by the result of the one that was made in its place, where the client saw it cut', async () => {
    const cut = cutInCall(wire, 'call_a', [SAID, { tool: forecast('call_a', 'Paris') }]);
    const rest: Plan = { parts: [SAID, { tool: now }] };
    const { outcome, found } = await ask(wire, (attempt) => (attempt === 1 ? cut : rest), {
      events: 'chunks',
    });
    expect(outcome).toBe('recovered');
    expect(await found(back([now]))).toBe(RUN);
  });
});

describe('where the provider keeps the conversation', () => {
  const outputs = [{ type: 'function_call_output', call_id: 'call_a', output: 'rain' }];
  const responseIdsIn = (body: string) => [...body.matchAll(/"id":"(resp_[^"]+)"/g)].map(([, id]) => id);

  test('a call that was cut is found by a result alone', async () => {
    const parts: Part[] = [
      SAID,
      { tool: forecast('call_a', 'Paris') },
      { tool: forecast('call_b', 'Brest') },
    ];
    const { client, found } = await ask('responses', cutInCall('responses', 'call_b', parts));
    const [previous_response_id] = responseIdsIn(client.body);
    expect(previous_response_id).toMatch(/^resp_/);
    expect(await found({ previous_response_id, input: outputs })).toBe(RUN);
    expect(await found({ conversation: 'conv_1', input: outputs })).toBe(RUN);
    expect(await found({ previous_response_id: 'resp_other', input: outputs })).toBeUndefined();
  });

  test('it is found under the id of the response that the provider has finished, too', async () => {
    const cut = cutInCall('responses', 'call_b', [SAID, { tool: forecast('call_b', 'Brest') }]);
    const rest: Plan = { parts: [SAID, { tool: { ...now, id: 'call_a' } }] };
    const { client, found } = await ask('responses', (attempt) => (attempt === 1 ? cut : rest), {
      events: 'chunks',
    });
    const shown = responseIdsIn(client.body);
    expect(new Set(shown).size).toBe(1);
    for (const previous_response_id of [shown[0], 'resp_chatcmpl-2'])
      expect(await found({ previous_response_id, input: outputs })).toBe(RUN);
  });
});
