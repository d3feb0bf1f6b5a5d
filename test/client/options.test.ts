import { describe, expect, test } from 'vitest';
import { type ResumableOptions, resumable } from '../../src/client/index.ts';
import { readOptions } from '../../src/client/options.ts';

describe('options', () => {
  test('have defaults', () => {
    const { fetch: _, ...settings } = readOptions({});
    expect(settings).toEqual({
      endpoints: [],
      maxRetries: 8,
      giveUpMs: 120_000,
      idleMs: 30_000,
      backoffMs: 50,
      backoffMaxMs: 2_000,
      retryAfterMaxMs: 10_000,
      cancelOnAbort: true,
    });
  });

  test('that are undefined are not given', () => {
    const options = { maxRetries: undefined, endpoints: undefined } as unknown as ResumableOptions;
    expect(readOptions(options)).toMatchObject({ maxRetries: 8, endpoints: [] });
  });

  test('are known by their former names too', () => {
    const former = {
      max_retries: 3,
      give_up_ms: 4,
      idle_ms: 5,
      backoff_ms: 6,
      backoff_max_ms: 7,
      retry_after_max_ms: 8,
      cancel_on_abort: false,
    };
    const { fetch: _, ...settings } = readOptions(former);
    expect(settings).toEqual({
      endpoints: [],
      maxRetries: 3,
      giveUpMs: 4,
      idleMs: 5,
      backoffMs: 6,
      backoffMaxMs: 7,
      retryAfterMaxMs: 8,
      cancelOnAbort: false,
    });
  });

  test('are given under one of their names', () => {
    const both = { maxRetries: 3, max_retries: 3 };
    expect(() => readOptions(both)).toThrow(
      new TypeError('maxRetries and max_retries are the same option: give maxRetries alone'),
    );
    const undefinedToo = { maxRetries: undefined, max_retries: 3 } as unknown as ResumableOptions;
    expect(readOptions(undefinedToo).maxRetries).toBe(3);
  });

  test.each([
    [{ retries: 3 }, /^unknown option 'retries'; there are fetch, endpoints, maxRetries, /],
    [{ toString: 3 }, /^unknown option 'toString'/],
    [{ fetch: 'fetch' }, /^fetch must be a function like the global fetch$/],
    [{ endpoints: [] }, /^endpoints must be a list of at least one URL$/],
    [{ endpoints: 'http://a' }, /^endpoints must be a list/],
    [
      { endpoints: ['http://a', 'b:8080'] },
      /^endpoints\[1\]: "b:8080" must be the http\(s\) URL of a replica/,
    ],
    [{ endpoints: [null] }, /^endpoints\[0\]: null must be/],
    [{ max_retries: -1 }, /^maxRetries must be a whole number from 0 to 1000000$/],
    [{ maxRetries: -1 }, /^maxRetries must be a whole number from 0 to 1000000$/],
    [{ maxRetries: Number.POSITIVE_INFINITY }, /^maxRetries must be/],
    [{ giveUpMs: 0 }, /^giveUpMs must be a whole number from 1 to 2147483647$/],
    [{ idleMs: '30s' }, /^idleMs must be a whole number/],
    [{ backoffMs: 0.5 }, /^backoffMs must be a whole number from 0/],
    [{ backoffMs: 3_000 }, /^backoffMaxMs must be a whole number from 3000 to/],
    [{ retryAfterMaxMs: Number.NaN }, /^retryAfterMaxMs must be/],
    [{ cancelOnAbort: 'no' }, /^cancelOnAbort must be true or false$/],
  ])('%j is refused', (options, message) => {
    const attempt = () => resumable(options as unknown as ResumableOptions);
    expect(attempt).toThrow(TypeError);
    expect(attempt).toThrow(message);
  });
});
