import { describe, expect, test } from 'vitest';
import { isRedisUrl, parseRedisUrl } from '../../../src/checkpoint/redis/address.ts';
import { StoreConfigurationError } from '../../../src/checkpoint/store.ts';

describe('a server', () => {
  test.each([
    ['redis://localhost', { endpoint: { host: 'localhost', port: 6379 }, db: 0, tls: false }],
    ['redis://redis:7000/', { endpoint: { host: 'redis', port: 7000 }, db: 0 }],
    ['redis://redis/12', { endpoint: { host: 'redis', port: 6379 }, db: 12 }],
    ['redis://[::1]:7000/1', { endpoint: { host: '::1', port: 7000 }, db: 1 }],
    ['rediss://redis', { endpoint: { host: 'redis', port: 6379 }, tls: true }],
    ['redis://:secret@redis', { password: 'secret' }],
    ['redis://me:secret@redis', { username: 'me', password: 'secret' }],
    ['redis://me:s%40cr%25et@redis', { password: 's@cr%et' }],
    ['redis://me:a@b/c:d@redis:1/2', { password: 'a@b/c:d', endpoint: { host: 'redis', port: 1 }, db: 2 }],
  ])('%s', (url, expected) => {
    expect(isRedisUrl(url)).toBe(true);
    expect(parseRedisUrl(url)).toMatchObject({ kind: 'server', ...expected });
  });

  test('without a user has none', () => {
    expect(parseRedisUrl('redis://:secret@redis')).not.toHaveProperty('username');
    expect(parseRedisUrl('redis://redis')).not.toHaveProperty('password');
  });
});

test('sentinels', () => {
  expect(parseRedisUrl('rediss+sentinel://:secret@one:1,two/main/3')).toEqual({
    kind: 'sentinel',
    name: 'rediss+sentinel://one:1,two/main/3',
    tls: true,
    password: 'secret',
    sentinels: [
      { host: 'one', port: 1 },
      { host: 'two', port: 26379 },
    ],
    master: 'main',
    db: 3,
  });
});

test('a cluster', () => {
  expect(parseRedisUrl('redis+cluster://one:1,two')).toEqual({
    kind: 'cluster',
    name: 'redis+cluster://one:1,two',
    tls: false,
    nodes: [
      { host: 'one', port: 1 },
      { host: 'two', port: 6379 },
    ],
  });
});

test.each([
  ['redis://', '"" is not a host'],
  ['redis://:hunter2@', '"" is not a host'],
  ['redis://:hunter2@a b', '"a b" is not a host'],
  ['redis://:hunter2@redis:0', '0 is not a port'],
  ['redis://:hunter2@redis:65536', '65536 is not a port'],
  ['redis://hunter2@redis', 'there is a user without a password'],
  ['redis://:hunter2%@redis', 'a % in the URL'],
  ['redis://:hunter2@redis/main', '"main" is not the number of a database'],
  ['redis://:hunter2@redis/0?family=6', '"0?family=6" is not the number of a database'],
  ['redis://:hunter2@one,two', 'several hosts are a cluster or sentinels'],
  ['redis+sentinel://:hunter2@one', 'the name of the master is missing'],
  ['redis+sentinel://:hunter2@one/main/0/1', 'the name of the master is missing'],
  ['redis+sentinel://:hunter2@one/main/x', '"x" is not the number of a database'],
  ['redis+cluster://:hunter2@one/0', 'a cluster has no databases'],
])('%s is refused without showing the password', (url, problem) => {
  expect(() => parseRedisUrl(url)).toThrow(StoreConfigurationError);
  expect(() => parseRedisUrl(url)).toThrow(`checkpoint.store: ${problem}`);
  expect(() => parseRedisUrl(url)).not.toThrow(/hunter2/);
});

test.each(['memory', 'file:redis://', 'redis:/localhost', 'redis+other://one', 'http://redis'])(
  '%s is not for Redis',
  (url) => {
    expect(isRedisUrl(url)).toBe(false);
  },
);
