import { describe, expect, test } from 'vitest';
import { PROBE } from '../../../../src/plans/seam/mode.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { TOOLS } from '../../../simulation/arbitraries.ts';
import { type SimulationOptions, simulate } from '../../../simulation/simulate.ts';

const TEXT = 'Kelp grips the rock through the surge and lets go of nothing at all.';
const COUNTED = `${PROBE.said}ve, six, seven, eight, nine.`;
const reset = (event: number): Fault => ({ kind: 'reset', at: { event } });
/** Too short to try a prefill with. */
const SHORT = 4;

/** The first attempt is cut, the second request is the probe, and the third one depends on its result. */
const probed =
  (probe: Plan, rest: Partial<Plan> = {}) =>
  (attempt: number): Plan => {
    if (attempt === 1) return { parts: [{ text: TEXT }], faults: [reset(SHORT)] };
    return attempt === 2 ? probe : { parts: [{ text: TEXT }], ...rest };
  };

async function run(plan: Plan | ((attempt: number) => Plan), options: SimulationOptions = {}) {
  let memory: CapabilityMemory | undefined;
  const simulation = await simulate(plan, {
    dialect: 'generic',
    recovery: { probe: 'on_first_cut' },
    capabilities: (time) => {
      memory = new CapabilityMemory(time);
      return memory;
    },
    ...options,
  });
  const asked = simulation.requests.map(({ body }) => {
    const question = body.messages[0]?.content === PROBE.question ? 'probe: ' : '';
    return `${question}${body.messages.at(-1)?.role}`;
  });
  return { ...simulation, asked, learnt: memory?.prefill('default', 'model') };
}

describe('a target of which nothing is known, with recovery.probe: on_first_cut', () => {
  test('that continues exactly is asked by prefill at once, however short the prefix', async () => {
    const { asked, stream, learnt, requests } = await run(
      probed({ parts: [{ text: COUNTED }], prefilled: 'exact' }, { prefilled: 'exact' }),
    );
    expect(asked).toEqual(['user', 'probe: assistant', 'assistant']);
    expect(learnt).toBe('exact');
    expect([stream.text, stream.finish, stream.done]).toEqual([TEXT, 'stop', true]);
    expect(requests[1]?.body).toMatchObject({ model: 'model', max_tokens: 24 });
    expect(JSON.stringify(requests[1]?.body)).not.toContain('Tell me.');
  });

  test('that echoes has its echo taken off', async () => {
    const { asked, stream, learnt } = await run(
      probed({ parts: [{ text: COUNTED }], prefilled: 'echo' }, { prefilled: 'echo' }),
    );
    expect(asked).toEqual(['user', 'probe: assistant', 'assistant']);
    expect(learnt).toBe('echo');
    expect(stream.text).toBe(TEXT);
  });

  test.each<[string, Plan]>([
    ['begins a new turn', { parts: [{ text: 'one, two, three, four, five, six.' }] }],
    ['continues from the last whole word', { parts: [{ text: 'five, six, seven, eight, nine.' }] }],
    ['refuses the prefix', { parts: [{ text: COUNTED }], continuation: 'rejects_prefill' }],
  ])('that %s is asked by nudge', async (_, probe) => {
    const { asked, stream, learnt } = await run(probed(probe));
    expect(asked).toEqual(['user', 'probe: assistant', 'user']);
    expect(learnt).toBe('new_turn');
    expect(stream.text).toBe(TEXT);
  });

  test.each<[string, Fault]>([
    ['fails', { kind: 'status', status: 500, body: { error: { message: 'down' } } }],
    [
      'is refused for something else',
      { kind: 'status', status: 400, body: { error: { message: 'no usage' } } },
    ],
    ['is cut', reset(2)],
    ['says nothing for 3 seconds', { kind: 'silence', at: { event: 0 } }],
  ])('is asked as without it where the probe %s', async (_, fault) => {
    const { asked, stream, learnt, elapsed_ms } = await run(
      probed({ parts: [{ text: COUNTED }], faults: [reset(999), fault] }),
      // The probe isn't an attempt, or else none would be left.
      { recovery: { probe: 'on_first_cut', backoff_ms: 1, backoff_max_ms: 1, max_attempts: 2 } },
    );
    expect(asked).toEqual(['user', 'probe: assistant', 'user']);
    expect(learnt).toBeUndefined();
    expect([stream.text, stream.done]).toEqual([TEXT, true]);
    expect(elapsed_ms).toBeLessThan(4000);
  });

  test('is not asked by a probe where its answer would change nothing', async () => {
    const whole = (parts: Plan['parts']): Plan => ({ parts, faults: [reset(6)] });
    const json = whole([{ text: '{"depth": 12, "algae": ["kelp"]}' }]);
    const format = { request: { response_format: { type: 'json_object' } } } as const;
    expect((await run(json, format)).asked).toEqual(['user', 'user']);
    const text = whole([{ text: TEXT }]);
    // It's unknown whether the target makes calls after a prefix.
    expect((await run(text, { request: { tools: TOOLS } })).asked).toEqual(['user', 'user']);
    expect((await run(text, { dialect: 'vllm' })).asked).toEqual(['user', 'assistant']);
    expect((await run(text, { dialect: 'openai' })).asked).toEqual(['user', 'user']);
    expect((await run(text, { wire: 'completions' })).asked.join()).not.toContain('probe');
  });

  test('is not probed where that would take what is left of a deadline', async () => {
    const text: Plan = { parts: [{ text: TEXT }], faults: [reset(SHORT)] };
    const recovery = { probe: 'on_first_cut', deadline_ms: 10_000 } as const;
    expect((await run(text, { recovery })).asked).toEqual(['user', 'user']);
  });

  test('is not probed unless that is configured', async () => {
    const text: Plan = { parts: [{ text: TEXT }], faults: [reset(SHORT)] };
    expect((await run(text, { recovery: {} })).asked).toEqual(['user', 'user']);
  });
});

describe('probes', () => {
  const time = () => {
    let now_ms = 0;
    const elapse = (duration_ms: number) => {
      now_ms += duration_ms;
    };
    return { time: { now: () => now_ms, wall: () => now_ms, after: () => () => {} }, elapse };
  };

  test('of one model are one, and those of others are others', async () => {
    const memory = new CapabilityMemory(time().time);
    const { promise, resolve } = Promise.withResolvers<'exact'>();
    let asked = 0;
    const ask = () => {
      asked++;
      return promise;
    };
    const all = ['llama', 'llama', 'gemma'].map((model) => memory.probe('local', model, ask));
    expect(asked).toBe(2);
    resolve('exact');
    await Promise.all(all);
    expect(memory.prefill('local', 'llama')).toBe('exact');
  });

  test('that found nothing out are not made again for a minute', async () => {
    const { time: clock, elapse } = time();
    const memory = new CapabilityMemory(clock);
    let asked = 0;
    const ask = async () => {
      asked++;
      if (asked > 1) throw new Error('down');
      return undefined;
    };
    await memory.probe('local', 'llama', ask);
    await memory.probe('local', 'llama', ask);
    expect(asked).toBe(1);
    elapse(60_000);
    await memory.probe('local', 'llama', ask);
    expect(asked).toBe(2);
    expect(memory.prefill('local', 'llama')).toBeUndefined();
  });
});
