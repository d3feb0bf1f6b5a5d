import { describe, expect, test } from 'vitest';
import { sleep } from '../../../../src/lib/time.ts';
import { LEFT } from '../../../../src/proxy/run/context/run.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { TOOLS } from '../../../simulation/arbitraries.ts';
import { RecordingClient } from '../../../simulation/recording-client.ts';
import { simulate } from '../../../simulation/simulate.ts';
import { relayRaw } from '../../wires/raw-relay.ts';
import { SimulatedRoute, type SimulatedTarget } from './simulated-route.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const IN_TEXT = { event: 6 } as const;
const EARLY = { event: 0 } as const;

const says = (faults: readonly (Fault | null)[] = [], more: Partial<Plan> = {}): Plan => ({
  parts: [{ text: TEXT }],
  faults,
  ...more,
});
const silent = (at: Extract<Fault, { kind: 'silence' }>['at'], for_ms?: number): Fault => ({
  kind: 'silence',
  at,
  ...(for_ms !== undefined && { for_ms }),
});

const always = (fault: Fault): Plan => says(Array.from({ length: 50 }, () => fault));

const HEDGE = { after_ms: 1000, stall_ms: 800, max_share: 1 } as const;

/** With the default clocks: 30 s if there is another target. */
const routeOf = (
  primary: SimulatedTarget['plan'],
  second: SimulatedTarget['plan'] = says(),
  sections: ConstructorParameters<typeof SimulatedRoute>[1] = {},
) =>
  new SimulatedRoute({ primary: { plan: primary }, second: { plan: second } }, { hedge: HEDGE, ...sections });

const outcomes = async (route: SimulatedRoute) => {
  const values = (await route.metrics.hedges.get()).values.filter(({ value }) => value > 0);
  return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
};
const isAborted = (route: SimulatedRoute, name: string) =>
  route.providers.get(name)?.requests.map(({ aborted }) => aborted);

