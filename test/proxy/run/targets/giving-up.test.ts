import { describe, expect, it } from 'vitest';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { SimulatedRoute } from './simulated-route.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const IN_TEXT = { event: 6 } as const;
const BEFORE_TEXT = { event: 0 } as const;
const BEFORE_HEADERS = { before_headers: true } as const;

const says = (...faults: readonly (Fault | undefined)[]): Plan => ({ parts: [{ text: TEXT }], faults });
const always = (fault: Fault): Plan => says(...Array.from({ length: 99 }, () => fault));
const refusal = (status: number, headers: Readonly<Record<string, string>> = {}): Fault => ({
  kind: 'status',
  status,
  headers,
  body: { error: { type: status === 429 ? 'rate_limit_error' : 'server_error', message: 'No.' } },
});
const inStream = (at: { event: number }, error: object): Fault => ({
  kind: 'malformed_event',
  at,
  event: `data: ${JSON.stringify({ error: { type: 'rate_limit_error', message: 'No.', ...error } })}\n\n`,
});
const SILENCE: Fault = { kind: 'silence', at: BEFORE_HEADERS };
const CUT: Fault = { kind: 'reset', at: { event: 2 } };

const alone = (plan: Plan, sections: ConstructorParameters<typeof SimulatedRoute>[1] = {}) =>
  new SimulatedRoute({ only: { plan } }, sections);
const pair = (
  first: Plan,
  second: Plan = says(),
  sections: ConstructorParameters<typeof SimulatedRoute>[1] = {},
) => new SimulatedRoute({ first: { plan: first }, second: { plan: second } }, sections);

describe('progress', () => {
  /** Each attempt advances by a word or two, because nothing has to be repeated first. */
  const exact = (plan: Plan, sections: ConstructorParameters<typeof SimulatedRoute>[1] = {}) =>
    new SimulatedRoute({ only: { plan: { ...plan, prefill: 'vllm' }, dialect: 'vllm' } }, sections);

  it('of whatever size gives the answer all of its attempts again', async () => {
    const { stream, requests } = await exact(says(...Array.from({ length: 12 }, () => CUT))).ask();
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    expect(requests).toEqual({ only: 13 });
  });

  it('ends where the work of all attempts is more than is allowed', async () => {
    const { stream, requests } = await exact(always(CUT), { recovery: { max_work_tokens: 1000 } }).ask();
    expect(requests).toEqual({ only: 4 });
    expect(stream.error).toMatchObject({ message: expect.stringContaining('(work)') });
    expect([stream.finish, stream.done]).toEqual([undefined, false]);
  });
});

describe('a provider that restarts', () => {
  const CUT_IN_TEXT: Fault = { kind: 'reset', at: IN_TEXT };
  /** The provider is away from the time at which it cuts the answer. */
  const restarting = (
    away_ms: number,
    plan: Plan,
    sections: ConstructorParameters<typeof SimulatedRoute>[1] = {},
  ) => new SimulatedRoute({ only: { plan, away_ms: [1, away_ms] } }, sections);

  it('is waited for by an answer that has begun', async () => {
    const { stream, requests, elapsed_ms } = await restarting(25_000, says(CUT_IN_TEXT)).ask();
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    expect(requests).toEqual({ only: 2 });
    expect(elapsed_ms).toBeGreaterThanOrEqual(25_000);
  });

  it('that does not come back is given up in the end, and not before', async () => {
    const { stream, requests, elapsed_ms } = await restarting(3_600_000, says(CUT_IN_TEXT)).ask();
    expect(stream.error).toMatchObject({
      message: expect.stringContaining(', ECONNREFUSED); gave up after'),
    });
    expect([requests, stream.finish, stream.done]).toEqual([{ only: 1 }, undefined, false]);
    expect(elapsed_ms).toBeGreaterThanOrEqual(30_000);
    expect(elapsed_ms).toBeLessThan(60_000);
  });

  it('is given up at once where nothing is to be waited for', async () => {
    const { stream, elapsed_ms } = await restarting(25_000, says(CUT_IN_TEXT), {
      recovery: { unreachable_ms: 0 },
    }).ask();
    expect(stream.error).toMatchObject({ message: expect.stringContaining('(attempts)') });
    expect(elapsed_ms).toBeLessThan(4000);
  });

  it('is not waited for beyond the deadline of the run', async () => {
    const { stream, elapsed_ms } = await restarting(25_000, says(CUT_IN_TEXT)).ask(
      {},
      { deadline_ms: 10_000 },
    );
    expect(stream.error).toMatchObject({ message: expect.stringContaining('(deadline)') });
    expect(elapsed_ms).toBeLessThanOrEqual(10_000);
  });

  it('is not waited for where another target can continue', async () => {
    const { stream, requests, elapsed_ms } = await new SimulatedRoute({
      first: { plan: says(CUT_IN_TEXT), away_ms: [1, 25_000] },
      second: { plan: says() },
    }).ask();
    expect([stream.text, requests]).toEqual([TEXT, { first: 1, second: 1 }]);
    expect(elapsed_ms).toBeLessThan(4000);
  });

  it('refuses an answer that has not begun as quickly as ever', async () => {
    const route = new SimulatedRoute({ only: { plan: says(), away_ms: [0, 25_000] } });
    const { client, elapsed_ms } = await route.ask();
    expect(client.rejection?.status).toBe(502);
    expect(elapsed_ms).toBeLessThan(4000);
  });
});

