import { describe, expect, test } from 'vitest';
import { type ResumableOptions, resumable } from '../../src/client/index.ts';
import { readOptions } from '../../src/client/options.ts';

describe('options', () => {
  test('have defaults', () => {
    const { fetch: _, ...settings } = readOptions({});
    expect(settings).toEqual({
      endpoints: [],
      max_retries: 8,
      give_up_ms: 120_000,
      idle_ms: 30_000,
      backoff_ms: 50,
      backoff_max_ms: 2_000,
      retry_after_max_ms: 10_000,
      cancel_on_abort: true,
    });
  });

  test('that are undefined are not given', () => {
    const options = { max_retries: undefined, endpoints: undefined } as unknown as ResumableOptions;
    expect(readOptions(options)).toMatchObject({ max_retries: 8, endpoints: [] });
  });

  test.each([
    [{ retries: 3 }, /^unknown option 'retries'; there are fetch, endpoints, max_retries, /],
    [{ toString: 3 }, /^unknown option 'toString'/],
    [{ fetch: 'fetch' }, /^fetch must be a function like the global fetch$/],
    [{ endpoints: [] }, /^endpoints must be a list of at least one URL$/],
    [{ endpoints: 'http://a' }, /^endpoints must be a list/],
    [
      { endpoints: ['http://a', 'b:8080'] },
      /^endpoints\[1\]: "b:8080" must be the http\(s\) URL of a replica/,
    ],
    [{ endpoints: [null] }, /^endpoints\[0\]: null must be/],
    [{ max_retries: -1 }, /^max_retries must be a whole number from 0 to 1000000$/],
    [{ max_retries: Number.POSITIVE_INFINITY }, /^max_retries must be/],
    [{ give_up_ms: 0 }, /^give_up_ms must be a whole number from 1 to 2147483647$/],
    [{ idle_ms: '30s' }, /^idle_ms must be a whole number/],
    [{ backoff_ms: 0.5 }, /^backoff_ms must be a whole number from 0/],
    [{ backoff_ms: 3_000 }, /^backoff_max_ms must be a whole number from 3000 to/],
    [{ retry_after_max_ms: Number.NaN }, /^retry_after_max_ms must be/],
    [{ cancel_on_abort: 'no' }, /^cancel_on_abort must be true or false$/],
  ])('%j is refused', (options, message) => {
    const attempt = () => resumable(options as unknown as ResumableOptions);
    expect(attempt).toThrow(TypeError);
    expect(attempt).toThrow(message);
  });
});
