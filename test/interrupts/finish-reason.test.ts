import { expect, test } from 'vitest';
import { failureStatusOf } from '../../src/interrupts/provider-error.ts';

test.each([
  ['error', 502],
  ['abort', 502],
  ['aborted', 502],
  ['network_error', 502],
  ['insufficient_system_resource', 503],
  ['overloaded_error', 529],
  ['api_error', 500],
  ['server_error', 500],
  ['rate_limit_error', 429],
  ['timeout_error', 504],
])('%s is a failure, as %i is', (reason, status) => {
  expect(failureStatusOf(reason)).toBe(status);
});

test.each([
  'stop',
  'length',
  'tool_calls',
  'function_call',
  'content_filter',
  'end_turn',
  'max_tokens',
  'something_new',
  'toString',
  '',
])('%j ends an answer', (reason) => {
  expect(failureStatusOf(reason)).toBeUndefined();
});
