import { describe, expect, it } from 'vitest';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { SimulatedRoute } from './simulated-route.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
const IN_TEXT = { event: 6 } as const;

const says = (faults: readonly (Fault | null)[] = [], more: Partial<Plan> = {}): Plan => ({
  parts: [{ text: TEXT }],
  faults,
  ...more,
});
const always = (fault: Fault): Plan => says(Array.from({ length: 50 }, () => fault));
/** The names that providers give their refusals; the default is a failure of their own. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'model_not_found',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
};
const status = (code: number, headers: Readonly<Record<string, string>> = {}): Fault =>
  refusal(code, TYPES[code] ?? 'server_error', headers);
const refusal = (code: number, type: string, headers: Readonly<Record<string, string>> = {}): Fault => ({
  kind: 'status',
  status: code,
  headers,
  body: { error: { type, message: 'No.' } },
});
const CUT: Fault = { kind: 'reset', at: IN_TEXT };

const primaryAnd = (primary: Plan, second: Plan = says([], { model: 'second-model' }), recovery = {}) =>
  new SimulatedRoute({ primary: { plan: primary }, second: { plan: second } }, { recovery });

describe('before the first token', () => {
  it('a single 500 is asked again where it came from, after a backoff', async () => {
    const { stream, requests, elapsed_ms } = await primaryAnd(says([status(500)])).ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(requests).toEqual({ primary: 2, second: 0 });
    expect(elapsed_ms).toBe(250);
  });

  it('the next target follows the second one at once', async () => {
    const { stream, client, requests, elapsed_ms } = await primaryAnd(always(status(503))).ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    expect(requests).toEqual({ primary: 2, second: 1 });
    expect(elapsed_ms).toBe(250);
    expect(client.headers).toMatchObject({ 'holdfast-upstream': 'second', 'holdfast-attempts': '3' });
    expect(client.body).toContain('"model":"second-model"');
  });

  it('a target that asks to be left alone is, by all runs with the same key', async () => {
    const limited = status(429, { 'retry-after': '30' });
    const route = new SimulatedRoute({
      primary: { plan: says([limited]), api_key: 'ours' },
      second: { plan: says() },
    });
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 1 });
    await route.pass(29_000);
    expect((await route.ask()).requests).toEqual({ primary: 0, second: 1 });
    await route.pass(1000);
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 0 });
  });

  it('what the key of one client is refused for is nothing to another', async () => {
    const limited = status(429, { 'retry-after': '30' });
    const route = primaryAnd(says([limited]));
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 1 });
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 0 });
  });

  it('without another target the wait is honoured', async () => {
    const limited = status(429, { 'retry-after': '30' });
    const alone = new SimulatedRoute({ only: { plan: says([limited]) } });
    expect(await alone.ask()).toMatchObject({ requests: { only: 2 }, elapsed_ms: 31_500 });
  });

  it('nor is a target asked before its time when the other one will not do', async () => {
    const limited = status(429, { 'retry-after': '30' });
    const { requests, elapsed_ms, stream } = await primaryAnd(says([limited]), always(status(400))).ask();
    expect(stream.text).toBe(TEXT);
    expect(requests).toEqual({ primary: 2, second: 1 });
    expect(elapsed_ms).toBe(31_500);
  });

  it('a target that never answers costs its own clock, once', async () => {
    const route = new SimulatedRoute({
      primary: {
        plan: always({ kind: 'silence', at: { before_headers: true } }),
        clocks: { first_byte_ms: 700 },
      },
      second: { plan: says() },
    });
    expect(await route.ask()).toMatchObject({ requests: { primary: 1, second: 1 }, elapsed_ms: 700 });
  });

  it('so does one whose first token is late', async () => {
    const route = new SimulatedRoute({
      primary: { plan: always({ kind: 'comments', at: { event: 1 } }), clocks: { first_token_ms: 900 } },
      second: { plan: says() },
    });
    expect(await route.ask()).toMatchObject({ requests: { primary: 1, second: 1 }, elapsed_ms: 900 });
  });

  it('when all stay silent it is over', async () => {
    const silent = { plan: always({ kind: 'silence', at: { before_headers: true } }) };
    const { client, requests, elapsed_ms } = await new SimulatedRoute(
      { primary: silent, second: silent },
      { clocks: { first_byte_ms: 3000 } },
    ).ask();
    expect(requests).toEqual({ primary: 1, second: 1 });
    expect(elapsed_ms).toBe(6000);
    // The client got its headers after five seconds, so the error is in the body.
    expect(client.body).toMatch(/idle_stall.*no_way_left/);
  });

  it('nothing of a target that failed before it had content is to be seen', async () => {
    const { stream, client } = await primaryAnd(
      always({ kind: 'error_openai', at: { event: 1 } }),
      says([], { model: 'second-model', id: 'second-id' }),
    ).ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    const models = [...client.body.matchAll(/"id":"([^"]+)-\d+".*?"model":"([^"]+)"/g)];
    expect(new Set(models.map(([, id, model]) => `${id} ${model}`))).toEqual(
      new Set(['second-id second-model']),
    );
  });
});

describe('the operator and the client', () => {
  const keyed = (fault: Fault) =>
    new SimulatedRoute({
      primary: { plan: always(fault), api_key: 'ours' },
      second: { plan: says(), api_key: 'theirs', model: 'their-model' },
    });

  it.each([
    ['a key', refusal(401, 'authentication_error'), 'unauthorised'],
    ['a key without the right', refusal(403, 'permission_error'), 'unauthorised'],
    ['a spent quota', refusal(429, 'insufficient_quota'), 'quota'],
    ['an unknown model', refusal(404, 'model_not_found'), 'model_not_found'],
  ])(
    '%s of the configuration leads to the next target, and is an error in the log',
    async (_, fault, cause) => {
      const route = keyed(fault);
      const { stream, requests } = await route.ask();
      expect(stream).toMatchObject({ text: TEXT, done: true });
      expect(requests).toEqual({ primary: 1, second: 1 });
      expect(route.logged('the configuration of a target is at fault')).toEqual([
        expect.objectContaining({ level: 50, upstream: 'primary', cause }),
      ]);
      const [request] = route.providers.get('second')?.requests ?? [];
      expect(request?.headers).toEqual({ authorization: 'theirs' });
      expect(request?.body.model).toBe('their-model');
    },
  );

  it.each([401, 403, 404, 400, 422])("%d to the client's own key is the client's", async (code) => {
    const { client, requests } = await primaryAnd(always(status(code))).ask();
    expect(client.rejection?.status).toBe(code);
    expect(requests).toEqual({ primary: 1, second: 0 });
  });

  it("the client gets its own fault, not the operator's", async () => {
    const route = new SimulatedRoute({
      primary: { plan: always(status(401)), api_key: 'ours' },
      second: { plan: always(status(422)), api_key: 'theirs' },
    });
    expect((await route.ask()).client.rejection?.status).toBe(422);
  });

  it('what another target makes of the request does not hide why it was asked', async () => {
    const { client, order } = await primaryAnd(always(status(503)), always(status(400))).ask();
    expect(client.rejection?.status).toBe(503);
    expect(order).toEqual(['primary', 'primary', 'second', 'primary']);
  });

  it.each([true, false])('a filter is never routed around (from the start: %s)', async (atOnce) => {
    const filtered = refusal(400, 'content_filter');
    const route = atOnce ? keyed(filtered) : primaryAnd(always(status(429)), always(filtered));
    const { client, requests } = await route.ask();
    expect(client.rejection).toMatchObject({ status: 400, body: expect.stringContaining('content_filter') });
    expect(requests).toEqual(atOnce ? { primary: 1, second: 0 } : { primary: 1, second: 1 });
  });

  it('a request that was too long goes to a target that takes more', async () => {
    const overflow = refusal(400, 'context_length_exceeded');
    const route = (contexts: [number?, number?]) =>
      new SimulatedRoute({
        primary: { plan: always(overflow), ...(contexts[0] && { context_tokens: contexts[0] }) },
        second: { plan: says(), ...(contexts[1] && { context_tokens: contexts[1] }) },
      }).ask();
    for (const contexts of [[8000, 128_000], [8000], [undefined, 128_000], []] as [number?, number?][])
      expect((await route(contexts)).requests).toEqual({ primary: 1, second: 1 });
    const { client, requests } = await route([8000, 8000]);
    expect(client.rejection?.status).toBe(400);
    expect(requests).toEqual({ primary: 1, second: 0 });
  });

  it('targets of which nothing is declared are each tried once', async () => {
    const plan = always(refusal(400, 'context_length_exceeded'));
    const { client, requests } = await new SimulatedRoute({ primary: { plan }, second: { plan } }).ask();
    expect(client.rejection?.status).toBe(400);
    expect(requests).toEqual({ primary: 1, second: 1 });
  });

  it('so does the rest of an answer', async () => {
    const overflow = refusal(400, 'context_length_exceeded');
    const route = new SimulatedRoute({
      primary: { plan: says([CUT, overflow]), context_tokens: 8000 },
      second: { plan: says(), context_tokens: 128_000 },
    });
    const { stream, requests } = await route.ask();
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    expect(requests).toEqual({ primary: 2, second: 1 });
  });
});

describe('in the middle of an answer', () => {
  it('a cut is mended by the same target, then by the next', async () => {
    const route = primaryAnd(says([CUT, CUT], { continuation: 'straight_on' }), says());
    const { stream, order, elapsed_ms } = await route.ask({}, { events: 'comments' });
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    expect(order).toEqual(['primary', 'primary', 'second']);
    expect(elapsed_ms).toBe(250);
    const recovered = { type: 'Recovered', plan: 'R1', mode: 'nudge', cause: 'connection_reset' };
    expect(stream.advisories).toEqual([
      { ...recovered, seam: 'unanchored', attempt: 2, gap_ms: 250 },
      { ...recovered, seam: 'unanchored', attempt: 3, gap_ms: 0, upstream: 'second' },
    ]);
  });

  it('a stall is mended by the next target alone', async () => {
    const { stream, order } = await primaryAnd(always({ kind: 'silence', at: IN_TEXT })).ask();
    expect(stream).toMatchObject({ text: TEXT, done: true });
    expect(order).toEqual(['primary', 'second']);
  });

  it('each target is asked in its own way', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([CUT]), dialect: 'vllm', model: 'a' },
        second: { plan: says([], { prefill: 'mistral' }), dialect: 'mistral', model: 'b', api_key: 'theirs' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream } = await route.ask();
    expect(stream.text).toBe(TEXT);
    const [request] = route.providers.get('second')?.requests ?? [];
    expect(request?.body).toMatchObject({ model: 'b' });
    expect(request?.body.messages.at(-1)).toEqual({
      role: 'assistant',
      content: 'The tide comes in twice',
      prefix: true,
    });
    expect(request?.body).not.toHaveProperty('continue_final_message');
    expect(request?.headers).toEqual({ authorization: 'theirs' });
  });

  it('a target that takes no prefill is nudged, and its refusal is not reported', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([CUT]), dialect: 'vllm' },
        second: { plan: says([], { continuation: 'rejects_prefill' }), dialect: 'generic' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream, order, elapsed_ms } = await route.ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, error: undefined });
    expect(order).toEqual(['primary', 'second', 'second']);
    expect(elapsed_ms).toBe(0);
  });

  it('a target that refuses a nudge as well is asked for nothing more', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([CUT]), dialect: 'vllm' },
        second: { plan: always(status(400)), dialect: 'generic' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream, order } = await route.ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, error: undefined });
    expect(order).toEqual(['primary', 'second', 'second', 'primary']);
  });

  it('one whose model is not there is not asked in every way', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([CUT]), dialect: 'vllm' },
        second: { plan: always(status(404)), dialect: 'vllm', model: 'misspelt' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream, order } = await route.ask();
    expect(stream).toMatchObject({ text: TEXT, done: true, error: undefined });
    expect(order).toEqual(['primary', 'second', 'primary']);
    expect(route.logged('the configuration of a target is at fault')).toHaveLength(1);
  });

  it('when no way of asking is left, another target is asked: for JSON there is but one', async () => {
    const json = `{"answer":"${TEXT}"}`;
    const plan = (text: string, faults: Fault[] = []): Plan => ({ parts: [{ text }], faults });
    const route = new SimulatedRoute(
      { primary: { plan: plan(json, [CUT]) }, second: { plan: plan(json.replace('tide', 'sea')) } },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream, order } = await route.ask({ response_format: { type: 'json_object' } });
    expect(stream).toMatchObject({ text: json, done: true, violations: [] });
    expect(order).toEqual(['primary', 'second', 'primary']);
  });

  it('thoughts of another model are not its own to continue', async () => {
    const thinks = (faults: (Fault | null)[]): Plan => ({
      parts: [{ reasoning: 'Tides come and go.' }, { text: TEXT }],
      faults,
    });
    const route = new SimulatedRoute(
      {
        primary: { plan: thinks([{ kind: 'reset', at: { event: 4 } }]), dialect: 'deepseek' },
        second: { plan: thinks([]), dialect: 'deepseek' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream } = await route.ask();
    expect(stream).toMatchObject({ text: TEXT, reasoning: 'Tides come and go.', done: true, violations: [] });
    const [request] = route.providers.get('second')?.requests ?? [];
    expect(request?.body.messages).toEqual([{ role: 'user', content: 'Tell me.' }]);
  });

  it('begun by one, continued by another, finished by the first: as if uncut, in the name of the first', async () => {
    const route = new SimulatedRoute(
      {
        primary: { plan: says([CUT], { model: 'one', id: 'one' }), dialect: 'vllm' },
        second: { plan: says([CUT], { model: 'two', id: 'two' }), dialect: 'vllm' },
      },
      { recovery: { same_target_retries: 0 } },
    );
    const { stream, order, client, outcome } = await route.ask();
    expect(order).toEqual(['primary', 'second', 'primary']);
    expect(outcome).toBe('recovered');
    expect(stream).toMatchObject({ text: TEXT, finish: 'stop', done: true, violations: [] });
    expect(client.body).not.toContain('two');
    const uncut = await new SimulatedRoute({ only: { plan: says() } }).ask();
    expect(stream.usage).toEqual(uncut.stream.usage);
  });

  it('failures of each target are counted and logged by name, and so is what each of them cost', async () => {
    const route = primaryAnd(says([CUT, status(503)]), says());
    await route.ask();
    const text = await route.metrics.registry.metrics();
    const samples = text
      .split('\n')
      .filter((line) => /^holdfast_(attempts|interruptions)_total\{/.test(line));
    expect(samples.sort()).toEqual([
      'holdfast_attempts_total{upstream="primary",outcome="interrupted"} 2',
      'holdfast_attempts_total{upstream="second",outcome="complete"} 1',
      'holdfast_interruptions_total{cause="connection_reset",phase="text",upstream="primary"} 1',
      'holdfast_interruptions_total{cause="provider_5xx",phase="connect",upstream="primary"} 1',
    ]);
    expect(route.logged('interrupted').map(({ upstream }) => upstream)).toEqual(['primary', 'primary']);
    expect(route.logged('recovered')).toEqual([expect.objectContaining({ upstream: 'second' })]);
    const [{ usage } = {}] = route.logged('usage');
    expect(usage).toEqual([
      expect.objectContaining({ upstream: 'primary', attempts: 2, unreported: 2, completion_tokens: 0 }),
      expect.objectContaining({ upstream: 'second', attempts: 1, unreported: 0 }),
    ]);
  });
});

describe('an outage', () => {
  const DOWN_MS = [8000, 68_000] as const;

  it.each([
    ['503', status(503)],
    ['refused connections', { kind: 'reset', at: { before_headers: true } } as Fault],
  ])('of a minute, with %s: all are served, few find out, and it is over soon', async (_, fault) => {
    const route: SimulatedRoute = new SimulatedRoute({
      primary: { plan: () => (isDown() ? always(fault) : says()) },
      second: { plan: says() },
    });
    const isDown = () => route.time.now() >= DOWN_MS[0] && route.time.now() < DOWN_MS[1];
    let during = 0;
    let back_ms: number | undefined;
    while (route.time.now() < 110_000) {
      const began_ms = route.time.now();
      const { stream, requests } = await route.ask();
      expect(stream).toMatchObject({ text: TEXT, done: true });
      if (isDown()) during += requests.primary ?? 0;
      const isBack = began_ms >= DOWN_MS[1] && requests.primary === 1 && requests.second === 0;
      if (isBack) back_ms ??= began_ms - DOWN_MS[1];
      else expect(back_ms).toBeUndefined();
      await route.pass(4000 - (route.time.now() - began_ms));
    }
    expect(during).toBeLessThanOrEqual(10);
    expect(back_ms).toBeLessThan(30_000);
    expect(route.logged('target is down').length).toBeGreaterThan(0);
    expect(route.logged('target is up')).toEqual([expect.objectContaining({ upstream: 'primary' })]);
  });

  it('is to be seen in the metrics: down, to be tried, down again, and up', async () => {
    let plan = always(status(503));
    const route = new SimulatedRoute({ primary: { plan: () => plan }, second: { plan: says() } });
    const samples = async () => {
      const text = await route.metrics.registry.metrics();
      const values = [
        ...text.matchAll(/^holdfast_target_(\w+)\{upstream="(\w+)",model="",state="(\w+)"\} (\d)$/gm),
      ];
      const of = (name: string, target: string) =>
        values.flatMap(([, what, upstream, state, value]) =>
          what === name && upstream === target && value !== '0' ? `${state} ${value}` : [],
        );
      expect(of('state', 'second')).toEqual(['closed 1']);
      expect(of('transitions_total', 'second')).toEqual([]);
      return [...of('state', 'primary'), ...of('transitions_total', 'primary')];
    };
    expect(await samples()).toEqual(['closed 1']);
    for (let request = 0; request < 3; request++) await route.ask();
    expect(await samples()).toEqual(['open 1', 'open 1']);
    await route.pass(5000);
    expect(await samples()).toEqual(['half_open 1', 'open 1']);
    await route.ask();
    expect(await samples()).toEqual(['open 1', 'open 2']);
    plan = says();
    await route.pass(10_000);
    await route.ask();
    expect(await samples()).toEqual(['closed 1', 'open 2', 'closed 1']);
  });

  it('finds out with one request at a time', async () => {
    let plan = always(status(503));
    const route = new SimulatedRoute({ primary: { plan: () => plan }, second: { plan: says() } });
    for (let request = 0; request < 3; request++) await route.ask();
    plan = always({ kind: 'silence', at: { event: 0 }, for_ms: 3000 });
    await route.pass(5000);
    const asked = () => route.providers.get('primary')?.requests.length;
    const before = asked() ?? 0;
    await route.time.drive(Promise.all([route.begin(), route.begin(), route.begin()]));
    expect(asked()).toBe(before + 1);
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 0 });
  });

  it('a client that leaves while it finds out makes room for the next', async () => {
    let plan = always(status(503));
    const route = new SimulatedRoute({ primary: { plan: () => plan }, second: { plan: says() } });
    for (let request = 0; request < 3; request++) await route.ask();
    plan = always({ kind: 'silence', at: { before_headers: true } });
    await route.pass(5000);
    const gone = new AbortController();
    const left = route.begin({}, { gone });
    await route.pass(100);
    gone.abort();
    expect(await route.time.drive(left)).toMatchObject({ outcome: 'cancelled', requests: { primary: 1 } });
    plan = says();
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 0 });
  });

  it('of all targets leaves the preferred one to be tried', async () => {
    let plan = always(status(503));
    const target = { plan: () => plan };
    const route = new SimulatedRoute({ primary: target, second: target });
    for (let request = 0; request < 6; request++) await route.ask();
    const down = route.logged('target is down').map(({ upstream }) => upstream);
    expect(new Set(down)).toEqual(new Set(['primary', 'second']));
    plan = says();
    expect((await route.ask()).requests).toEqual({ primary: 1, second: 0 });
  });
});

describe('the metrics of latency', () => {
  type Latency = 'timeToFirstToken' | 'recoveryGap';
  async function countsOf({ metrics }: SimulatedRoute, latency: Latency) {
    const { values } = await metrics[latency].get();
    const counts = values.filter(({ metricName, value }) => metricName?.endsWith('_count') && value > 0);
    return Object.fromEntries(counts.map(({ labels, value }) => [labels.upstream, value]));
  }

  it('count the gap for the upstream that was cut, and the first token for the one that said it', async () => {
    const route = primaryAnd(says([CUT]), says([CUT]), { same_target_retries: 0 });
    const { order } = await route.ask();
    expect(order).toEqual(['primary', 'second', 'primary']);
    expect(await countsOf(route, 'timeToFirstToken')).toEqual({ primary: 1 });
    expect(await countsOf(route, 'recoveryGap')).toEqual({ primary: 1, second: 1 });

    const late = primaryAnd(always(status(503)));
    await late.ask();
    expect(await countsOf(late, 'timeToFirstToken')).toEqual({ second: 1 });
  });
});
