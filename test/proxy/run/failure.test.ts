import { describe, expect, test } from 'vitest';
import { foldJournal } from '../../../src/checkpoint/journal-fold.ts';
import type { Owner } from '../../../src/checkpoint/store.ts';
import type { Cause, Interruption } from '../../../src/interrupts/interruption.ts';
import { CAUSES, isPermanent } from '../../../src/interrupts/interruption.ts';
import { errorObject } from '../../../src/lib/errors.ts';
import type { GiveUp } from '../../../src/plans/decide.ts';
import type { Transcript } from '../../../src/plans/transcript.ts';
import type { Run } from '../../../src/proxy/run/context/run.ts';
import { failureEvent, failureResponse, storedFailureEvent } from '../../../src/proxy/run/failure.ts';
import { chatWire } from '../../../src/proxy/wires/chunks/chat-wire.ts';
import { HEADER, HEADER_RECORD, textRecord } from '../../checkpoint/fixtures.ts';
import { call, close, reasoning, refusal, text, transcriptOf } from '../../plans/saying.ts';

const run: Run = {
  id: 'run_x',
  owner: 'owner' as Owner,
  wire: chatWire,
  target: {
    name: 'main',
    upstream: { base_url: 'https://llm.example.com/v1', dialect: 'generic' },
    headers: {},
  },
  body: '{}',
  request: { model: 'gpt', messages: [], stream: true },
  events: 'none',
  resumable: false,
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
  created_at_ms: 1_700_000_000_900,
  stream_id: 'chatcmpl-1',
});

describe('in a stream', () => {
  const transcript = transcriptOf(
    reasoning('Kelp?'),
    text('The holdfast'),
    refusal(' no'),
    call(0, 'now', '{}'),
    close(0),
    call(1, 'now', '{'),
  );

  test('has the outcome of the answer, and what the client has of it', () => {
    expect(failureEvent(run, transcript, failure(reset))).toEqual({
      message:
        "The stream was interrupted and couldn't be recovered: the connection broke (connection_reset, ECONNRESET); gave up after 4 attempts (attempts)",
      type: 'stream_interrupted',
      param: null,
      code: 'stream_interrupted',
      holdfast: {
        run_id: 'run_x',
        root_request_id: 'run_x',
        stream_id: 'chatcmpl-1',
        created_at: 1_700_000_000,
        cause: 'connection_reset',
        attempts: 4,
        retryable: true,
        terminal_message:
          "The stream was interrupted and couldn't be recovered: the connection broke (connection_reset, ECONNRESET); gave up after 4 attempts (attempts)",
        partial: true,
        partial_chars: 15,
        partial_text: 'The holdfast',
        partial_text_truncated: false,
        parts: [
          { type: 'reasoning', text: 'Kelp?' },
          { type: 'text', text: 'The holdfast' },
          { type: 'refusal', text: ' no' },
          { type: 'tool_call', id: 'call_0', name: 'now', arguments: '{}' },
        ],
        tool_calls: [{ id: 'call_0', name: 'now', arguments: '{}' }],
      },
    });
  });

  test.each<[string, Interruption, GiveUp, object]>([
    [
      'the provider’s own words',
      { ...reset, cause: 'provider_5xx', status: 529, message: 'Overloaded' },
      'attempts',
      {
        message: expect.stringContaining(
          'provider_5xx, 529): Overloaded; gave up after 4 attempts (attempts)',
        ),
      },
    ],
    [
      'evidence that is no code',
      { ...reset, cause: 'idle_stall', evidence: { kind: 'clock', clock: 'idle' } },
      'no_progress',
      {
        message: expect.stringContaining(
          'idle_stall, clock); gave up because nothing new came for recovery.no_progress_ms (no_progress)',
        ),
      },
    ],
    [
      'output that cannot be joined',
      reset,
      'not_recoverable',
      {
        message: expect.stringContaining(
          "connection_reset, ECONNRESET); n > 1, best_of, suffix, echo, logprobs and audio can't be joined",
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

describe('from the store', () => {
  const error = errorObject('run_salvaged', { status: 'recovered_from_partial' });
  const told = { error, cause: 'replica_lost', retryable: true };

  test('tells the same, as far as the journal knows it', () => {
    const chunk = '{"id":"chatcmpl-7","choices":[{"index":0,"delta":{"role":"assistant"}}]}';
    const records = [
      HEADER_RECORD,
      { seq: 1, events: [{ deltas: [], payload: chunk }] },
      textRecord(1, 'The', ' holdfast'),
      {
        seq: 4,
        events: [{ deltas: [call(0, 'now', '{}'), [close(0)], call(1, 'now', '{')].flat() }],
      },
    ];
    expect(storedFailureEvent('run_x', foldJournal(records), told)).toEqual({
      ...error,
      holdfast: {
        run_id: 'run_x',
        root_request_id: 'run_x',
        stream_id: 'chatcmpl-7',
        created_at: HEADER.created_at_ms / 1000,
        cause: 'replica_lost',
        retryable: true,
        terminal_message: error.message,
        partial: true,
        partial_chars: 12,
        partial_text: 'The holdfast',
        partial_text_truncated: false,
        parts: [
          { type: 'text', text: 'The holdfast' },
          { type: 'tool_call', id: 'call_0', name: 'now', arguments: '{}' },
        ],
        tool_calls: [{ id: 'call_0', name: 'now', arguments: '{}' }],
      },
    });
  });

  test('says what it does not know', () => {
    expect(storedFailureEvent('run_x', foldJournal([]), told)).toMatchObject({
      holdfast: { stream_id: null, created_at: null, partial_text: '', parts: [], tool_calls: [] },
    });
  });
});

describe('a long answer', () => {
  const details = (transcript: Transcript) =>
    failureEvent(run, transcript, failure(reset)) as { holdfast: Record<string, unknown> };

  test('is brought by its end, and counted whole', () => {
    const long = `${'x'.repeat(20_000)}🌊`;
    const end = `${'x'.repeat(16_382)}🌊`;
    expect(details(transcriptOf(reasoning(long), text(long))).holdfast).toMatchObject({
      partial_chars: 20_002,
      partial_text: end,
      partial_text_truncated: true,
      parts: [
        { type: 'reasoning', text: end, truncated: true },
        { type: 'text', text: end, truncated: true },
      ],
    });
  });

  test('keeps its settled calls whole however long they are', () => {
    const json = JSON.stringify({ note: 'x'.repeat(100_000) });
    expect(details(transcriptOf(call(0, 'save', json), close(0))).holdfast).toMatchObject({
      tool_calls: [{ arguments: json }],
    });
  });

  test('that is a refusal is text enough', () => {
    expect(details(transcriptOf(refusal('I cannot'))).holdfast).toMatchObject({ partial_text: 'I cannot' });
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
