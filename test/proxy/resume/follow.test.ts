import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { WireName } from '../../../src/checkpoint/journal.ts';
import type { RunEnd, StoredRun } from '../../../src/checkpoint/store.ts';
import { eventFrame } from '../../../src/proxy/downstream/event-frame.ts';
import { HAND_OVER } from '../../../src/proxy/run/context/run.ts';
import { WIRES } from '../../../src/proxy/wires/registry.ts';
import type { Plan } from '../../provider/script.ts';
import { TOOLS } from '../../simulation/arbitraries.ts';
import { Fleet, payloadsOf, type Replica, type Session } from '../../simulation/fleet.ts';
import { RecordingClient } from '../../simulation/recording-client.ts';
import { DEFAULTS, METRICS, OWNER, RUN, readingOf } from '../../simulation/simulate.ts';
import { readStream } from '../../simulation/stream-reading.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const PLAN: Plan = { parts: [{ text: TEXT }] };
const forecast = (id: string) => ({ id, name: 'forecast', arguments: '{"city":"Paris"}' });
const CALLS: Plan = { parts: [{ tool: forecast('call_a') }, { tool: forecast('call_b') }] };
/** Events come one by one, so there is a time at which half of them have arrived. */
const PACE_MS = 50;
const { lease_ms } = DEFAULTS.checkpoint;

/** A run whose replica was lost after about this many events. */
async function lost(plan: Plan, events: number, options: ConstructorParameters<typeof Fleet>[1] = {}) {
  const fleet = new Fleet(plan, { ...options, pace_ms: PACE_MS });
  const first = fleet.replica();
  const session = fleet.begin(first);
  await fleet.pass(PACE_MS * (events + 1));
  await fleet.pass(150);
  first.life.kill();
  return { fleet, had: payloadsOf(session.client.body) };
}

const finish = async (fleet: Fleet, { context }: Replica, end: RunEnd): Promise<void> => {
  const { store } = context;
  const { epoch } = await fleet.stored();
  await store.finish(await store.acquire(RUN, OWNER, epoch), end);
};

describe('a finished run', () => {
  async function finished(resumable = true) {
    const fleet = new Fleet(PLAN);
    const first = fleet.begin(fleet.replica(), { resumable });
    await fleet.time.drive(first.outcome);
    return { fleet, body: first.client.body };
  }

  test('is replayed without asking the provider', async () => {
    const { fleet, body } = await finished();
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('replayed');
    expect(fleet.provider.requests).toHaveLength(1);
    expect(client.ended).toBe(true);
    expect(client.headers).toMatchObject({ 'holdfast-run-id': RUN, 'holdfast-upstream': 'default' });
    const again = readStream(client.body);
    expect(again).toEqual(readStream(body.replaceAll(/^id: .*\n/gm, '')));
  });

  test('is replayed in the bytes that were sent, but for plain text, of which only the text was kept', async () => {
    const { fleet, body } = await finished();
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.time.drive(outcome);

    const pairs = payloadsOf(body).map((sent, index) => [sent, payloadsOf(client.body)[index] ?? '']);
    const same = pairs.filter(([sent, replayed]) => sent === replayed).length;
    expect(same).toBeGreaterThanOrEqual(4);
    const plain = pairs.find(([sent, replayed]) => sent !== replayed) ?? [];
    expect(JSON.parse(plain[1] ?? '')).toMatchObject({
      id: 'chatcmpl-1',
      model: 'model',
      choices: [{ index: 0, delta: JSON.parse(plain[0] ?? '').choices[0].delta, finish_reason: null }],
    });
  });

  test.each([0, 1, 5, 13, 14])('continues after %i events', async (cursor) => {
    const { fleet, body } = await finished();
    const whole = payloadsOf(body);
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor });
    await fleet.time.drive(outcome);

    expect(payloadsOf(client.body)).toHaveLength(whole.length - cursor);
    expect(payloadsOf(client.body).at(-1) ?? '[DONE]').toBe('[DONE]');
    expect(client.ended).toBe(true);
  });

  test('has the ids of its events where they are asked for, the same as at first', async () => {
    const { fleet, body } = await finished();
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor: 3, resumable: true });
    await fleet.time.drive(outcome);

    const ids = (text: string) => text.match(/^id: .*$/gm) ?? [];
    expect(ids(client.body)[0]).toBe(`id: ${RUN}.1.4`);
    expect(ids(client.body)).toEqual(ids(body).slice(3));
  });
});

