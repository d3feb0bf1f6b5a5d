import { expect, it } from 'vitest';
import { failedResponse } from '../../../../src/proxy/wires/responses/ending.ts';

it.each([
  ['context_overflow', false, 'context_length_exceeded'],
  ['invalid_request', false, 'invalid_prompt'],
  ['quota', false, 'insufficient_quota'],
  ['rate_limited', true, 'rate_limit_exceeded'],
  ['connection_reset', true, 'server_error'],
  ['unauthorised', false, 'invalid_prompt'],
  ['content_filter', false, 'invalid_prompt'],
  // The provider would run its tools again.
  ['connection_reset', false, 'invalid_prompt'],
  ['provider_5xx', false, 'invalid_prompt'],
])(
  'a failure by %s, which may be tried again: %s, has the code %s, by which Codex decides whether to',
  (cause, retryable, code) => {
    const message = 'It could not be finished.';
    const { response } = failedResponse({ id: 'resp_1' }, { message, holdfast: { cause, retryable } });
    expect(response).toMatchObject({ id: 'resp_1', status: 'failed', error: { code, message } });
  },
);
