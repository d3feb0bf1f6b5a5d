import { expect, it } from 'vitest';
import { newRunId, ownerOf } from '../../src/checkpoint/owner.ts';

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
  ].map((headers) => ownerOf('secret', headers));
  expect(new Set(owners).size).toBe(owners.length);
});

it('one key is the same owner, whatever header its client puts it into', () => {
  const owners = [
    { authorization: 'Bearer sk-1' },
    { authorization: 'bearer  sk-1' },
    { 'x-api-key': 'sk-1' },
  ];
  expect(new Set(owners.map((headers) => ownerOf('secret', headers))).size).toBe(1);
});

it('an owner does not show the credential', () => {
  expect(ownerOf('secret', { authorization: 'Bearer sk-1' })).toMatch(/^[0-9a-f]{64}$/);
});

it('run ids have 128 random bits', () => {
  const ids = new Set(Array.from({ length: 1000 }, newRunId));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^run_[A-Za-z0-9_-]{22}$/);
});