describe('the deadline of a run', () => {
  it('ends the wait for an answer that has not begun', async () => {
    const { client, requests, elapsed_ms } = await alone(always(SILENCE)).ask({}, { deadline_ms: 3000 });
    expect(client.rejection).toMatchObject({
      status: 504,
      body: expect.stringContaining('upstream_timeout'),
    });
    expect([requests, elapsed_ms]).toEqual([{ only: 1 }, 3000]);
  });

  it('is that of the configuration, unless the client has an earlier one', async () => {
    const route = () => alone(always(SILENCE), { recovery: { deadline_ms: 5000 } });
    expect((await route().ask()).elapsed_ms).toBe(5000);
    expect((await route().ask({}, { deadline_ms: 10_000 })).elapsed_ms).toBe(5000);
    expect((await route().ask({}, { deadline_ms: 1000 })).elapsed_ms).toBe(1000);
  });

  it('is not waited for: where the backoff would take longer, it ends at once', async () => {
    const { client, requests, elapsed_ms } = await alone(always(refusal(503))).ask({}, { deadline_ms: 200 });
    expect(client.rejection?.status).toBe(503);
    expect([requests, elapsed_ms]).toEqual([{ only: 1 }, 0]);
  });

  it('does not cut an answer that is coming, but nothing is asked for after it', async () => {
    const slow: Fault = { kind: 'pings', at: IN_TEXT, every_ms: 1000, for_ms: 20_000 };
    const whole = await alone(says(slow)).ask({}, { deadline_ms: 10_000 });
    expect([whole.stream.text, whole.stream.done, whole.requests]).toEqual([TEXT, true, { only: 1 }]);

    const cut = await alone(says({ ...slow, cut: 'reset' })).ask({}, { deadline_ms: 10_000 });
    expect(cut.requests).toEqual({ only: 1 });
    expect(cut.stream.error).toMatchObject({ message: expect.stringContaining('(deadline)') });
  });
});

describe('a Retry-After above the cap', () => {
  const LONG = refusal(429, { 'retry-after': '61' });

  it('is never broken: the client is told at once, in the words of the provider', async () => {
    const { client, requests, elapsed_ms } = await alone(always(LONG)).ask();
    expect([client.rejection?.status, client.rejectionHeaders['retry-after']]).toEqual([429, '61']);
    expect([requests, elapsed_ms]).toEqual([{ only: 1 }, 0]);
  });

  it('leads elsewhere, and never back', async () => {
    const { stream, requests } = await pair(always(LONG), says(refusal(503), refusal(503))).ask();
    expect([stream.text, requests]).toEqual([TEXT, { first: 1, second: 3 }]);
    const both = await pair(always(LONG), always(refusal(429, { 'retry-after': '3600' }))).ask();
    expect([both.client.rejection?.status, both.requests]).toEqual([429, { first: 1, second: 1 }]);
  });

  it('that comes in the stream is told by us, as a header or in the error', async () => {
    const { client, requests } = await alone(always(inStream(BEFORE_TEXT, { retry_after: 61 }))).ask();
    expect([client.rejection?.status, client.rejectionHeaders['retry-after']]).toEqual([503, '61']);
    expect(requests).toEqual({ only: 1 });

    const later = await alone(always(inStream(IN_TEXT, { retry_after: 61 }))).ask();
    expect(later.stream.error).toMatchObject({
      message: expect.stringContaining('(retry_after)'),
      holdfast: { cause: 'rate_limited', retry_after_ms: 61_000 },
    });
  });

  it('up to it is waited for', async () => {
    const { stream, elapsed_ms } = await alone(says(refusal(429, { 'retry-after': '60' }))).ask();
    expect([stream.text, elapsed_ms]).toEqual([TEXT, 63_000]);
  });
});