describe('a run that another replica delivers', () => {
  test('is shown from the beginning and then as it comes, to its end', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    const first = fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 7);
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.pass(PACE_MS * 2);
    const soon = readStream(`${client.body}`).text;

    expect(soon.length).toBeGreaterThan(5);
    expect(TEXT.startsWith(soon)).toBe(true);
    expect(await fleet.time.drive(outcome)).toBe('replayed');
    expect(await first.outcome).toBe('complete');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(fleet.provider.requests).toHaveLength(1);
  });

  test('is distinguished from silence: keep-alives come while nothing else does', async () => {
    const silence = { kind: 'silence', at: { event: 4 }, for_ms: 35_000 } as const;
    const fleet = new Fleet({ ...PLAN, faults: [silence] });
    const first = fleet.begin(fleet.replica());
    await fleet.pass(200);
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.time.drive(Promise.all([outcome, first.outcome]));

    // The replica that holds the run sends the client something every fifteen seconds, which the reader gets, too.
    expect(client.body.match(/"delta":\{\},"finish_reason":null/g)).toHaveLength(2);
    expect(readStream(client.body).text).toBe(TEXT);
  });

  test('is noted to have a reader, for as long as it has one', async () => {
    const silence = { kind: 'silence', at: { event: 4 }, for_ms: 60_000 } as const;
    const fleet = new Fleet({ ...PLAN, faults: [silence] });
    fleet.begin(fleet.replica());
    await fleet.pass(200);
    const replica = fleet.replica();
    const note = () => replica.context.store.notes.get(OWNER, { kind: 'reader', name: RUN });
    const { leave } = await fleet.follow(replica);

    await fleet.pass(50_000);
    expect(await note()).toBeDefined();
    leave();
    await fleet.pass(31_000);
    expect(await note()).toBeUndefined();
  });

  test('is waited for when its log is behind the client', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 5);
    const cursor = (await fleet.stored()).seq + 4;
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor });
    await fleet.pass(1);

    expect(client.opened).toBe(false);
    expect(await fleet.time.drive(outcome)).toBe('replayed');
    const { events } = await fleet.journal();
    expect(payloadsOf(client.body)).toHaveLength(events.length - cursor);
  });

  test('is not joined to what its client has, once that turns out to be something else', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 5);
    const { seq } = await fleet.stored();
    const chunk = JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'something else' } }] });
    const told = { cursor: seq + 2, tail: [chunk, chunk] };
    const { client, outcome } = await fleet.follow(fleet.replica(), told);

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect(payloadsOf(client.body)).toEqual([]);
    expect([client.destroyed, client.ended]).toEqual([true, false]);
  });

  test('is not waited for longer than a lease lasts', async () => {
    const silence = { kind: 'silence', at: { event: 4 }, for_ms: 60_000 } as const;
    const fleet = new Fleet({ ...PLAN, faults: [silence] });
    fleet.begin(fleet.replica());
    await fleet.pass(200);
    const began_ms = fleet.time.now();
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor: 100 });

    expect(await fleet.time.drive(outcome)).toBe('rejected');
    expect(fleet.time.now() - began_ms).toBeLessThan(lease_ms + 300);
    expect(client.rejection?.status).toBe(409);
    expect(client.rejection?.body).toContain('cursor_ahead');
  });
});

test.each([
  ['is gone', 404, 'run_not_found'],
  ['cannot be read', 503, 'store_unavailable'],
] as const)('a run that %s while its client waits for it is answered with %i', async (fate, status, code) => {
  const silence = { kind: 'silence', at: { event: 4 }, for_ms: 60_000 } as const;
  const fleet = new Fleet({ ...PLAN, faults: [silence] });
  fleet.begin(fleet.replica());
  await fleet.pass(200);
  const reading = fleet.replica();
  const { client, outcome } = await fleet.follow(reading, { cursor: 100 });
  const { store } = reading.context;
  store.read = async () => {
    if (fate === 'is gone') return null;
    throw new Error('the store is down');
  };

  expect(await fleet.time.drive(outcome)).toBe('rejected');
  expect(client.rejection).toMatchObject({ status, body: expect.stringContaining(code) });
});

