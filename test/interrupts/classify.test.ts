import { describe, expect, test } from 'vitest';
import { type AttemptEnd, classify } from '../../src/interrupts/classify.ts';
import type { Cause, Interruption, Phase } from '../../src/interrupts/interruption.ts';
import { type ProviderError, providerErrorIn } from '../../src/interrupts/provider-error.ts';

function errorOf(value: unknown): ProviderError {
  const error = providerErrorIn(value);
  if (!error) throw new Error('there is no error in it');
  return error;
}

/** An error event within the stream. */
const NOW_MS = Date.UTC(2026, 10, 20, 10, 0, 0);
const inBand = (value: unknown, phase: Phase = 'text'): Interruption =>
  classify({ kind: 'error_event', error: errorOf(value) }, phase, NOW_MS);

/** An error response instead of a stream. */
const refused = (status: number, body?: unknown, more: object = {}): Interruption =>
  classify(
    {
      kind: 'refused',
      status,
      content_type: 'application/json',
      error: body === undefined ? undefined : providerErrorIn(body),
      ...more,
    },
    'connect',
    NOW_MS,
  );

describe('ends without an error of the provider', () => {
  test.each<[string, AttemptEnd, Interruption]>([
    [
      'the body ended without a finish reason',
      { kind: 'eof', done: false },
      { cause: 'connection_reset', phase: 'eof', evidence: { kind: 'clean_eof', done: false } },
    ],
    [
      '[DONE] came without a finish reason',
      { kind: 'eof', done: true },
      { cause: 'connection_reset', phase: 'eof', evidence: { kind: 'clean_eof', done: true } },
    ],
    [
      'the connection broke',
      { kind: 'broken', code: 'ECONNRESET' },
      { cause: 'connection_reset', phase: 'text', evidence: { kind: 'transport', code: 'ECONNRESET' } },
    ],
    [
      'GOAWAY, and the stream went with it',
      { kind: 'broken', code: 'UND_ERR_SOCKET', goaway: 0 },
      { cause: 'goaway', phase: 'text', evidence: { kind: 'goaway', code: 0 } },
    ],
    [
      'a clock ran out',
      { kind: 'broken', code: 'ABORTED', clock: 'idle' },
      { cause: 'idle_stall', phase: 'text', evidence: { kind: 'clock', clock: 'idle' } },
    ],
    [
      'a clock ran out while GOAWAY was pending',
      { kind: 'broken', code: 'ABORTED', clock: 'progress', goaway: 0 },
      { cause: 'idle_stall', phase: 'text', evidence: { kind: 'clock', clock: 'progress' } },
    ],
    [
      'a failure dressed as a finish reason',
      { kind: 'bad_finish', reason: 'insufficient_system_resource', status: 503 },
      {
        cause: 'provider_5xx',
        phase: 'text',
        evidence: { kind: 'finish_reason', reason: 'insufficient_system_resource' },
        status: 503,
      },
    ],
    [
      'an error of another provider for a finish reason (Portkey)',
      { kind: 'bad_finish', reason: 'rate_limit_error', status: 429 },
      {
        cause: 'rate_limited',
        phase: 'text',
        evidence: { kind: 'finish_reason', reason: 'rate_limit_error' },
        status: 429,
      },
    ],
    [
      'an event that cannot be read',
      { kind: 'malformed_event' },
      { cause: 'provider_5xx', phase: 'text', evidence: { kind: 'malformed_event' }, status: 502 },
    ],
    [
      'arguments that do not parse',
      { kind: 'unusable', what: 'arguments' },
      { cause: 'provider_5xx', phase: 'text', evidence: { kind: 'unparsable_arguments' }, status: 502 },
    ],
    [
      'a document that does not parse',
      { kind: 'unusable', what: 'document' },
      { cause: 'provider_5xx', phase: 'text', evidence: { kind: 'unparsable_document' }, status: 502 },
    ],
    [
      'an answer that cannot be joined',
      { kind: 'seam_rejected', reason: 'diverged' },
      {
        cause: 'provider_5xx',
        phase: 'text',
        evidence: { kind: 'seam_rejected', reason: 'diverged' },
        status: 502,
      },
    ],
    [
      'a replica that is no more',
      { kind: 'replica_lost' },
      { cause: 'connection_reset', phase: 'text', evidence: { kind: 'replica_lost' } },
    ],
    [
      'a limit of ours',
      { kind: 'limit', limit: 'limits.run_bytes' },
      { cause: 'invalid_request', phase: 'text', evidence: { kind: 'limit', limit: 'limits.run_bytes' } },
    ],
  ])('%s', (_, end, interruption) => {
    expect(classify(end, 'text', NOW_MS)).toEqual(interruption);
  });
});