describe('a time to come back that is told in the stream', () => {
  const quoting = (headers: object) => says(inStream(BEFORE_TEXT, { metadata: { headers } }));
  const wall_ms = alone(says()).time.wall();

  it.each([
    ['X-RateLimit-Reset, in milliseconds since 1970', { 'X-RateLimit-Reset': wall_ms + 20_000 }],
    ['X-RateLimit-Reset, in seconds', { 'X-RateLimit-Reset': 20 }],
    ['X-RateLimit-Reset-Requests, as a duration', { 'X-RateLimit-Reset-Requests': '20s' }],
    ['Retry-After, in seconds', { 'Retry-After': '20' }],
  ])('is honoured: %s', async (_, headers) => {
    const { stream, elapsed_ms } = await alone(quoting(headers)).ask();
    expect([stream.text, elapsed_ms]).toEqual([TEXT, 21_000]);
  });

  it('is honoured: an HTTP date', async () => {
    const date = new Date(Math.ceil(wall_ms / 1000) * 1000 + 20_000).toUTCString();
    const { elapsed_ms } = await alone(quoting({ 'Retry-After': date })).ask();
    expect(elapsed_ms).toBeGreaterThanOrEqual(20_000);
    expect(elapsed_ms).toBeLessThan(23_000);
  });
});

describe('a route with a stand-in', () => {
  it('waits for a target that says when to come back only as far as it is told to', async () => {
    const limited = says(refusal(429, { 'retry-after': '2' }));
    expect((await pair(limited).ask()).requests).toEqual({ first: 1, second: 1 });
    const patient = await pair(limited, says(), { recovery: { retry_after_wait_s: 2 } }).ask();
    expect([patient.requests, patient.elapsed_ms]).toEqual([{ first: 2, second: 0 }, 2100]);
    const less = await pair(limited, says(), { recovery: { retry_after_wait_s: 1 } }).ask();
    expect(less.requests).toEqual({ first: 1, second: 1 });
  });

  it.each([
    ['before the first token', { event: 1 }],
    ['in mid-answer', IN_TEXT],
  ])('takes a silence that ends in a close for a silence %s', async (_, at) => {
    const hangsUp = (for_ms: number): Fault => ({
      kind: 'comments',
      at,
      every_ms: 1000,
      for_ms,
      cut: 'reset',
    });
    const silent = await pair(says(hangsUp(20_000))).ask();
    expect([silent.stream.text, silent.requests]).toEqual([TEXT, { first: 1, second: 1 }]);
    const brief = await pair(says(hangsUp(2000))).ask();
    expect([brief.stream.text, brief.requests]).toEqual([TEXT, { first: 2, second: 0 }]);
  });

  it('leaves a silent target after 30 s, where nothing else is configured', async () => {
    expect((await pair(always(SILENCE)).ask()).elapsed_ms).toBe(30_000);
    expect((await pair(always({ kind: 'silence', at: IN_TEXT })).ask()).elapsed_ms).toBe(30_000);
    const explicit = pair(always(SILENCE), says(), {
      clocks: { first_byte_ms: 50_000, first_token_ms: 50_000 },
    });
    expect((await explicit.ask()).elapsed_ms).toBe(50_000);
  });

  it('has patience with the last that is left', async () => {
    const { stream, elapsed_ms } = await pair(always(SILENCE), always(SILENCE)).ask();
    expect(stream.error).toMatchObject({ holdfast: { cause: 'idle_stall', attempts: 2 } });
    expect(elapsed_ms).toBe(150_000);
  });

  it('has patience with a model that was seen to think', async () => {
    const thinks: Plan = {
      parts: [{ reasoning: 'Twice a day.' }, { text: TEXT }],
      faults: [{ kind: 'silence', at: IN_TEXT, for_ms: 80_000 }, SILENCE],
    };
    const route = pair(thinks);
    expect((await route.ask()).requests).toEqual({ first: 1, second: 0 });
    expect((await route.ask()).elapsed_ms).toBe(120_000);
  });

  it('doubts a model that fails, and no other behind the same upstream', async () => {
    const fails = says(...Array.from({ length: 10 }, () => refusal(500)));
    const route = pair(fails);
    for (let run = 0; run < 5; run++) await route.ask({ model: 'bad' });
    expect((await route.ask({ model: 'bad' })).requests).toEqual({ first: 0, second: 1 });
    expect((await route.ask({ model: 'good' })).requests.first).toBeGreaterThan(0);
  });
});

it('a request without a stream obeys the clocks that are configured', async () => {
  const clocks = { first_byte_ms: 5000 };
  const { elapsed_ms } = await alone(always(SILENCE), { clocks, recovery: { max_attempts: 1 } }).ask(
    {},
    { unstreamed: true },
  );
  expect(elapsed_ms).toBe(5000);
});
