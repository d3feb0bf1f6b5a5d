import { errors } from 'undici';
import { describe, expect, test } from 'vitest';
import { transportCode } from '../../src/interrupts/classify.ts';

const coded = (code: string, cause?: unknown) => Object.assign(new Error('', { cause }), { code });

describe('the code of', () => {
  test.each([
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'UND_ERR_SOCKET',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'ERR_HTTP2_STREAM_ERROR',
    'ERR_HTTP2_SESSION_ERROR',
    'HPE_INVALID_CHUNK_SIZE',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SOMETHING_NEW',
  ])('%s alone is itself', (code) => {
    expect(transportCode(coded(code))).toBe(code);
  });

  test('what fetch throws is that of its cause', () => {
    const terminated = new TypeError('terminated', { cause: new errors.SocketError('other side closed') });
    expect(transportCode(terminated)).toBe('UND_ERR_SOCKET');
  });

  test('a chain is the most telling, wherever it is', () => {
    expect(transportCode(coded('UND_ERR_SOCKET', coded('ECONNRESET')))).toBe('ECONNRESET');
    expect(transportCode(coded('ECONNRESET', coded('UND_ERR_SOCKET')))).toBe('ECONNRESET');
    expect(transportCode(coded('UND_ERR_INFO', coded('ERR_HTTP2_STREAM_ERROR')))).toBe(
      'ERR_HTTP2_STREAM_ERROR',
    );
    expect(transportCode(coded('EPROTO', coded('ERR_SSL_WRONG_VERSION_NUMBER')))).toBe(
      'ERR_SSL_WRONG_VERSION_NUMBER',
    );
    expect(transportCode(coded('UND_ERR_SOCKET', coded('UND_ERR_RES_CONTENT_LENGTH_MISMATCH')))).toBe(
      'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    );
  });

  test('equals is the outermost', () => {
    expect(transportCode(coded('EPIPE', coded('ECONNRESET')))).toBe('EPIPE');
  });

  test('an aggregate is that of its members', () => {
    const attempts = new AggregateError([coded('ENETUNREACH'), coded('ECONNREFUSED')]);
    expect(transportCode(new TypeError('fetch failed', { cause: attempts }))).toBe('ENETUNREACH');
  });

  test('a connect timeout is not that of the addresses tried', () => {
    const timeout = new errors.ConnectTimeoutError('Connect Timeout Error');
    timeout.cause = new AggregateError([coded('ETIMEDOUT'), coded('ECONNREFUSED')]);
    expect(transportCode(timeout)).toBe('UND_ERR_CONNECT_TIMEOUT');
  });

  test("undici's parser errors, which have none, says at least that much", () => {
    expect(transportCode(new errors.HTTPParserError('Response does not match the HTTP/1.1 protocol'))).toBe(
      'HPE_UNKNOWN',
    );
  });

  test('a circle of causes is found without end', () => {
    const inner = coded('UND_ERR_SOCKET');
    const outer = coded('ECONNRESET', inner);
    inner.cause = outer;
    expect(transportCode(inner)).toBe('ECONNRESET');
  });

  test('a chain beyond all reason is looked at in part', () => {
    let error = coded('ECONNRESET');
    for (let depth = 0; depth < 1_000; depth += 1) error = coded('UND_ERR_SOCKET', error);
    expect(transportCode(error)).toBe('UND_ERR_SOCKET');
  });
});

test.each([
  ['an error without one', new Error('read ECONNRESET')],
  ['a number', Object.assign(new Error(), { code: 20 })],
  ['an empty one', coded('')],
  ['a string thrown', 'ECONNRESET'],
  ['null', null],
  ['nothing', undefined],
])('no code, no guess: %s', (_, error) => {
  expect(transportCode(error)).toBe('UNKNOWN');
});