describe('a run that lost its replica', () => {
  test('continues in the same response, and asks only for the rest', async () => {
    const { fleet, had } = await lost(PLAN, 5);
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('recovered');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(payloadsOf(client.body).length).toBeGreaterThan(had.length);
    expect(fleet.provider.requests).toHaveLength(2);
    expect(fleet.provider.requests[1]?.body.messages.at(-2)).toMatchObject({ role: 'assistant' });
  });

  test('and its outcome is logged, and counted', async () => {
    const counted = async () => {
      const { values } = await METRICS.takeovers.get();
      return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
    };
    const before = await counted();
    const { fleet } = await lost(PLAN, 5);
    const { seq } = await fleet.stored();
    const lines: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line: string) => lines.push(JSON.parse(line)) });
    const refused = await fleet.follow(fleet.replica(), { revive: () => undefined });
    await fleet.time.drive(refused.outcome);
    const winner = fleet.replica(log);
    const loser = fleet.replica();
    const { store } = loser.context;
    const acquire = store.acquire.bind(store);
    let won: Promise<Session> | undefined;
    // Another replica takes over the orphan after this one has found it.
    store.acquire = async (...call) => {
      won ??= fleet.follow(winner);
      await won;
      while ((await fleet.stored()).epoch === 1);
      return acquire(...call);
    };
    const lostRace = await fleet.follow(loser);
    expect(await fleet.time.drive(lostRace.outcome)).toBe('replayed');
    await fleet.time.drive((await won)?.outcome ?? Promise.reject(new Error('nobody won')));

    expect(lines.find(({ msg }) => msg === 'taken over')).toMatchObject({ run: RUN, epoch: 2, from: seq });
    expect(JSON.stringify(lines)).not.toMatch(/Kelp|surge/);
    const after = await counted();
    for (const outcome of ['taken', 'lost_race', 'refused'])
      expect(Number(after[outcome]) - Number(before[outcome] ?? 0), outcome).toBe(1);
  });

  test('continues after the cursor, with ids of the epoch that an event was delivered in', async () => {
    const { fleet } = await lost(PLAN, 5);
    const cursor = (await fleet.stored()).seq - 2;
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor, resumable: true });
    await fleet.time.drive(outcome);

    const ids = (client.body.match(/^id: .*$/gm) ?? []).map((line) => line.split('.').slice(1).join('.'));
    expect(ids.slice(0, 3)).toEqual([`1.${cursor + 1}`, `1.${cursor + 2}`, `2.${cursor + 3}`]);
  });

  test('is healed with what its client has of it', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: 5 });
    const first = fleet.replica();
    const before = fleet.begin(first);
    await fleet.pass(60);
    first.life.kill();
    const tail = payloadsOf(before.client.body);
    expect((await fleet.stored()).seq).toBeLessThan(tail.length);
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor: tail.length, tail });

    expect(await fleet.time.drive(outcome)).toBe('recovered');
    expect(readStream(before.client.body.replaceAll(/^id: .*\n/gm, '') + client.body)).toMatchObject({
      text: TEXT,
      done: true,
      violations: [],
    });
    expect((await fleet.journal()).text).toBe(TEXT);
  });

  test('is not joined to events that neither the log nor the client can tell', async () => {
    const { fleet } = await lost(PLAN, 5);
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor: 20 });

    expect(await fleet.time.drive(outcome)).toBe('rejected');
    expect(client.rejection?.status).toBe(409);
    expect((await fleet.stored()).takeovers).toEqual([]);
  });

  test('is taken over by one of the replicas that wait for it; the others read on', async () => {
    const { fleet } = await lost(PLAN, 5);
    const sessions = [];
    for (let count = 0; count < 4; count++) sessions.push(await fleet.follow(fleet.replica()));
    const outcomes = await fleet.time.drive(Promise.all(sessions.map(({ outcome }) => outcome)));

    expect(outcomes.toSorted()).toEqual(['recovered', 'replayed', 'replayed', 'replayed']);
    for (const { client } of sessions) {
      expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
    }
    expect(fleet.provider.requests).toHaveLength(2);
    expect((await fleet.stored()).takeovers).toHaveLength(1);
  });

  test('and whose reader was there already is taken over as soon as that is known', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    const first = fleet.replica();
    fleet.begin(first);
    await fleet.pass(PACE_MS * 5);
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.pass(PACE_MS * 3);
    first.life.kill();

    expect(await fleet.time.drive(outcome)).toBe('recovered');
    expect(readStream(client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
  });

  test('whose answer was whole but for its end needs no more than that', async () => {
    const fleet = new Fleet(PLAN);
    const first = fleet.replica();
    const before = fleet.begin(first);
    await fleet.time.drive(before.outcome);
    const tail = payloadsOf(before.client.body).slice(0, -2);
    const other = new Fleet(PLAN);
    const second = other.replica();
    await second.context.store.acquire(RUN, OWNER);
    second.life.kill();
    const { client, outcome } = await other.follow(other.replica(), { cursor: tail.length, tail });

    expect(await other.time.drive(outcome)).toBe('complete');
    expect(other.provider.requests).toHaveLength(0);
    const rest = payloadsOf(client.body);
    expect(rest).toHaveLength(2);
    expect(JSON.parse(rest[0] ?? '')).toMatchObject({ usage: { completion_tokens: expect.any(Number) } });
    expect(rest[1]).toBe('[DONE]');
    expect((await other.stored()).status).toBe('complete');
  });

  test('with settled calls is finished with them, and nothing is asked for', async () => {
    const { fleet } = await lost(CALLS, 9, { request: { tools: TOOLS } });
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('salvaged');
    expect(readStream(client.body)).toMatchObject({
      toolCalls: [forecast('call_a')],
      finish: 'tool_calls',
      done: true,
      violations: [],
    });
    expect(fleet.provider.requests).toHaveLength(1);
  });

  test('in the middle of a call that was shown as it came: the call is cancelled and made again', async () => {
    const options = { request: { tools: TOOLS }, events: 'chunks' as const };
    const plan: Plan = { parts: [{ text: 'Let me look.' }, { tool: forecast('call_a') }] };
    const { fleet, had } = await lost(plan, 5, options);
    expect(had.at(-1)).toContain('tool_calls');
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('recovered');
    const stream = readStream(client.body, { live: true });
    expect(stream.advisories).toMatchObject([
      { type: 'ToolCallCancel', id: 'call_a', name: 'forecast' },
      { type: 'Recovered', plan: 'R3' },
    ]);
    expect(stream.text).toBe('Let me look.');
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
    expect(fleet.provider.requests[1]?.body.messages.at(-1)?.content).toMatch(/`forecast` was cut off/);
  });

  test('a call that was cancelled before is cancelled for a later reader with comments, too', async () => {
    const options = { request: { tools: TOOLS }, events: 'comments' as const };
    const plan: Plan = {
      parts: [{ text: 'Let me look.' }, { tool: forecast('call_a') }],
      faults: [{ kind: 'reset', at: { event: 6 } }],
    };
    const fleet = new Fleet(plan, options);
    await fleet.time.drive(fleet.begin(fleet.replica()).outcome);
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.time.drive(outcome);

    const stream = readStream(client.body, { live: true });
    expect(stream.advisories).toMatchObject([{ type: 'ToolCallCancel', id: 'call_a', name: 'forecast' }]);
    expect(stream.toolCalls).toEqual([forecast('call_a')]);
  });
});

