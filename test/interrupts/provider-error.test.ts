import { describe, expect, test } from 'vitest';
import { providerErrorIn } from '../../src/interrupts/provider-error.ts';

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
