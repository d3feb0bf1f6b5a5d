import { describe, expect, test } from 'vitest';
import { failureStatus } from '../../../src/proxy/downstream/failure-status.ts';

const error = (code: unknown, cause?: string, retryable = true) => ({
  code,
  ...(cause !== undefined && { holdfast: { cause, retryable } }),
});

describe('the error event of a run, as a response', () => {
  test.each([
    ['stream_interrupted', 'connection_reset', 502],
    ['stream_interrupted', 'rate_limited', 502],
    ['run_poisoned', 'connection_reset', 502],
    ['run_salvaged', 'replica_lost', 502],
    ['run_cancelled', 'cancelled', 410],
    ['stream_interrupted', 'content_filter', 400],
    ['stream_interrupted', 'context_overflow', 400],
    ['stream_interrupted', 'quota', 429],
    ['stream_interrupted', 'unauthorised', 401],
    ['stream_interrupted', 'model_not_found', 404],
    // The limit is ours, so nothing is wrong with the request.
    ['run_too_large', 'invalid_request', 502],
    ['a foreign code', 'connection_reset', 502],
  ])('%s because of %s: %i', (code, cause, status) => {
    expect(failureStatus(error(code, cause)).status).toBe(status);
  });

  test('keeps SDKs from asking again where that is of no use', () => {
    expect(failureStatus(error('run_poisoned', 'connection_reset', false)).headers).toEqual({
      'x-should-retry': 'false',
    });
    expect(failureStatus(error('stream_interrupted', 'connection_reset')).headers).toEqual({});
    expect(failureStatus(error('run_cancelled'))).toEqual({ status: 410, headers: {} });
  });
});
