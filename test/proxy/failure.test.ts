import { describe, expect, test } from 'vitest';
import type { Owner } from '../../src/checkpoint/store.ts';
import type { Cause, Interruption } from '../../src/interrupts/interruption.ts';
import { CAUSES, isPermanent } from '../../src/interrupts/interruption.ts';
import type { GiveUp } from '../../src/plans/decide.ts';
import { failureEvent, failureResponse } from '../../src/proxy/failure.ts';
import type { Run } from '../../src/proxy/run.ts';
import { call, close, refusal, text, transcriptOf } from '../plans/saying.ts';

const run: Run = {
  id: 'run_x',
  owner: 'owner' as Owner,
  target: { name: 'main', upstream: { base_url: 'https://llm.example.com/v1', dialect: 'generic' } },
  body: '{}',
  request: { model: 'gpt', messages: [], stream: true },
  headers: {},
  events: 'none',
  signal: new AbortController().signal,
};

const reset: Interruption = {
  cause: 'connection_reset',
  phase: 'text',
  evidence: { kind: 'transport', code: 'ECONNRESET' },
};
const failure = (interruption: Interruption, why: GiveUp = 'attempts') => ({
  interruption,
  why,
  attempts: 4,
});

describe('in a stream', () => {
  const transcript = transcriptOf(
    text('The holdfast'),
    refusal(' no'),
    call(0, 'now', '{}'),
    close(0),
    call(1, 'now', '{'),
  );

  test('tells what became of the answer, and what is in the client’s hands', () => {
    expect(failureEvent(run, transcript, failure(reset))).toEqual({
      message:
        'The stream was interrupted and could not be recovered: connection_reset (ECONNRESET); gave up: attempts',
      type: 'stream_interrupted',
      param: null,
      code: 'stream_interrupted',
      holdfast: {
        run_id: 'run_x',
        root_request_id: 'run_x',
        cause: 'connection_reset',
        attempts: 4,
        retryable: true,
        partial: true,
        partial_chars: 15,
        tool_calls: [{ id: 'call_0', name: 'now' }],
      },
    });
  });

  test.each<[string, Interruption, GiveUp, object]>([
    [
      'the provider’s own words',
      { ...reset, cause: 'provider_5xx', status: 529, message: 'Overloaded' },
      'attempts',
      { message: expect.stringContaining('provider_5xx (529): Overloaded; gave up: attempts') },
    ],
    [
      'evidence that is no code',
      { ...reset, cause: 'idle_stall', evidence: { kind: 'clock', clock: 'idle' } },
      'no_progress',
      { message: expect.stringContaining('idle_stall (clock); gave up: no_progress') },
    ],
    [
      'output that cannot be joined',
      reset,
      'not_recoverable',
      {
        message: expect.stringContaining(
          'connection_reset (ECONNRESET); n > 1, logprobs and audio cannot be joined',
        ),
        code: 'not_recoverable',
      },
    ],
    [
      'a limit of ours',
      { ...reset, cause: 'invalid_request', evidence: { kind: 'limit', limit: 'limits.run_bytes' } },
      'permanent',
      { code: 'run_too_large', holdfast: expect.objectContaining({ retryable: false }) },
    ],
  ])('%s', (_, interruption, why, event) => {
    expect(failureEvent(run, transcript, failure(interruption, why))).toMatchObject(event);
  });
});

describe('before one', () => {
  const answer = (interruption: Interruption) => {
    const { status, body } = failureResponse(run, failure(interruption));
    return { status, error: (JSON.parse(body) as { error: Record<string, unknown> }).error };
  };

  test.each<[Cause, number]>([
    ['context_overflow', 400],
    ['invalid_request', 400],
    ['content_filter', 400],
    ['unauthorised', 401],
    ['model_not_found', 404],
    ['quota', 429],
  ])('%s is answered as the provider would have: %i', (cause, status) => {
    const evidence = { kind: 'error_event', type: '' } as const;
    expect(answer({ ...reset, cause, evidence })).toEqual({
      status,
      error: { message: cause, type: 'upstream_error', param: null, code: cause },
    });
    expect(answer({ ...reset, cause, evidence, status: 402, message: 'Oh' })).toMatchObject({
      status: 402,
      error: { message: 'Oh' },
    });
  });

  test('no permanent cause is answered otherwise', () => {
    for (const cause of CAUSES.filter(isPermanent))
      expect(answer({ ...reset, cause }).error.code).toBe(cause);
  });

  test.each<[string, Interruption, number, string]>([
    [
      'a clock ran out',
      { cause: 'idle_stall', phase: 'connect', evidence: { kind: 'clock', clock: 'first_byte' } },
      504,
      'upstream_timeout',
    ],
    [
      'nobody is there',
      { ...reset, phase: 'connect', evidence: { kind: 'transport', code: 'ECONNREFUSED' } },
      502,
      'upstream_unreachable',
    ],
    [
      'the connection broke before the answer began',
      { ...reset, phase: 'first_token' },
      503,
      'upstream_unavailable',
    ],
    [
      'the provider is overloaded',
      { cause: 'provider_5xx', phase: 'connect', evidence: { kind: 'status', status: 529 }, status: 529 },
      503,
      'upstream_unavailable',
    ],
    [
      'too many requests',
      {
        cause: 'rate_limited',
        phase: 'first_token',
        evidence: { kind: 'error_event', type: 'rate_limit' },
        status: 429,
      },
      503,
      'upstream_unavailable',
    ],
  ])('%s', (_, interruption, status, code) => {
    const { status: answered, error } = answer(interruption);
    expect(answered).toBe(status);
    expect(error).toMatchObject({ code, type: 'upstream_error', message: expect.stringContaining("'main'") });
  });
});
