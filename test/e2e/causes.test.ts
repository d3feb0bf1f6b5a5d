import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cause, Evidence } from '../../src/interrupts/interruption.ts';
import type { Fault } from '../provider/fault.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { LogLine } from './holdfast-process.ts';
import { type RawAnswer, rawAnswer, streamRequest } from './raw-client.ts';
import { TROUBLES } from './troubles.ts';

const TEXT = 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.';
/** After the role and `The tide comes in twice`. */
const IN_TEXT = { event: 6 } as const;
const RETRY_AFTER_MAX_S = 2;
/** Two clocks and a timer, each of which may be off by a millisecond. */
const CLOCK_GRAIN_MS = 3;

/** Accepts connections but never writes, so that no TLS handshake finishes. */
const mute = createServer((socket: Socket) => socket.on('error', () => {}));
const muteUrl = async (): Promise<string> => {
  await once(mute.listen(0, '127.0.0.1'), 'listening');
  const address = mute.address();
  return `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1`;
};

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({
    recovery: { retry_after_max_s: RETRY_AFTER_MAX_S },
    upstreams: {
      mute: { base_url: await muteUrl(), clocks: { connect_ms: 200 } },
      // No process listens on the loopback interface's discard port.
      nowhere: { base_url: 'http://127.0.0.1:9/v1' },
    },
  });
});
afterAll(async () => {
  mute.close();
  await deployment.close();
});

/** The log entry and metrics for one interruption. */
interface Reported {
  readonly cause: Cause;
  readonly phase: string;
  readonly evidence: Evidence;
  readonly status?: number;
  readonly attempt: number;
}

interface Observed {
  readonly answer: RawAnswer;
  readonly interruptions: readonly Reported[];
  /** Increases of `holdfast_interruptions_total`, by label set. */
  readonly counted: Readonly<Record<string, number>>;
  readonly requests: number;
}

/** Runs one request at a time, so that the log lines and metrics in between belong to it. */
async function observe(upstream: string, fault: Fault | undefined): Promise<Observed> {
  const question = `${expect.getState().currentTestName}`;
  deployment.plan(question, { parts: [{ text: TEXT }], faults: [fault] });
  const { holdfast } = deployment;
  const from = holdfast.log.length;
  const before = await holdfast.metrics();
  const answer = await rawAnswer(holdfast.url, streamRequest(modelOf(upstream), question));
  await holdfast.logged(({ msg }) => msg === 'run ended', from);
  const lines = holdfast.log.slice(from).filter(({ msg }) => msg === 'interrupted');
  return {
    answer,
    interruptions: lines.map(reported),
    counted: increases(before, await holdfast.metrics()),
    requests: deployment.requests(question).length,
  };
}

function reported(line: LogLine): Reported {
  const { cause, phase, evidence, status, attempt } = line as unknown as Reported;
  return { cause, phase, evidence, ...(status !== undefined && { status }), attempt };
}

