import { expect, test } from 'vitest';
import { completeConfiguration, loadConfiguration } from '../../src/config/load.ts';
import { ConfigurationError } from '../../src/config/problem.ts';
import { redacted } from '../../src/config/redaction.ts';
import { NO_UPSTREAM_URL, upstreamsAt } from '../replica.ts';

const of = (tracing: object) => completeConfiguration({ ...upstreamsAt(NO_UPSTREAM_URL), tracing });

function problemOf(tracing: object): string {
  try {
    of(tracing);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error('the configuration is valid');
}

test('headers are never printed, whatever is wrong with them', () => {
  const headers = { authorization: 'Bearer of-the-collector' };
  const { tracing } = of({ endpoint: 'http://collector:4318', headers });
  expect(tracing.headers).toEqual(headers);
  expect(redacted({ tracing })).toEqual({
    tracing: { endpoint: 'http://collector:4318', headers: '[redacted]' },
  });
  expect(problemOf({ headers: { authorization: 4711 } })).toBe(
    'tracing.headers.authorization: must be a string.',
  );
  expect(problemOf({ headers: { authorization: 'Bearer of-the-collector\r\nhost: x' } })).toBe(
    'tracing.headers.authorization: must not have line breaks or control characters.',
  );
});

test.each([
  [{ endpoint: 'collector:4318' }, /^tracing\.endpoint: must be an http: or https: URL/],
  [{ endpoint: 'grpc://collector:4317' }, /^tracing\.endpoint: must be an http: or https: URL/],
  [{ endpoint: 'http://user:of-the-collector@collector' }, /^tracing\.endpoint: must not hold credentials/],
  [{ sample_ratio: 1.5 }, /^tracing\.sample_ratio: must be at most 1, not 1\.5/],
  [{ sample_ratio: 'all' }, /^tracing\.sample_ratio: must be a number, not "all"/],
  [{ service_name: '' }, /^tracing\.service_name: must not be empty/],
  [{ conversation_ids: 'yes' }, /^tracing\.conversation_ids: must be true or false/],
  [{ protocol: 'grpc' }, /^tracing\.protocol: unknown key/],
])('%o is refused', (tracing, message) => {
  expect(problemOf(tracing)).toMatch(message);
  expect(problemOf(tracing)).not.toContain('of-the-collector');
});

test('variables set what holds one value', () => {
  const { configuration, warnings } = loadConfiguration({
    environment: {
      HOLDFAST_UPSTREAM: 'https://api.openai.com/v1',
      HOLDFAST_TRACING_ENDPOINT: 'http://collector:4318',
      HOLDFAST_TRACING_SAMPLE_RATIO: '0.25',
      HOLDFAST_TRACING_SERVICE_NAME: 'holdfast-eu',
    },
  });
  expect(warnings).toEqual([]);
  expect(configuration.tracing).toEqual({
    endpoint: 'http://collector:4318',
    sample_ratio: 0.25,
    service_name: 'holdfast-eu',
  });
});