describe('before the first token', () => {
  test('the next target answers where the first is silent, and the first is cancelled', async () => {
    const route = routeOf(says([silent(EARLY)]));
    const { stream, order, outcome, elapsed_ms, client } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ order, outcome, elapsed_ms }).toEqual({
      order: ['primary', 'second'],
      outcome: 'recovered',
      elapsed_ms: 1000,
    });
    expect(client.headers).toMatchObject({ 'holdfast-upstream': 'second', 'holdfast-attempts': '2' });
    expect(isAborted(route, 'primary')).toEqual([true]);
    expect(await outcomes(route)).toEqual({ won: 1 });
  });

  test('the first target answers where it speaks before the next one, which is cancelled', async () => {
    const route = routeOf(says([silent(EARLY, 1500)]), says([silent(EARLY, 5000)]));
    const { stream, outcome, elapsed_ms, client } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ outcome, elapsed_ms }).toEqual({ outcome: 'complete', elapsed_ms: 1500 });
    expect(client.headers).toMatchObject({ 'holdfast-upstream': 'primary', 'holdfast-attempts': '1' });
    expect(isAborted(route, 'second')).toEqual([true]);
    expect(await outcomes(route)).toEqual({ lost: 1 });
  });

  test('signs of life are no answer, neither of the first target nor of the next', async () => {
    const pings: Fault = { kind: 'pings', at: { event: 0 }, every_ms: 100, for_ms: 5000 };
    const route = routeOf(says([pings]), says([{ ...pings, for_ms: 700 }]));
    const { stream, elapsed_ms, outcome } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ outcome, elapsed_ms }).toEqual({ outcome: 'recovered', elapsed_ms: 1700 });
  });

  test('an answer that comes in time has no hedge', async () => {
    const route = routeOf(says([silent(EARLY, 900)]));
    expect((await route.ask()).order).toEqual(['primary']);
    expect(await outcomes(route)).toEqual({});
  });

  test('a hedge that is refused leaves the run as it was', async () => {
    const refusal: Fault = {
      kind: 'status',
      status: 429,
      headers: { 'retry-after': '30' },
      body: { error: { type: 'rate_limit_error', message: 'No.' } },
    };
    const route = routeOf(says([silent(EARLY, 4000)]), says([refusal]));
    const { stream, outcome, order, elapsed_ms } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ outcome, order, elapsed_ms }).toEqual({
      outcome: 'complete',
      order: ['primary', 'second'],
      elapsed_ms: 4000,
    });
    expect(await outcomes(route)).toEqual({ failed: 1 });
  });

  test('the hedge under way is the next attempt where the first target fails meanwhile', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([silent(EARLY)]), clocks: { first_token_ms: 1200 } },
        second: { plan: says([silent({ event: 1 }, 3000)]) },
      },
      { hedge: HEDGE },
    );
    const { stream, order, elapsed_ms, outcome } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ order, elapsed_ms, outcome }).toEqual({
      order: ['primary', 'second'],
      elapsed_ms: 4000,
      outcome: 'recovered',
    });
    expect(await outcomes(route)).toEqual({ won: 1 });
  });

  test('a provider that keeps the connection open after the whole answer is not waited for', async () => {
    const whole = `data: {"choices":[{"index":0,"delta":{"content":"Kelp."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
    const { stream, end_ms } = await relayRaw([[900_000], [whole, 900_000]], {
      others: ['openai'],
      hedge: HEDGE,
    });

    expect(stream).toMatchObject({ text: 'Kelp.', done: true, violations: [] });
    expect(end_ms).toBe(1000);
  });

  test('a hedge is cancelled with the first word of the silent target, and not with its last', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([silent(EARLY, 1500)]), piece_bytes: 200, piece_ms: 100 },
        second: { plan: says([silent(EARLY)]) },
      },
      { hedge: HEDGE },
    );
    const asked = route.begin();
    let aborted: unknown;
    route.time.after(2000, () => {
      aborted = isAborted(route, 'second');
    });
    const { stream, elapsed_ms } = await route.time.drive(asked);

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(elapsed_ms).toBeGreaterThan(2500);
    expect(aborted).toEqual([true]);
  });

  test('a client that leaves ends both', async () => {
    const gone = new AbortController();
    const route = routeOf(says([silent(EARLY)]), says([silent(EARLY)]));
    const asked = route.begin({}, { gone });
    route.time.after(1500, () => gone.abort(LEFT));
    const { outcome } = await route.time.drive(asked);

    expect(outcome).toBe('cancelled');
    expect([isAborted(route, 'primary'), isAborted(route, 'second')]).toEqual([[true], [true]]);
    expect(await outcomes(route)).toEqual({ lost: 1 });
  });
});

describe('what a hedge has said before it is taken', () => {
  test('is not lost where that is no answer yet', async () => {
    // A message begins with an event that has no content, but without it there is no message.
    const plan = says([silent(EARLY), silent({ event: 1 }, 29_500)]);
    const { stream, attempts, elapsed_ms } = await simulate(plan, {
      wire: 'messages',
      others: ['generic'],
      hedge: HEDGE,
    });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(attempts).toHaveLength(2);
    // The first target failed at 30 s, before the next one had produced anything.
    expect(elapsed_ms).toBe(30_500);
  });

  test('waits with its provider for a client that takes nothing', async () => {
    const parts = [{ reasoning: TEXT }, { text: TEXT }];
    const route = routeOf(says([silent({ event: 4 })], { parts }), says([], { parts }));
    const client = new (class extends RecordingClient {
      override write(frames: string): boolean {
        super.write(frames);
        return !frames.includes('StreamReset');
      }
      override drained = () => sleep(route.time, 40_000, new AbortController().signal);
    })();
    const { stream, order } = await route.ask({}, { client, events: 'chunks' });

    expect(stream).toMatchObject({ text: TEXT, done: true });
    expect(order).toEqual(['primary', 'second']);
  });
});

describe('after the first token', () => {
  test('the next target continues an answer that stalls', async () => {
    const route = routeOf(says([silent(IN_TEXT)]));
    const { stream, order, outcome, elapsed_ms } = await route.ask({}, { events: 'comments' });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(stream.advisories).toMatchObject([{ type: 'Recovered', plan: 'R1', cause: 'idle_stall' }]);
    expect({ order, outcome, elapsed_ms }).toEqual({
      order: ['primary', 'second'],
      outcome: 'recovered',
      elapsed_ms: 800,
    });
    expect(isAborted(route, 'primary')).toEqual([true]);
    expect(await outcomes(route)).toEqual({ won: 1 });
  });

  test('an answer that goes on by itself is not joined with the hedge', async () => {
    const route = routeOf(says([silent(IN_TEXT, 1200)]), says([silent(EARLY, 5000)]));
    const { stream, outcome, elapsed_ms } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ outcome, elapsed_ms }).toEqual({ outcome: 'complete', elapsed_ms: 1200 });
    expect(isAborted(route, 'second')).toEqual([true]);
    expect(await outcomes(route)).toEqual({ lost: 1 });
  });

  test('every stall of an answer is hedged, whichever target gives it', async () => {
    const stalls = says([silent(IN_TEXT)]);
    const route = routeOf(stalls, stalls);
    const { stream, order, elapsed_ms } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect({ order, elapsed_ms }).toEqual({ order: ['primary', 'second', 'primary'], elapsed_ms: 1600 });
    expect(await outcomes(route)).toEqual({ won: 2 });
  });

  test('a call that stalls is made anew by the next target, once', async () => {
    const call = { id: 'call_1', name: 'forecast', arguments: '{"city":"Paris","days":[1,2,3,4,5,6,7,8,9]}' };
    const parts = [{ text: TEXT }, { tool: call }];
    const calls = (faults: readonly Fault[]) => ({ parts, faults, chunk: 'token' }) as const;
    const route = routeOf(calls([silent({ event: 26 })]), calls([]));
    const { stream, outcome } = await route.ask({ tools: TOOLS });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(stream.toolCalls).toHaveLength(1);
    expect(outcome).toBe('recovered');
    expect(await outcomes(route)).toEqual({ won: 1 });
  });

  test('nothing is hedged once the answer is whole', async () => {
    const route = routeOf(says([silent({ after_finish: true }, 1500)]));
    const { stream, order } = await route.ask();

    expect(stream).toMatchObject({ text: TEXT, done: true });
    expect(order).toEqual(['primary']);
  });
});

describe('what is allowed', () => {
  test('no more than the share of requests', async () => {
    const route = routeOf(always(silent(EARLY, 1500)), always(silent(EARLY)), {
      hedge: { after_ms: 1000, max_share: 0.1 },
    });
    for (let asked = 0; asked < 40; asked++) expect((await route.ask()).stream.text).toBe(TEXT);
    // One at once, and one more for every ten requests.
    const { lost = 0, denied = 0 } = await outcomes(route);
    expect(lost).toBe(5);
    expect(denied).toBe(35);
  });

  test('only what is configured: nothing is hedged before the first token without after_ms', async () => {
    const route = routeOf(says([silent(EARLY, 4000)]), says(), { hedge: { stall_ms: 800, max_share: 1 } });
    expect((await route.ask()).order).toEqual(['primary']);
  });

  test('a target that is down, or asks to be left alone, is not asked beside another', async () => {
    const limited: Fault = { kind: 'status', status: 429, headers: { 'retry-after': '30' }, body: {} };
    const route = new SimulatedRoute(
      {
        primary: { plan: always(silent(EARLY, 1500)) },
        second: { plan: always(limited), api_key: 'ours' },
      },
      { hedge: HEDGE },
    );
    expect((await route.ask()).order).toEqual(['primary', 'second']);
    expect((await route.ask()).order).toEqual(['primary']);
    await route.pass(30_000);
    expect((await route.ask()).order).toEqual(['primary', 'second']);
  });

  test('being outrun does not speak against a target in other runs', async () => {
    const route = routeOf(always(silent(EARLY)));
    for (let asked = 0; asked < 10; asked++) expect((await route.ask()).order).toEqual(['primary', 'second']);
    expect(route.logged('target is down')).toEqual([]);
  });
});