describe('a run whose model no route serves here', () => {
  const revive = () => undefined;

  test('ends with an error that says so, and stays as it is for another replica', async () => {
    const { fleet } = await lost(PLAN, 5);
    const { client, outcome } = await fleet.follow(fleet.replica(), { revive });

    expect(await fleet.time.drive(outcome)).toBe('failed');
    const { text, error, done } = readStream(client.body);
    expect(error).toMatchObject({
      code: 'run_not_routed',
      holdfast: { partial: true, cause: 'replica_lost' },
    });
    expect([TEXT.startsWith(text), text.length > 5, done]).toEqual([true, true, false]);
    expect(client.ended).toBe(true);

    const again = await fleet.follow(fleet.replica());
    expect(await fleet.time.drive(again.outcome)).toBe('recovered');
    expect(readStream(again.client.body).text).toBe(TEXT);
  });

  test('is finished with its settled calls', async () => {
    const { fleet } = await lost(CALLS, 9, { request: { tools: TOOLS } });
    const { client, outcome } = await fleet.follow(fleet.replica(), { revive });

    expect(await fleet.time.drive(outcome)).toBe('salvaged');
    expect(readStream(client.body)).toMatchObject({ toolCalls: [forecast('call_a')], done: true });
    expect((await fleet.stored()).status).toBe('complete');
  });
});

