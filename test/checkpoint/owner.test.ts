import { expect, it } from 'vitest';
import { hasCredential, newRunId, ownerOf } from '../../src/checkpoint/owner.ts';

it('the same credential is the same owner, under one secret', () => {
  const headers = { authorization: 'Bearer sk-1' };
  expect(ownerOf('secret', headers)).toBe(ownerOf('secret', { ...headers, 'user-agent': 'other' }));
  expect(ownerOf('secret', headers)).not.toBe(ownerOf('another secret', headers));
});

it('another credential is another owner, wherever it is put, and so is none', () => {
  const owners = [
    {},
    { authorization: 'Bearer sk-1' },
    { authorization: 'Bearer sk-2' },
    { 'api-key': 'sk-3' },
    { 'x-api-key': 'sk-4' },
    { 'x-goog-api-key': 'sk-5' },
    { 'cf-aig-authorization': 'Bearer sk-6' },
  ].map((headers) => ownerOf('secret', headers));
  expect(new Set(owners).size).toBe(owners.length);
});

it('one key is the same owner, whatever header its client puts it into', () => {
  const owners = [
    { authorization: 'Bearer sk-1' },
    { authorization: 'bearer  sk-1' },
    { 'x-api-key': 'sk-1' },
    { 'x-goog-api-key': 'sk-1' },
    { authorization: 'Bearer sk-1', 'x-api-key': 'sk-1' },
    // A gateway's token accompanies the credential and doesn't replace it.
    { authorization: 'Bearer sk-1', 'cf-aig-authorization': 'Bearer of the gateway' },
  ];
  expect(new Set(owners.map((headers) => ownerOf('secret', headers))).size).toBe(1);
});

it.each(['', ' ', 'Bearer', 'Bearer  '])(
  'an empty header (%j) says nothing: the credential in another one counts',
  (authorization) => {
    for (const name of ['api-key', 'x-api-key', 'x-goog-api-key', 'cf-aig-authorization']) {
      const [one, other] = ['sk-1', 'sk-2'].map((key) => ownerOf('secret', { authorization, [name]: key }));
      expect(one).toBe(ownerOf('secret', { [name]: 'sk-1' }));
      expect(one).not.toBe(other);
      expect(hasCredential({ authorization })).toBe(false);
    }
  },
);

it('two different credentials are refused', () => {
  expect(() => ownerOf('secret', { authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' })).toThrow(
    'The headers authorization and x-api-key carry different credentials',
  );
  expect(() => ownerOf('secret', { 'api-key': 'sk-1', 'x-goog-api-key': 'sk-2' })).toThrow(
    'The headers api-key and x-goog-api-key carry',
  );
});

it('an owner does not show the credential', () => {
  expect(ownerOf('secret', { authorization: 'Bearer sk-1' })).toMatch(/^[0-9a-f]{64}$/);
});

it('run ids have 128 random bits', () => {
  const ids = new Set(Array.from({ length: 1000 }, newRunId));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^run_[A-Za-z0-9_-]{22}$/);
});
