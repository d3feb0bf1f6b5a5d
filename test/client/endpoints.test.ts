import { afterEach, describe, expect, test, vi } from 'vitest';
import { Endpoints, rootOfEndpoint } from '../../src/client/endpoints.ts';

const A = 'http://a:8080';
const B = 'http://b:8080';
const C = 'http://c:8080';

describe('the root of an endpoint', () => {
  test.each([
    ['http://a:8080', A],
    ['http://a:8080/', A],
    ['http://a:8080/v1', A],
    ['http://a:8080/v1/', A],
    ['HTTP://A:8080/v1', A],
    ['https://gateway.example.com/llm/v1', 'https://gateway.example.com/llm'],
    ['https://gateway.example.com/llm/', 'https://gateway.example.com/llm'],
    ['http://[::1]:8080/v1', 'http://[::1]:8080'],
  ])('of %s', (endpoint, root) => {
    expect(rootOfEndpoint(endpoint)).toBe(root);
  });

  test.each([
    'a:8080',
    'localhost',
    '',
    'ftp://a/',
    '/v1',
    'http://user:password@a:8080',
    'http://a:8080/v1?key=1',
    'http://a:8080/#v1',
    undefined,
    8080,
  ])('there is none of %s', (endpoint) => {
    expect(rootOfEndpoint(endpoint)).toBeUndefined();
  });
});

describe('the order', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('is that of the list, round and round', () => {
    const endpoints = new Endpoints([A, B, C]);
    expect([A, B, C].map((root) => endpoints.after(root))).toEqual([B, C, A]);
  });

  test('begins at the top after a root that is not in the list', () => {
    expect(new Endpoints([A, B]).after('http://balancer')).toBe(A);
  });

  test('without a list there is only the root itself', () => {
    const endpoints = new Endpoints([]);
    endpoints.failed(A);
    expect(endpoints.first(A)).toBe(A);
    expect(endpoints.after(A)).toBe(A);
  });

  test('leaves out what failed lately, unless everything did', () => {
    const endpoints = new Endpoints([A, B, C]);
    endpoints.failed(B);
    expect(endpoints.after(A)).toBe(C);
    endpoints.failed(C);
    expect(endpoints.after(B)).toBe(A);
    endpoints.failed(A);
    expect(endpoints.after(A)).toBe(B);
  });

  test('a replica that failed is first again when it has answered, or after ten seconds', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const endpoints = new Endpoints([A, B]);
    endpoints.failed(A);
    expect(endpoints.first(A)).toBe(B);
    endpoints.answered(A);
    expect(endpoints.first(A)).toBe(A);
    endpoints.failed(A);
    vi.advanceTimersByTime(9_999);
    expect(endpoints.first(A)).toBe(B);
    vi.advanceTimersByTime(1);
    expect(endpoints.first(A)).toBe(A);
  });
});