describe('errors within a stream, as providers send them', () => {
  test.each<[string, unknown, Cause, number | undefined]>([
    [
      'OpenAI',
      { error: { message: 'The server had an error while processing your request.', type: 'server_error' } },
      'provider_5xx',
      500,
    ],
    [
      'OpenAI Responses',
      { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'Pay' } },
      'quota',
      undefined,
    ],
    [
      'OpenAI Responses, flat',
      { type: 'error', code: 'ERR_SOMETHING', message: 'Oh' },
      'provider_5xx',
      undefined,
    ],
    ['OpenAI, overloaded', { error: { code: 'server_is_overloaded', message: 'Oh' } }, 'provider_5xx', 529],
    ['OpenAI, too fast', { error: { code: 'slow_down', message: 'Oh' } }, 'rate_limited', 429],
    ['OpenRouter', { error: { code: 502, message: 'Provider disconnected' } }, 'provider_5xx', 502],
    ['OpenRouter, in words', { error: { code: 'server_error', message: 'Oh' } }, 'provider_5xx', 500],
    ['OpenRouter, out of credit', { error: { code: 402, message: 'Insufficient credits' } }, 'quota', 402],
    [
      'Anthropic',
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      'provider_5xx',
      529,
    ],
    [
      'Anthropic, api_error',
      { type: 'error', error: { type: 'api_error', message: 'Oh' } },
      'provider_5xx',
      500,
    ],
    [
      'Anthropic, timeout_error',
      { type: 'error', error: { type: 'timeout_error', message: 'Oh' } },
      'provider_5xx',
      504,
    ],
    [
      'Anthropic, rate_limit_error',
      { type: 'error', error: { type: 'rate_limit_error' } },
      'rate_limited',
      429,
    ],
    ['Anthropic, billing_error', { type: 'error', error: { type: 'billing_error' } }, 'quota', undefined],
    [
      'Anthropic, authentication_error',
      { error: { type: 'authentication_error' } },
      'unauthorised',
      undefined,
    ],
    ['Anthropic, permission_error', { error: { type: 'permission_error' } }, 'unauthorised', undefined],
    ['Anthropic, not_found_error', { error: { type: 'not_found_error' } }, 'model_not_found', undefined],
    [
      'Anthropic, invalid_request_error',
      { error: { type: 'invalid_request_error' } },
      'invalid_request',
      undefined,
    ],
    [
      'vLLM',
      { error: { message: 'Internal server error', type: 'InternalServerError', param: null, code: 500 } },
      'provider_5xx',
      500,
    ],
    [
      'vLLM, its own fault',
      { error: { type: 'BadRequestError', code: 400, message: 'Oh' } },
      'invalid_request',
      400,
    ],
    [
      'vLLM, no such model',
      { error: { type: 'NotFoundError', code: 404, message: 'Oh' } },
      'model_not_found',
      404,
    ],
    [
      'TGI, which calls every failure a 422',
      { error: { message: 'Request failed during generation: CUDA out of memory', http_status_code: 422 } },
      'provider_5xx',
      422,
    ],
    ['llama.cpp', { error: { code: 500, message: 'Oh', type: 'server_error' } }, 'provider_5xx', 500],
    [
      'llama.cpp, full',
      {
        error: {
          code: 400,
          message: 'the request exceeds the available context size. try increasing it',
          type: 'exceed_context_size_error',
        },
      },
      'context_overflow',
      400,
    ],
    ['Gemini', { error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } }, 'provider_5xx', 503],
    [
      'Gemini, too fast, in an array',
      [{ error: { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' } }],
      'rate_limited',
      429,
    ],
    [
      'Gemini, too slow',
      { error: { code: 504, message: 'Oh', status: 'DEADLINE_EXCEEDED' } },
      'provider_5xx',
      504,
    ],
    [
      'Gemini, no key',
      { error: { code: 401, message: 'Oh', status: 'UNAUTHENTICATED' } },
      'unauthorised',
      401,
    ],
    [
      'Gemini, not allowed',
      { error: { code: 403, message: 'Oh', status: 'PERMISSION_DENIED' } },
      'unauthorised',
      403,
    ],
    [
      'Gemini, wrong',
      { error: { code: 400, message: 'Oh', status: 'INVALID_ARGUMENT' } },
      'invalid_request',
      400,
    ],
    ['xAI', { code: 'The service is currently unavailable', error: 'Oh' }, 'provider_5xx', 503],
    ['a string', { error: 'Something went wrong' }, 'provider_5xx', undefined],
    [
      'Mistral',
      { object: 'error', message: 'Oh', type: 'internal_server_error', param: null, code: '3000' },
      'provider_5xx',
      500,
    ],
    [
      'Bedrock',
      { type: 'error', error: { type: 'throttlingException', message: 'Oh' } },
      'rate_limited',
      429,
    ],
    [
      'Bedrock, invalid',
      { error: { type: 'validationException', message: 'Oh' } },
      'invalid_request',
      undefined,
    ],
    [
      'Bedrock, broken off',
      { error: { type: 'modelStreamErrorException', message: 'Oh' } },
      'provider_5xx',
      502,
    ],
    [
      'Bedrock, unavailable',
      { error: { type: 'serviceUnavailableException', message: 'Oh' } },
      'provider_5xx',
      503,
    ],
    ['Bedrock, its own fault', { error: { type: 'internalServerException' } }, 'provider_5xx', 500],
    ['Bedrock, too slow', { error: { type: 'modelTimeoutException' } }, 'provider_5xx', 504],
    ['Bedrock, not allowed', { error: { type: 'accessDeniedException' } }, 'unauthorised', undefined],
    [
      'Bedrock, no such model',
      { error: { type: 'resourceNotFoundException' } },
      'model_not_found',
      undefined,
    ],
    ['Bedrock, at its limit', { error: { type: 'serviceQuotaExceededException' } }, 'quota', undefined],
    ['vLLM, no such model, in a word', { error: { type: 'NotFoundError' } }, 'model_not_found', undefined],
    [
      'Cerebras, too many requests, whose code speaks of a quota',
      {
        message: 'Requests per minute limit exceeded - too many requests sent.',
        type: 'too_many_requests_error',
        param: 'quota',
        code: 'request_quota_exceeded',
      },
      'rate_limited',
      429,
    ],
    [
      'Cerebras, too many tokens',
      { message: 'Oh', type: 'too_many_tokens_error', param: 'quota', code: 'token_quota_exceeded' },
      'rate_limited',
      429,
    ],
    ['Cerebras', { message: 'Oh', type: 'server_error', param: '', code: '' }, 'provider_5xx', 500],
    ['Kimi, overloaded', { error: { type: 'engine_overloaded_error', message: 'Oh' } }, 'provider_5xx', 529],
    ['Kimi, too fast', { error: { type: 'rate_limit_reached_error', message: 'Oh' } }, 'rate_limited', 429],
    ['Kimi, out of credit', { error: { type: 'exceeded_current_quota_error' } }, 'quota', undefined],
    ['Kimi, no such model', { error: { type: 'resource_not_found_error' } }, 'model_not_found', undefined],
    [
      'Qwen, filtered',
      { error: { message: 'Oh', type: 'data_inspection_failed', code: 'data_inspection_failed' } },
      'content_filter',
      undefined,
    ],
    [
      'Qwen, filtered, in one word',
      { code: 'DataInspectionFailed', message: 'Oh' },
      'content_filter',
      undefined,
    ],
    ['Qwen, too fast', { error: { code: 'limit_requests', message: 'Oh' } }, 'rate_limited', 429],
    ['Qwen, throttled', { error: { code: 'Throttling.RateQuota', message: 'Oh' } }, 'rate_limited', 429],
    ['Qwen, overdue', { error: { code: 'Arrearage', message: 'Oh' } }, 'quota', undefined],
    ['Qwen, its own fault', { error: { code: 'internal_error', message: 'Oh' } }, 'provider_5xx', 500],
    [
      'Qwen, wrong',
      { error: { code: 'invalid_parameter_error', message: 'Oh', type: 'invalid_request_error' } },
      'invalid_request',
      undefined,
    ],
    [
      'Groq, out of capacity',
      { error: { code: 'capacity_exceeded', message: 'Oh', status_code: 498 } },
      'rate_limited',
      498,
    ],
    ['Groq, its own fault', { error: { type: 'internal_server_error', message: 'Oh' } }, 'provider_5xx', 500],
    [
      'Mistral, out of capacity',
      { object: 'error', message: 'Oh', type: 'service_tier_capacity_exceeded', code: '3505' },
      'rate_limited',
      429,
    ],
    [
      'Together',
      { error: { message: 'Oh', type: 'server_error', param: null, code: null } },
      'provider_5xx',
      500,
    ],
    ['Fireworks, a string', { error: 'Internal server error' }, 'provider_5xx', undefined],
    [
      'Fireworks, an object',
      { error: { object: 'error', type: 'internal_server_error', message: 'Oh' } },
      'provider_5xx',
      500,
    ],
    ['DeepInfra', { error: { message: 'Oh', type: 'engine_overloaded' } }, 'provider_5xx', 529],
    ['DeepSeek', { error: { message: 'Oh', type: 'server_error', code: null } }, 'provider_5xx', 500],
    [
      'DeepSeek, out of credit',
      { error: { message: 'Insufficient Balance', type: 'unknown_error', code: 402 } },
      'quota',
      402,
    ],
    [
      'SGLang',
      { error: { object: 'error', message: 'Oh', type: 'InternalServerError', code: 500 } },
      'provider_5xx',
      500,
    ],
    ['TGI, a string', { error: 'Oh', error_type: 'generation' }, 'provider_5xx', undefined],
    ['TGI, overloaded', { error: 'Model is overloaded', error_type: 'overloaded' }, 'provider_5xx', 529],
    [
      'Ollama',
      { error: { message: 'llama runner process has terminated', type: 'api_error' } },
      'provider_5xx',
      500,
    ],
    [
      'LM Studio',
      { error: 'The model has crashed without additional information.' },
      'provider_5xx',
      undefined,
    ],
    [
      'LiteLLM',
      { error: { message: 'litellm.MidStreamFallbackError: Oh', type: null, param: null, code: '500' } },
      'provider_5xx',
      500,
    ],
    [
      'Anthropic, too large',
      { error: { type: 'request_too_large', message: 'Oh' } },
      'invalid_request',
      undefined,
    ],
    ['Azure, filtered', { error: { code: 'content_filter', message: 'Oh' } }, 'content_filter', undefined],
    ['a gateway', { error: { type: 'upstream_error', message: 'Oh' } }, 'provider_5xx', 502],
  ])('%s', (_, value, cause, status) => {
    const interruption = inBand(value);
    expect(interruption.cause).toBe(cause);
    expect(interruption.status).toBe(status);
    expect(interruption.phase).toBe('text');
    expect(interruption.evidence.kind).toBe('error_event');
  });

  test('the evidence names what it was decided on; the message is kept, but never decided on', () => {
    const error = { type: 'overloaded_error', message: 'You are not authorised, quota, context length' };
    expect(inBand({ error })).toEqual({
      cause: 'provider_5xx',
      phase: 'text',
      evidence: { kind: 'error_event', type: 'overloaded_error' },
      status: 529,
      message: error.message,
    });
  });

  test('an error without words has none for evidence', () => {
    expect(inBand({ error: 'Oh' }).evidence).toEqual({ kind: 'error_event', type: '' });
  });

  test('a time to wait is kept', () => {
    expect(inBand({ error: { type: 'rate_limit_error', retry_after_ms: 250 } }).retry_after_ms).toBe(250);
  });

  test('an error outside of any event is one within the stream', () => {
    const residue = errorOf({ error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } });
    expect(classify({ kind: 'eof', done: false, residue }, 'text', NOW_MS)).toEqual({
      cause: 'provider_5xx',
      phase: 'text',
      evidence: { kind: 'error_event', type: '503' },
      status: 503,
      message: 'Overloaded.',
    });
  });
});

