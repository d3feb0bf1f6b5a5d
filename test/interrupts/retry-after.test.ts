import { describe, expect, test } from 'vitest';
import { retryAfterFromError, retryAfterMs, retryAtFromError } from '../../src/interrupts/retry-after.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 10, 0, 0);

describe('headers', () => {
  test.each([
    ['milliseconds', { 'retry-after-ms': '1500' }, 1_500],
    ['fractions of milliseconds', { 'retry-after-ms': '0.5' }, 0.5],
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['fractions of seconds', { 'retry-after': '0.25' }, 250],
    ['at once', { 'retry-after': '0' }, 0],
    ['blanks around', { 'retry-after': ' 7 ' }, 7_000],
    ['a date', { 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, 30_000],
    ['a date in the old form', { 'retry-after': 'Friday, 20-Nov-26 10:00:30 GMT' }, 30_000],
    ['a date in the past', { 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' }, 0],
    ['Azure', { 'x-ms-retry-after-ms': '1500' }, 1_500],
    ['more than anyone would wait, uncapped', { 'retry-after': '86400' }, 86_400_000],
    ['repeated: the first', { 'retry-after': ['3', '9'] }, 3_000],
    ['milliseconds before seconds', { 'retry-after-ms': '10', 'retry-after': '7' }, 10],
    ['seconds where the milliseconds say nothing', { 'retry-after-ms': 'soon', 'retry-after': '7' }, 7_000],
  ])('%s', (_, headers, delay_ms) => {
    expect(retryAfterMs(headers, NOW_MS)).toBe(delay_ms);
  });

  test.each([
    ['none', {}],
    ['empty', { 'retry-after': '' }],
    ['repeated, but not once', { 'retry-after': [] }],
    ['negative', { 'retry-after': '-5' }],
    ['not a number', { 'retry-after': 'NaN' }],
    ['hexadecimal', { 'retry-after': '0x10' }],
    ['infinite', { 'retry-after': 'Infinity' }],
    ['too many digits for a number', { 'retry-after': '9'.repeat(400) }],
    ['a word', { 'retry-after': 'tomorrow' }],
    ['no date that exists', { 'retry-after': 'Fri, 99 Nov 2026 10:00:30 GMT' }],
    ['a duration where seconds belong', { 'retry-after': '6m0s' }],
    ['the time until a bucket is full', { 'x-ratelimit-reset-tokens': '6m0s' }],
  ])('nothing said: %s', (_, headers) => {
    expect(retryAfterMs(headers, NOW_MS)).toBeUndefined();
  });
});

describe('error objects', () => {
  test.each([
    ['seconds', { message: 'slow down', retry_after: 2.5 }, 2_500],
    ['seconds as a string', { retry_after: '3' }, 3_000],
    ['seconds under their full name', { retry_after_seconds: 4 }, 4_000],
    ['milliseconds before seconds', { retry_after_ms: 20, retry_after: 2 }, 20],
    ['in the metadata', { code: 429, metadata: { retry_after: 5 } }, 5_000],
  ])('%s', (_, error, delay_ms) => {
    expect(retryAfterFromError(error)).toBe(delay_ms);
  });

  test('Google: RetryInfo among the details', () => {
    const error = {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' },
      ],
    };
    expect(retryAfterFromError(error)).toBe(34_500);
  });

  test.each([
    ['17s', 17_000],
    ['120ms', 120],
    ['6m0s', 360_000],
    ['1h16m0.5s', 4_560_500],
  ])('durations: %s', (retryDelay, delay_ms) => {
    expect(retryAfterFromError({ details: [{ retryDelay }] })).toBe(delay_ms);
  });

  describe('OpenRouter: headers quoted in the metadata', () => {
    const quoting = (headers: Record<string, unknown>) => ({ code: 429, metadata: { headers } });

    test('Retry-After', () => {
      expect(retryAfterFromError(quoting({ 'Retry-After': 12 }))).toBe(12_000);
    });

    test.each([
      ['milliseconds since 1970', { 'X-RateLimit-Reset': String(NOW_MS + 40_000) }, NOW_MS + 40_000],
      ['seconds since 1970', { 'X-RateLimit-Reset': NOW_MS / 1000 + 40 }, NOW_MS + 40_000],
      ['a date', { 'Retry-After': 'Fri, 20 Nov 2026 10:00:30 GMT' }, NOW_MS + 30_000],
      ['a date of the reset', { 'x-ratelimit-reset': 'Fri, 20 Nov 2026 10:00:30 GMT' }, NOW_MS + 30_000],
    ])('a point in time: %s', (_, headers, at_ms) => {
      expect(retryAtFromError(quoting(headers))).toBe(at_ms);
      expect(retryAfterFromError(quoting(headers))).toBeUndefined();
    });

    test.each([
      ['seconds', { 'X-RateLimit-Reset': '30' }, 30_000],
      ['a duration', { 'X-RateLimit-Reset-Tokens': '1m30s' }, 90_000],
      [
        'the last of several limits',
        { 'X-RateLimit-Reset-Requests': '120ms', 'X-RateLimit-Reset-Tokens': '6m0s' },
        360_000,
      ],
      ['nothing where there is a Retry-After', { 'Retry-After': '2', 'X-RateLimit-Reset': '30' }, 2_000],
    ])('the time until a reset: %s', (_, headers, delay_ms) => {
      expect(retryAfterFromError(quoting(headers))).toBe(delay_ms);
      expect(retryAtFromError(quoting(headers))).toBeUndefined();
    });
  });

  test.each([
    ['no object', 'Please try again in 2s.'],
    ['null', null],
    ['nothing', undefined],
    ['no hint', { message: 'Please try again in 2s.', code: 429 }],
    ['negative', { retry_after: -1 }],
    ['not a number', { retry_after: Number.NaN }],
    ['infinite', { retry_after: Number.POSITIVE_INFINITY }],
    ['an object for a number', { retry_after: { seconds: 1 } }],
    ['details that are none', { details: 'none' }],
    ['details of another kind', { details: [null, 'x', { retryDelay: 3 }, { retryDelay: 'soon' }] }],
    ['metadata that is none', { metadata: 'none' }],
  ])('nothing said: %s', (_, error) => {
    expect(retryAfterFromError(error)).toBeUndefined();
    expect(retryAtFromError(error)).toBeUndefined();
  });

  test('a date in the place of seconds is a point in time', () => {
    const date = { retry_after: 'Fri, 20 Nov 2026 10:00:30 GMT' };
    expect(retryAtFromError(date)).toBe(NOW_MS + 30_000);
    expect(retryAtFromError({ metadata: date })).toBe(NOW_MS + 30_000);
  });
});
