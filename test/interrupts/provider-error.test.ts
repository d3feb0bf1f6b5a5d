import { describe, expect, test } from 'vitest';
import { providerErrorIn, refusalErrorIn } from '../../src/interrupts/provider-error.ts';

describe('an error is found', () => {
  test.each<[string, unknown, ReturnType<typeof providerErrorIn>]>([
    [
      'nested (OpenAI)',
      { error: { message: 'The server had an error', type: 'server_error', param: null, code: null } },
      { words: ['server_error'], message: 'The server had an error' },
    ],
    [
      'beside choices (OpenRouter), with a number for a code',
      { choices: [{ delta: { content: '' } }], error: { code: 502, message: 'Provider disconnected' } },
      { status: 502, words: ['502'], message: 'Provider disconnected' },
    ],
    [
      'nested below its type (Anthropic)',
      { type: 'error', error: { details: null, type: 'overloaded_error', message: 'Overloaded' } },
      { words: ['overloaded_error'], message: 'Overloaded' },
    ],
    [
      'with words and a code (vLLM)',
      { error: { message: 'Internal server error', type: 'InternalServerError', param: null, code: 500 } },
      { status: 500, words: ['internalservererror', '500'], message: 'Internal server error' },
    ],
    [
      'with a status of its own (TGI)',
      { error: { message: 'Request failed during generation', http_status_code: 422 } },
      { status: 422, words: [], message: 'Request failed during generation' },
    ],
    [
      'with a status in words (Gemini)',
      { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } },
      { status: 503, words: ['503', 'unavailable'], message: 'The model is overloaded.' },
    ],
    [
      'in an array (Gemini)',
      [{ error: { code: 400, message: 'No.', status: 'INVALID_ARGUMENT' } }],
      { status: 400, words: ['400', 'invalid_argument'], message: 'No.' },
    ],
    [
      'with a code that is a status in quotes',
      { error: { code: '429', message: 'Slow down' } },
      { status: 429, words: ['429'], message: 'Slow down' },
    ],
    [
      'not nested, called an error (Mistral)',
      { object: 'error', message: 'Capacity exceeded', type: 'service_tier_capacity_exceeded', code: '3505' },
      { words: ['service_tier_capacity_exceeded', '3505'], message: 'Capacity exceeded' },
    ],
    [
      'not nested, of type error (OpenAI Responses)',
      { type: 'error', code: 'ERR_SOMETHING', message: 'Oh', param: null },
      { words: ['error', 'err_something'], message: 'Oh' },
    ],
    [
      'not nested at all (Cerebras)',
      {
        message: 'Too many requests',
        type: 'too_many_requests_error',
        param: 'quota',
        code: 'request_quota',
      },
      { words: ['too_many_requests_error', 'request_quota'], message: 'Too many requests' },
    ],
    ['of which only its kind is known', { object: 'error' }, { words: [], message: '' }],
    ['of which only its type is known', { type: 'error' }, { words: ['error'], message: '' }],
    ['not nested, with a code alone', { message: 'Oh', code: 'oh' }, { words: ['oh'], message: 'Oh' }],
    [
      'a string (Fireworks)',
      { error: 'The service is unavailable' },
      { words: [], message: 'The service is unavailable' },
    ],
    [
      'a string beside its code (xAI)',
      { code: 'The service is currently unavailable', error: 'Try again' },
      { words: ['the service is currently unavailable'], message: 'Try again' },
    ],
    [
      'a string beside its type (TGI)',
      { error: 'Request failed during generation: CUDA out of memory', error_type: 'generation' },
      { words: ['generation'], message: 'Request failed during generation: CUDA out of memory' },
    ],
    [
      'nested, and called an error in there (SGLang)',
      {
        error: { object: 'error', message: 'Aborted', type: 'InternalServerError', param: null, code: 500 },
      },
      { status: 500, words: ['internalservererror', '500'], message: 'Aborted' },
    ],
    [
      'with a status beside its code (Groq)',
      {
        error: {
          message: 'Flex tier capacity exceeded',
          type: 'capacity',
          code: 'capacity_exceeded',
          status_code: 498,
        },
      },
      { status: 498, words: ['capacity', 'capacity_exceeded'], message: 'Flex tier capacity exceeded' },
    ],
    [
      'in the words of whom it stands in front of (OpenRouter)',
      {
        error: {
          message: 'Provider returned error',
          code: 400,
          metadata: {
            raw: '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}',
            provider_name: 'Anthropic',
          },
        },
      },
      { status: 400, words: ['400'], message: 'Provider returned error: prompt is too long' },
    ],
    [
      'in words that are no JSON (OpenRouter)',
      { error: { message: 'Provider returned error', code: 502, metadata: { raw: 'upstream timed out' } } },
      { status: 502, words: ['502'], message: 'Provider returned error: upstream timed out' },
    ],
    [
      'in words that are an object (OpenRouter)',
      { error: { message: 'Oh', code: 502, metadata: { raw: { error: { message: 'busy' } } } } },
      { status: 502, words: ['502'], message: 'Oh: busy' },
    ],
    [
      'with nothing in its metadata (OpenRouter)',
      { error: { message: 'Oh', code: 403, metadata: { reasons: ['violence'], raw: 5 } } },
      { status: 403, words: ['403'], message: 'Oh' },
    ],
    [
      'with a list of what is wrong for a message (Mistral)',
      {
        object: 'error',
        message: {
          detail: [
            { type: 'extra_forbidden', loc: ['body', 'prefix'], msg: 'Extra inputs are not permitted' },
            { type: 'missing', loc: ['body', 'model'], msg: 'Field required' },
          ],
        },
        type: 'invalid_request_error',
        code: null,
      },
      { words: ['invalid_request_error'], message: 'Extra inputs are not permitted; Field required' },
    ],
    [
      'with a number for a code in quotes (LiteLLM)',
      { error: { message: 'litellm.InternalServerError: Oh', type: null, param: null, code: '500' } },
      { status: 500, words: ['500'], message: 'litellm.InternalServerError: Oh' },
    ],
    [
      'not nested, with a code alone (DashScope)',
      { code: 'InvalidParameter', message: 'Oh', request_id: '53ada3be' },
      { words: ['invalidparameter'], message: 'Oh' },
    ],
    ['without a message', { error: { type: 'api_error' } }, { words: ['api_error'], message: '' }],
    ['with a message that is none', { error: { message: { text: 'Oh' } } }, { words: [], message: '' }],
    [
      'with a time to wait',
      { error: { type: 'rate_limit_error', message: 'Wait', retry_after: 2 } },
      { words: ['rate_limit_error'], message: 'Wait', retry_after_ms: 2_000 },
    ],
  ])('%s', (_, value, error) => {
    expect(providerErrorIn(value)).toEqual(error);
  });
});