describe('a status that calls the request invalid', () => {
  const invalid = { error: { message: 'Oh', http_status_code: 422 } };
  test.each<[Phase, Cause]>([
    ['connect', 'invalid_request'],
    ['first_token', 'invalid_request'],
    ['reasoning', 'provider_5xx'],
    ['text', 'provider_5xx'],
    ['tool_call', 'provider_5xx'],
  ])('%s: %s', (phase, cause) => {
    expect(inBand(invalid, phase).cause).toBe(cause);
  });

  test('is believed at any time beside words that say so', () => {
    const { cause } = inBand({ error: { type: 'invalid_request_error', code: 422 } }, 'text');
    expect(cause).toBe('invalid_request');
  });
});

describe('answers that are no stream', () => {
  test.each<[string, number, unknown, Cause]>([
    ['400', 400, undefined, 'invalid_request'],
    ['401', 401, undefined, 'unauthorised'],
    ['402', 402, undefined, 'quota'],
    ['403', 403, undefined, 'unauthorised'],
    ['404', 404, undefined, 'model_not_found'],
    ['408', 408, undefined, 'provider_5xx'],
    ['409', 409, undefined, 'provider_5xx'],
    ['413', 413, undefined, 'invalid_request'],
    ['418', 418, undefined, 'invalid_request'],
    ['422', 422, undefined, 'invalid_request'],
    ['429', 429, undefined, 'rate_limited'],
    ['500', 500, undefined, 'provider_5xx'],
    ['502', 502, undefined, 'provider_5xx'],
    ['503', 503, undefined, 'provider_5xx'],
    ['504', 504, undefined, 'provider_5xx'],
    ['529', 529, undefined, 'provider_5xx'],
    ['429 for want of credit', 429, { error: { type: 'insufficient_quota', message: 'Oh' } }, 'quota'],
    ['429 at a spend limit', 429, { error: { code: 'project_spend_limit_exceeded' } }, 'quota'],
    ['429 with an empty balance', 429, { error: { code: 'credit_balance_exhausted' } }, 'quota'],
    ['429 in so many words', 429, { error: { type: 'tokens', code: 'rate_limit_exceeded' } }, 'rate_limited'],
    [
      '413 that is a rate limit',
      413,
      { error: { type: 'tokens', code: 'rate_limit_exceeded' } },
      'rate_limited',
    ],
    [
      '400 for a key that is none',
      400,
      { error: { type: 'invalid_request_error', code: 'invalid_api_key' } },
      'unauthorised',
    ],
    [
      '404 for a model that is none',
      404,
      { error: { type: 'invalid_request_error', code: 'model_not_found' } },
      'model_not_found',
    ],
    [
      '400 for what the policy forbids',
      400,
      { error: { type: 'invalid_request_error', code: 'content_policy_violation' } },
      'content_filter',
    ],
    [
      '400 for too many tokens',
      400,
      { error: { type: 'invalid_request_error', code: 'context_length_exceeded' } },
      'context_overflow',
    ],
  ])('%s', (_, status, body, cause) => {
    expect(refused(status, body)).toMatchObject({ cause, status, evidence: { kind: 'status', status } });
  });

  test.each<[string, number, unknown, Cause, number | undefined]>([
    ['JSON that says overloaded', 200, { error: { type: 'overloaded_error' } }, 'provider_5xx', 529],
    [
      'JSON that says unavailable (xAI)',
      200,
      { code: 'Currently unavailable', error: 'Oh' },
      'provider_5xx',
      503,
    ],
    ['JSON that says what is wrong', 200, { error: { code: 429, message: 'Oh' } }, 'rate_limited', 429],
    [
      'JSON that blames the request',
      200,
      { error: { type: 'invalid_request_error' } },
      'invalid_request',
      undefined,
    ],
    ['no error at all', 200, undefined, 'provider_5xx', 502],
    ['an error without words', 201, { error: 'Oh' }, 'provider_5xx', 502],
    ['a redirect', 302, undefined, 'provider_5xx', 502],
  ])('with a status of success or redirection: %s', (_, status, body, cause, real) => {
    const interruption = refused(status, body);
    expect(interruption.cause).toBe(cause);
    expect(interruption.status).toBe(real);
  });

  test('success without a stream has its own evidence', () => {
    expect(refused(200).evidence).toEqual({ kind: 'not_a_stream', content_type: 'application/json' });
    expect(refused(302).evidence).toEqual({ kind: 'status', status: 302 });
  });

  test('a stream in a form that was not asked for is as good as none', () => {
    const { cause, evidence } = refused(200, undefined, { content_encoding: 'gzip' });
    expect(cause).toBe('provider_5xx');
    expect(evidence).toEqual({
      kind: 'not_a_stream',
      content_type: 'application/json',
      content_encoding: 'gzip',
    });
  });

  test('the header says how long to wait, else the body does', () => {
    const body = { error: { message: 'Oh', retry_after: 3 } };
    expect(refused(429, body).retry_after_ms).toBe(3_000);
    expect(refused(429, body, { retry_after_ms: 500 }).retry_after_ms).toBe(500);
    expect(refused(429)).not.toHaveProperty('retry_after_ms');
  });

  test('the real status wins over the one in the body', () => {
    expect(refused(503, { error: { code: 500, message: 'Oh' } }).status).toBe(503);
  });
});