function increases(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Record<string, number> {
  const counted: Record<string, number> = {};
  for (const [series, value] of after) {
    const labels = /^holdfast_interruptions_total\{(.*)\}$/.exec(series)?.[1];
    const increase = value - (before.get(series) ?? 0);
    if (labels !== undefined && increase !== 0) counted[labels] = increase;
  }
  return counted;
}

const labelsOf = (cause: string, phase: string, upstream: string) =>
  `cause="${cause}",phase="${phase}",upstream="${upstream}"`;

describe('an interruption is named after its evidence', () => {
  const interruptions = TROUBLES.filter(({ classified }) => classified);
  test.each(interruptions)('$name', async ({ upstream, fault, classified }) => {
    const { answer, interruptions, counted, requests } = await observe(upstream, fault(IN_TEXT));
    expect(answer).toMatchObject({ status: 200, text: TEXT, finish: 'stop', done: true });
    expect(requests).toBe(2);
    const expected = { phase: 'text', attempt: 1, ...classified };
    expect(interruptions).toEqual([expected]);
    expect(counted).toEqual({ [labelsOf(expected.cause ?? '', expected.phase, upstream)]: 1 });
  });

  test.each(TROUBLES.filter(({ classified }) => !classified))('none: $name', async ({ upstream, fault }) => {
    const { answer, interruptions, counted, requests } = await observe(upstream, fault(IN_TEXT));
    expect(answer).toMatchObject({ status: 200, text: TEXT, finish: 'stop', done: true });
    expect({ interruptions, counted, requests }).toEqual({ interruptions: [], counted: {}, requests: 1 });
  });

  test('an attempt that takes too long as a whole', async () => {
    const { answer, interruptions } = await observe('brief', { kind: 'silence', at: IN_TEXT });
    expect(answer).toMatchObject({ status: 200, text: TEXT, finish: 'stop', done: true });
    const evidence = { kind: 'clock', clock: 'attempt' };
    expect(interruptions).toEqual([{ cause: 'idle_stall', phase: 'text', evidence, attempt: 1 }]);
  });

  test('a malformed event is counted besides', async () => {
    const series = 'holdfast_malformed_events_total{upstream="h2"}';
    expect((await deployment.holdfast.metrics()).get(series) ?? 0).toBe(0);
    await observe('h2', { kind: 'malformed_event', at: IN_TEXT });
    expect((await deployment.holdfast.metrics()).get(series)).toBe(1);
  });

  const first_token = { event: 1 } as const;
  const before_headers = { before_headers: true } as const;
  const early: [string, string, Fault, Omit<Reported, 'attempt'>][] = [
    [
      'silence instead of a response',
      'impatient',
      { kind: 'silence', at: before_headers },
      { cause: 'idle_stall', phase: 'connect', evidence: { kind: 'clock', clock: 'first_byte' } },
    ],
    [
      'headers, and then silence',
      'impatient',
      { kind: 'silence', at: { event: 0 } },
      { cause: 'idle_stall', phase: 'first_token', evidence: { kind: 'clock', clock: 'idle' } },
    ],
    [
      'a role, and then comments only',
      'impatient',
      { kind: 'comments', at: first_token, every_ms: 50 },
      { cause: 'idle_stall', phase: 'first_token', evidence: { kind: 'clock', clock: 'first_token' } },
    ],
    [
      'a role, and then pings only',
      'impatient',
      { kind: 'pings', at: first_token, every_ms: 50 },
      { cause: 'idle_stall', phase: 'first_token', evidence: { kind: 'clock', clock: 'first_token' } },
    ],
    [
      'a reset instead of a response',
      'h1',
      { kind: 'reset', at: before_headers },
      { cause: 'connection_reset', phase: 'connect', evidence: { kind: 'transport', code: 'ECONNRESET' } },
    ],
    [
      'RST_STREAM instead of a response',
      'h2',
      { kind: 'h2_rst', at: before_headers },
      {
        cause: 'connection_reset',
        phase: 'connect',
        evidence: { kind: 'transport', code: 'ERR_HTTP2_STREAM_ERROR' },
      },
    ],
    [
      'GOAWAY instead of a response',
      'h2',
      { kind: 'goaway_error', at: before_headers },
      { cause: 'goaway', phase: 'connect', evidence: { kind: 'goaway', code: 2 } },
    ],
    [
      'a reset after the role',
      'h1',
      { kind: 'reset', at: first_token },
      {
        cause: 'connection_reset',
        phase: 'first_token',
        evidence: { kind: 'transport', code: 'ECONNRESET' },
      },
    ],
    [
      'an error in place of the first token',
      'h1',
      { kind: 'error_anthropic', at: { event: 0 } },
      {
        cause: 'provider_5xx',
        phase: 'first_token',
        evidence: { kind: 'error_event', type: 'overloaded_error' },
        status: 529,
      },
    ],
    ...[408, 429, 500, 502, 503, 504, 529].map(
      (status): [string, string, Fault, Omit<Reported, 'attempt'>] => [
        `status ${status}`,
        'h1',
        { kind: 'status', status, body: { error: { message: 'Not now.' } } },
        {
          cause: status === 429 ? 'rate_limited' : 'provider_5xx',
          phase: 'connect',
          evidence: { kind: 'status', status },
          status,
        },
      ],
    ),
  ];
  test.each(early)('before the first token: %s', async (_name, upstream, fault, expected) => {
    const { answer, interruptions, counted } = await observe(upstream, fault);
    expect(answer).toMatchObject({ status: 200, text: TEXT, finish: 'stop', done: true });
    expect(interruptions).toEqual([{ ...expected, attempt: 1 }]);
    expect(counted).toEqual({ [labelsOf(expected.cause, expected.phase, upstream)]: 1 });
  });

  test('a TLS handshake that does not end', async () => {
    const { answer, interruptions, counted } = await observe('mute', undefined);
    expect(answer.status).toBe(504);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'upstream_timeout' } });
    const evidence = { kind: 'clock', clock: 'connect' };
    expect(interruptions).toEqual(
      [1, 2, 3, 4].map((attempt) => ({ cause: 'idle_stall', phase: 'connect', evidence, attempt })),
    );
    expect(counted).toEqual({ [labelsOf('idle_stall', 'connect', 'mute')]: 4 });
  });

  test('a port without a listener', async () => {
    const { answer, interruptions } = await observe('nowhere', undefined);
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'upstream_unreachable' } });
    const evidence = { kind: 'transport', code: 'ECONNREFUSED' };
    expect(interruptions).toEqual(
      [1, 2, 3, 4].map((attempt) => ({ cause: 'connection_reset', phase: 'connect', evidence, attempt })),
    );
  });
});

