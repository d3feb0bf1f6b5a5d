import { expect, it } from 'vitest';
import { apiError, ERRORS, errorBody, errorObject } from '../../src/lib/errors.ts';

it('an error has the OpenAI shape, with its values in the message', () => {
  expect(JSON.parse(errorBody('model_not_found', { model: 'gpt-9' }))).toEqual({
    error: {
      message: "No route serves the model 'gpt-9'; add one under 'routes', or ask for a model that has one.",
      type: 'invalid_request_error',
      param: null,
      code: 'model_not_found',
    },
  });
});

it('an error about a field names it', () => {
  expect(errorObject('missing_field', { param: 'messages', expected: 'a list' }).param).toBe('messages');
});

it('values are put in as they are, even if they look like placeholders', () => {
  const { message } = errorObject('upstream_unreachable', { upstream: '{reason}', reason: '$& {upstream}' });
  expect(message).toBe("Holdfast can't reach the upstream '{reason}': $& {upstream}.");
});

it('a thrown error knows its status and body', () => {
  const error = apiError('shutting_down');
  expect(error).toMatchObject({ name: 'ApiError', code: 'shutting_down', status: 503 });
  expect(error.body).toBe(errorBody('shutting_down'));
});

it('a client that may ask again learns when, in both units', () => {
  const retry = { 'retry-after': '1', 'retry-after-ms': '1000' };
  for (const error of [
    apiError('shutting_down'),
    apiError('store_unavailable'),
    apiError('run_taken_over'),
    apiError('too_many_runs', { limit: 1, setting: 'limits.runs_per_owner' }),
  ])
    expect(error.headers).toEqual({ 'content-type': 'application/json; charset=utf-8', ...retry });
  expect(Object.keys(apiError('run_not_found').headers)).toEqual(['content-type']);
});

it('every status is an error, and every message a sentence', () => {
  for (const { status, message } of Object.values(ERRORS)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(message).toMatch(/^[A-Z{].*[.}]$/);
  }
});