describe('a run that was never stored, and whose client brings its request', () => {
  const framed = (payloads: readonly string[], wire: WireName) =>
    payloads.map((payload) => eventFrame(payload, WIRES[wire])).join('');

  test.each(Object.keys(WIRES) as WireName[])('continues wherever it was lost (%s)', async (wire) => {
    const options = { wire };
    const whole = new Fleet(PLAN, options);
    const first = whole.begin(whole.replica());
    await whole.time.drive(first.outcome);
    const told = payloadsOf(first.client.body);
    const asked = { wire, events: 'none' } as const;
    for (let had = 1; had < told.length; had++) {
      const fleet = new Fleet(PLAN, options);
      const lost = fleet.replica();
      await lost.context.store.acquire(RUN, OWNER);
      lost.life.kill();
      const tail = told.slice(0, had);
      const session = await fleet.follow(fleet.replica(), { cursor: had, tail, asked, resumable: true });
      await fleet.time.drive(session.outcome);

      const rest = payloadsOf(session.client.body);
      expect(session.client.body).toContain(`id: ${RUN}.2.${had + 1}\n`);
      const reading = readingOf(framed([...tail, ...rest], wire), options);
      expect(reading, `${had} had`).toMatchObject({ text: TEXT, done: true, violations: [] });
      const { header, text, seq } = await fleet.journal();
      expect({ wire: header?.wire, text, seq }).toEqual({ wire, text: TEXT, seq: had + rest.length });
    }
  });

  test('is read on its wire once that is known, if its replica stores it after all', async () => {
    const options = { wire: 'messages' } as const;
    const fleet = new Fleet(PLAN, { ...options, pace_ms: PACE_MS });
    const first = fleet.replica();
    const { append } = first.context.store;
    const failing = Promise.withResolvers<void>();
    first.context.store.append = async (...batch) => {
      await failing.promise;
      return append.apply(first.context.store, batch);
    };
    const before = fleet.begin(first, { resumable: false });
    await fleet.pass(PACE_MS * 8);
    const tail = payloadsOf(before.client.body);
    expect((await fleet.stored()).records).toEqual([]);
    const { client, outcome } = await fleet.follow(fleet.replica(), { cursor: tail.length, tail });
    await fleet.pass(PACE_MS);
    failing.resolve();

    expect(await fleet.time.drive(outcome)).toBe('replayed');
    const body = framed([...tail, ...payloadsOf(client.body)], 'messages');
    expect(readingOf(body, options)).toMatchObject({ text: TEXT, done: true, violations: [] });
  });
});

test('of two readers that are ahead of the log, with the same tail, one takes the run over and the other follows it', async () => {
  const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
  const first = fleet.replica();
  const session = fleet.begin(first);
  await fleet.pass(PACE_MS * 9);
  first.life.kill();
  const tail = payloadsOf(session.client.body);
  const told = { cursor: tail.length, tail };
  expect((await fleet.stored()).seq).toBeLessThan(told.cursor);
  const one = await fleet.follow(fleet.replica(), told);
  const two = await fleet.follow(fleet.replica(), told);

  expect(await fleet.time.drive(Promise.all([one.outcome, two.outcome]))).toEqual(['recovered', 'replayed']);
  for (const { client } of [one, two]) {
    const body = [...tail, ...payloadsOf(client.body)].map((payload) => `data: ${payload}\n\n`);
    expect(readStream(body.join(''))).toMatchObject({ text: TEXT, done: true, violations: [] });
  }
});