describe('numbers that are no HTTP status of a failure', () => {
  test.each([200, 399, 600, 3505, 502.5, '50x', ''])('%j', (code) => {
    expect(providerErrorIn({ error: { code, message: 'Oh' } })).not.toHaveProperty('status');
  });
});

describe('there is none in', () => {
  test.each<[string, unknown]>([
    ['a chunk', { id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [] }],
    ['a chunk whose error is null', { choices: [], error: null }],
    ['an error of nothing', { error: '' }],
    ['a message without a type', { message: 'hello' }],
    ['a message that is none', { type: 'ping', message: 5 }],
    ['a chunk with a message', { choices: [], message: 'hello', type: 'x' }],
    ['a ping', { type: 'ping' }],
    ['an empty array', []],
    ['a string', 'error'],
    ['null', null],
    ['nothing', undefined],
  ])('%s', (_, value) => {
    expect(providerErrorIn(value)).toBeUndefined();
  });
});

describe('in a response whose status says that it is an error, it may be', () => {
  test.each<[string, unknown, string | undefined]>([
    ['as anywhere else', { error: { message: 'Oh' } }, 'Oh'],
    [
      'a message alone (Bedrock)',
      { message: 'The model returned the following errors: no.' },
      'The model returned the following errors: no.',
    ],
    ['a message with a capital (AWS)', { Message: 'Oh' }, 'Oh'],
    ['a detail (DeepInfra, FastAPI)', { detail: 'Oh' }, 'Oh'],
    [
      'a detail with an error in it (DeepInfra)',
      { detail: { error: 'inference failed' } },
      'inference failed',
    ],
    [
      'a list of what is wrong (FastAPI)',
      { detail: [{ type: 'extra_forbidden', loc: ['body'], msg: 'Extra inputs are not permitted' }] },
      'Extra inputs are not permitted',
    ],
    ['nowhere', { id: 'chatcmpl-1' }, undefined],
    ['in no object', 'Bad Gateway', undefined],
    ['nothing', undefined, undefined],
  ])('%s', (_, value, message) => {
    expect(refusalErrorIn(value)?.message).toBe(message);
  });

  test('but not as deep as one likes', () => {
    let value: unknown = 'Oh';
    for (let depth = 0; depth < 1000; depth++) value = { detail: value };
    expect(refusalErrorIn(value)).toBeUndefined();
  });

  test('and as long as one likes neither', () => {
    expect(refusalErrorIn({ detail: 'x'.repeat(100_000) })?.message).toHaveLength(4096);
    const many = Array.from({ length: 10_000 }, () => ({ msg: 'wrong' }));
    expect(refusalErrorIn({ detail: many })?.message.length).toBeLessThanOrEqual(4096);
  });
});