describe('what is permanent is not tried again', () => {
  const refusals: [string, number, Cause, object][] = [
    [
      'a quota',
      429,
      'quota',
      { message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' },
    ],
    ['no more money', 402, 'quota', { message: 'Insufficient credits', code: 402 }],
    [
      'a wrong key',
      401,
      'unauthorised',
      { message: 'Incorrect API key provided.', type: 'invalid_request_error', code: 'invalid_api_key' },
    ],
    ['a key without the right', 403, 'unauthorised', { message: 'Forbidden', type: 'permission_error' }],
    [
      'an unknown model',
      404,
      'model_not_found',
      { message: 'No such model.', type: 'invalid_request_error', code: 'model_not_found' },
    ],
    [
      'an invalid request',
      400,
      'invalid_request',
      { message: 'Unknown parameter: foo.', type: 'invalid_request_error', param: 'foo' },
    ],
    [
      'a request that cannot be processed',
      422,
      'invalid_request',
      { message: 'temperature: Input should be less than 2' },
    ],
    [
      'too long a prompt, by its code',
      400,
      'context_overflow',
      {
        message: 'This model is limited.',
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    ],
    [
      'too long a prompt, in prose',
      400,
      'context_overflow',
      { message: 'prompt is too long: 210000 tokens > 200000 maximum', type: 'invalid_request_error' },
    ],
    [
      'a content filter',
      400,
      'content_filter',
      { message: 'The prompt was filtered.', code: 'content_filter', status: 400 },
    ],
  ];
  test.each(refusals)('%s (%i) reaches the client as it came', async (_name, status, cause, error) => {
    // Whitespace that no serialiser would produce.
    const body = `{ "error" :\t${JSON.stringify(error)} }\n`;
    const headers = { 'content-type': 'application/json; charset=UTF-8', 'x-request-id': 'req_42' };
    const { answer, interruptions, counted, requests } = await observe('h1', {
      kind: 'status',
      status,
      headers,
      body,
    });
    expect(requests).toBe(1);
    expect(answer).toMatchObject({ status, body });
    expect(Object.fromEntries(answer.headers)).toMatchObject(headers);
    expect(interruptions).toEqual([
      { cause, phase: 'connect', evidence: { kind: 'status', status }, status, attempt: 1 },
    ]);
    expect(counted).toEqual({ [labelsOf(cause, 'connect', 'h1')]: 1 });
  });

  test('a quota that runs out in the middle of the stream', async () => {
    const { answer, interruptions, requests } = await observe('h1', { kind: 'error_quota', at: IN_TEXT });
    expect(requests).toBe(1);
    expect(interruptions).toMatchObject([{ cause: 'quota', phase: 'text' }]);
    expect(answer).toMatchObject({ status: 200, finish: undefined, done: false });
    expect(answer.chunks.at(-1)?.error).toMatchObject({
      type: 'stream_interrupted',
      holdfast: { cause: 'quota', attempts: 1, retryable: false },
    });
  });
});

describe.concurrent('the next request waits for as long as the provider asks', () => {
  const inTwoSeconds = (): number => Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const refused = (headers: Record<string, string>, error: object = {}): Fault => ({
    kind: 'status',
    status: 429,
    headers,
    body: { error: { message: 'Slow down.', type: 'rate_limit_error', ...error } },
  });
  const forms: [string, () => { fault: Fault; wait_ms?: number; until_ms?: number }][] = [
    ['retry-after-ms', () => ({ fault: refused({ 'retry-after-ms': '400' }), wait_ms: 400 })],
    ['retry-after in seconds', () => ({ fault: refused({ 'retry-after': '1' }), wait_ms: 1000 })],
    [
      'retry-after as a date',
      () => {
        const until_ms = inTwoSeconds();
        return { fault: refused({ 'retry-after': new Date(until_ms).toUTCString() }), until_ms };
      },
    ],
    [
      'retry-after of an overloaded provider',
      () => ({
        fault: { kind: 'status', status: 503, headers: { 'retry-after': '1' } },
        wait_ms: 1000,
      }),
    ],
    ['retry_after in the body', () => ({ fault: refused({}, { retry_after: 0.4 }), wait_ms: 400 })],
    [
      'retryDelay in the body',
      () => ({
        fault: refused(
          {},
          { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.4s' }] },
        ),
        wait_ms: 400,
      }),
    ],
    [
      'retry_after in the stream',
      () => ({ fault: { kind: 'error_rate_limited', at: IN_TEXT, retry_after_s: 0.4 }, wait_ms: 400 }),
    ],
  ];
  test.each(forms)('%s', async (name, form) => {
    const question = `wait: ${name}`;
    const { fault, wait_ms = 0, until_ms = 0 } = form();
    deployment.plan(question, { parts: [{ text: TEXT }], faults: [fault] });
    const answer = await rawAnswer(deployment.holdfast.url, streamRequest(modelOf('h1'), question));
    expect(answer).toMatchObject({ text: TEXT, finish: 'stop', done: true });
    const [first, second] = deployment.requests(question).map(({ at_ms }) => at_ms);
    const earliest_ms = Math.max(until_ms, (first ?? 0) + wait_ms) - CLOCK_GRAIN_MS;
    expect(second).toBeGreaterThanOrEqual(earliest_ms);
  });

  test('unless that is longer than the configured maximum: then the client is told', async () => {
    const question = 'wait: too long';
    const fault = refused({ 'retry-after': String(RETRY_AFTER_MAX_S + 1) });
    deployment.plan(question, { parts: [{ text: TEXT }], faults: [fault] });
    const answer = await rawAnswer(deployment.holdfast.url, streamRequest(modelOf('h1'), question));
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe(String(RETRY_AFTER_MAX_S + 1));
    expect(deployment.requests(question)).toHaveLength(1);
  });
});