describe('a run that another replica has ended', () => {
  const at_ms = 1_700_000_000_000;

  test.each(['recovered_from_partial', 'timeout_partial', 'failed'] as const)(
    'as %s ends with an error that says so',
    async (status) => {
      const { fleet } = await lost(PLAN, 5);
      await finish(fleet, fleet.replica(), { status, at_ms, cause: 'replica_lost' });
      const { client, outcome } = await fleet.follow(fleet.replica());

      expect(await fleet.time.drive(outcome)).toBe('failed');
      const { error, done, text } = readStream(client.body);
      expect(error).toMatchObject({
        code: 'run_salvaged',
        message: expect.stringContaining(status),
        holdfast: { run_id: RUN, cause: 'replica_lost', partial: true, partial_chars: text.length },
      });
      expect([done, client.ended]).toEqual([false, true]);
    },
  );

  test('as cancelled ends with an error that says so and forbids a retry', async () => {
    const { fleet } = await lost(PLAN, 5);
    await finish(fleet, fleet.replica(), { status: 'cancelled', at_ms });
    const { client, outcome } = await fleet.follow(fleet.replica());
    await fleet.time.drive(outcome);

    expect(readStream(client.body).error).toMatchObject({
      code: 'run_cancelled',
      holdfast: { retryable: false },
    });
  });

  test('with settled calls ends with them, every time in the same way', async () => {
    const { fleet } = await lost(CALLS, 9, { request: { tools: TOOLS } });
    await finish(fleet, fleet.replica(), { status: 'recovered_from_partial', at_ms });
    const bodies = [];
    for (const cursor of [0, 0, 2]) {
      const { client, outcome } = await fleet.follow(fleet.replica(), { cursor });
      expect(await fleet.time.drive(outcome)).toBe('replayed');
      bodies.push(client.body);
    }

    expect(readStream(bodies[0] ?? '')).toMatchObject({
      toolCalls: [forecast('call_a')],
      finish: 'tool_calls',
      done: true,
      violations: [],
    });
    expect(bodies[1]).toBe(bodies[0]);
    expect(bodies[2]).toMatch(/"finish_reason":"tool_calls".*\n\ndata: \[DONE\]\n\n$/s);
  });
});