describe('context overflow', () => {
  const saying = (message: string, more: object = {}) => ({ error: { message, ...more } });
  const MESSAGES = [
    'prompt is too long: 210000 tokens > 200000 maximum',
    'Your input exceeds the context window of this model.',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    'Please reduce the length of the messages or completion.',
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
    'the request exceeds the available context size.',
    'The number of tokens to keep from the initial prompt is greater than the context length',
    'Your request exceeded model token limit: 262144',
    'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
    'Input is too long for requested model.',
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    'The decoder prompt (length 21535) is longer than the maximum model length of 16384.',
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    'Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`',
    'Input validation error: `inputs` must have less than 1024 tokens. Given: 1872',
  ];

  test.each(MESSAGES)('%s', (message) => {
    expect(refused(400, saying(message)).cause).toBe('context_overflow');
    expect(refused(413, saying(message)).cause).toBe('context_overflow');
    expect(refused(422, saying(message)).cause).toBe('context_overflow');
    expect(inBand(saying(message, { type: 'invalid_request_error' })).cause).toBe('context_overflow');
  });

  test.each([
    'Rate limit reached: maximum context length',
    'Request too large on tokens per minute (TPM): reduce the length of the messages',
    'Limit 6000 TPM: prompt is too long',
    'You exceeded your quota: input is too long',
  ])('is not what a rate limit speaks of: %s', (message) => {
    expect(refused(400, saying(message)).cause).toBe('invalid_request');
    expect(refused(429, saying(message)).cause).toBe('rate_limited');
  });

  test.each<[string, Interruption, Cause]>([
    ['a server error', refused(500, saying('prompt is too long')), 'provider_5xx'],
    ['another type', inBand(saying('prompt is too long', { type: 'api_error' })), 'provider_5xx'],
    ['nothing at all', inBand({ error: 'prompt is too long' }), 'provider_5xx'],
  ])('is not believed in prose beside %s', (_, { cause }, expected) => {
    expect(cause).toBe(expected);
  });
});