describe('a run that kills its replicas', () => {
  const max_takeovers = 2;
  const configuration = { resume: { ...DEFAULTS.resume, max_takeovers } };
  /** The provider falls silent after the text that was delivered. */
  const silent: Plan = {
    parts: [{ text: `${TEXT} It has no roots, and needs none.` }],
    faults: Array.from({ length: 8 }, () => ({ kind: 'silence', at: { event: 5 } }) as const),
  };
  const mute: Plan = {
    ...silent,
    faults: [silent.faults?.[0], ...Array(8).fill({ kind: 'silence', at: { event: 0 } })],
  };

  async function killed(plan: Plan, options: ConstructorParameters<typeof Fleet>[1], deaths: number) {
    const { fleet } = await lost(plan, 9, { configuration, ...options });
    for (let death = 1; death < deaths; death++) {
      const replica = fleet.replica();
      await fleet.follow(replica);
      await fleet.pass(1_000);
      replica.life.kill();
    }
    return fleet;
  }

  test('is taken over as often as is allowed without progress, and then given up', async () => {
    const fleet = await killed(mute, {}, 1 + max_takeovers);
    const asked = fleet.provider.requests.length;
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect(readStream(client.body).error).toMatchObject({
      code: 'run_poisoned',
      holdfast: { partial: true, retryable: false },
    });
    expect(fleet.provider.requests).toHaveLength(asked);
    expect(await fleet.stored()).toMatchObject({
      status: 'recovered_from_partial',
      end: { cause: 'poisoned' },
    });
    const again = await fleet.follow(fleet.replica());
    await fleet.time.drive(again.outcome);
    expect(payloadsOf(again.client.body)).toEqual(payloadsOf(client.body));
  });

  test('is given up one takeover later, not sooner', async () => {
    const fleet = await killed(mute, {}, max_takeovers);
    const asked = fleet.provider.requests.length;
    await fleet.follow(fleet.replica());
    await fleet.pass(1_000);

    expect(fleet.provider.requests).toHaveLength(asked + 1);
  });

  test('is not given up while every replica gets on with it', async () => {
    const fleet = await killed({ ...silent, continuation: 'straight_on' }, {}, 2 + max_takeovers);
    const { seq } = await fleet.stored();
    await fleet.follow(fleet.replica());
    await fleet.pass(1_000);

    expect((await fleet.stored()).seq).toBeGreaterThan(seq);
  });

  test('is not given up when the last replica handed it over in good health', async () => {
    const fleet = await killed(mute, {}, max_takeovers);
    const healthy = await fleet.follow(fleet.replica());
    await fleet.pass(1_000);
    healthy.leave(HAND_OVER);
    expect(await fleet.time.drive(healthy.outcome)).toBe('handed_over');
    const asked = fleet.provider.requests.length;
    await fleet.follow(fleet.replica());
    await fleet.pass(1_000);

    expect(fleet.provider.requests).toHaveLength(asked + 1);
  });

  test('is finished with its settled calls all the same', async () => {
    const { fleet } = await lost(CALLS, 9, { configuration, request: { tools: TOOLS } });
    for (let epoch = 1; epoch <= max_takeovers; epoch++) {
      const { context, life } = fleet.replica();
      await context.store.acquire(RUN, OWNER, epoch);
      life.kill();
    }
    const { client, outcome } = await fleet.follow(fleet.replica());

    expect(await fleet.time.drive(outcome)).toBe('salvaged');
    expect(readStream(client.body)).toMatchObject({ toolCalls: [forecast('call_a')], done: true });
  });
});

describe('a replica that shuts down', () => {
  test('lets go of its run with everything it delivered, and another continues at once', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    const first = fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 6);
    const reading = await fleet.follow(fleet.replica());
    first.leave(HAND_OVER);
    const began_ms = fleet.time.now();

    expect(await fleet.time.drive(first.outcome)).toBe('handed_over');
    expect([first.client.destroyed, first.client.ended]).toEqual([true, false]);
    const had = payloadsOf(first.client.body).length;
    expect((await fleet.stored()).seq).toBeGreaterThanOrEqual(had);
    expect(await fleet.time.drive(reading.outcome)).toBe('recovered');
    expect(fleet.time.now() - began_ms).toBeLessThan(lease_ms);
    expect(readStream(reading.client.body)).toMatchObject({ text: TEXT, done: true, violations: [] });
  });

  test('sends its readers elsewhere', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 6);
    const { client, outcome, leave } = await fleet.follow(fleet.replica());
    await fleet.pass(PACE_MS);
    leave(HAND_OVER);

    expect(await fleet.time.drive(outcome)).toBe('handed_over');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
  });
});

describe('a store that fails while a run is followed', () => {
  async function failing(for_ms: number) {
    const fleet = new Fleet({ ...PLAN, faults: [{ kind: 'silence', at: { event: 4 }, for_ms: 5_000 }] });
    fleet.begin(fleet.replica());
    await fleet.pass(200);
    const replica = fleet.replica();
    const session = await fleet.follow(replica);
    const { store } = replica.context;
    const read = store.read.bind(store);
    const until_ms = fleet.time.now() + for_ms;
    store.read = async (...call) => {
      if (fleet.time.now() < until_ms) throw new Error('the store is down');
      return read(...call);
    };
    return { fleet, ...session };
  }

  test('is asked again until it answers', async () => {
    const { fleet, client, outcome } = await failing(20_000);

    expect(await fleet.time.drive(outcome)).toBe('replayed');
    expect(readStream(client.body).text).toBe(TEXT);
  });

  test('is not waited for without end, and the response is not made to look whole', async () => {
    const { fleet, client, outcome } = await failing(Number.POSITIVE_INFINITY);

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
    expect(fleet.time.now()).toBeLessThan(40_000);
  });
});

describe('a store that lost the end of a log', () => {
  /** The stored run as if everything after event `seq` had never been stored. */
  const shortened = (stored: StoredRun, seq: number): StoredRun => ({
    ...stored,
    seq: Math.min(stored.seq, seq),
    records: stored.records.filter((record) => record.seq <= seq),
  });

  test('when it was taken over: the run is let go again, and nothing is joined', async () => {
    const { fleet } = await lost(PLAN, 5);
    const replica = fleet.replica();
    const { seq } = await fleet.stored();
    const { client, outcome } = await fleet.follow(replica, { cursor: seq });
    const { store } = replica.context;
    const read = store.read.bind(store);
    store.read = async (...call) => {
      const stored = await read(...call);
      return stored && stored.epoch > 1 ? shortened(stored, 2) : stored;
    };

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
    expect((await fleet.stored()).holder).toEqual({ state: 'released' });
    expect(fleet.provider.requests).toHaveLength(1);
  });

  test('and of which another replica made something else: a reader is sent away without an end', async () => {
    const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
    fleet.begin(fleet.replica());
    await fleet.pass(PACE_MS * 6);
    const replica = fleet.replica();
    const { client, outcome } = await fleet.follow(replica);
    const { store } = replica.context;
    const read = store.read.bind(store);
    await fleet.pass(PACE_MS);
    store.read = async (...call) => {
      const stored = await read(...call);
      return stored && { ...stored, takeovers: [{ seq: 1 }] };
    };

    expect(await fleet.time.drive(outcome)).toBe('failed');
    expect([client.destroyed, client.ended]).toEqual([true, false]);
  });
});

test('a reader that cannot be noted is read to all the same', async () => {
  const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
  fleet.begin(fleet.replica());
  await fleet.pass(PACE_MS * 3);
  const replica = fleet.replica();
  replica.context.store.notes.put = async () => {
    throw new Error('the store is full');
  };
  const { client, outcome } = await fleet.follow(replica);

  expect(await fleet.time.drive(outcome)).toBe('replayed');
  expect(readStream(client.body).text).toBe(TEXT);
});

test('a reader that is slow to take what is stored is noted all the while', async () => {
  const fleet = new Fleet(PLAN, { pace_ms: PACE_MS });
  fleet.begin(fleet.replica());
  await fleet.pass(PACE_MS * 3);
  class StuckClient extends RecordingClient {
    override write(frames: string): boolean {
      super.write(frames);
      return frames === '';
    }
    override drained(): Promise<void> {
      return new Promise(() => {});
    }
  }
  const replica = fleet.replica();
  await fleet.follow(replica, {}, new StuckClient());
  const note = () => replica.context.store.notes.get(OWNER, { kind: 'reader', name: RUN });

  for (const after_ms of [10, 25_000, 25_000, 25_000]) {
    await fleet.pass(after_ms);
    expect(await note()).toBeDefined();
  }
});

test('a slow client holds up its own replay, which is written piece by piece', async () => {
  const words = 'kelp holds on to the rock '.repeat(8_000);
  const fleet = new Fleet({ parts: [{ text: words }], chunk: 10 });
  await fleet.time.drive(fleet.begin(fleet.replica()).outcome);
  class SlowClient extends RecordingClient {
    pieces: number[] = [];
    override write(frames: string): boolean {
      this.pieces.push(frames.length);
      super.write(frames);
      return false;
    }
    override drained(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      fleet.time.after(1_000, resolve);
      return promise;
    }
  }
  const client = new SlowClient();
  const { outcome } = await fleet.follow(fleet.replica(), {}, client);
  const began_ms = fleet.time.now();
  await fleet.time.drive(outcome);

  expect(readStream(client.body).text).toBe(words);
  expect(Math.max(...client.pieces)).toBeLessThan(70_000);
  const full = client.pieces.filter((length) => length > 0).length;
  expect(fleet.time.now() - began_ms).toBeGreaterThanOrEqual((full - 2) * 1_000);
});
