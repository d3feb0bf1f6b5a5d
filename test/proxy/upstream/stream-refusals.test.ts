import { expect, test } from 'vitest';
import type { Owner } from '../../../src/checkpoint/store.ts';
import { StreamRefusals } from '../../../src/proxy/upstream/stream-refusals.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const HOUR_MS = 60 * 60 * 1000;
const [ONE, OTHER] = ['one', 'other'] as [Owner, Owner];
const target = { name: 'main', upstream: { base_url: 'http://main.test/v1' } };
const keyed = { ...target, upstream: { ...target.upstream, api_key: 'sk' } };

test('a refusal is remembered for an hour, from the last time on', () => {
  const time = new VirtualTime();
  const refusals = new StreamRefusals(time);
  refusals.remember(target, 'm', ONE);
  time.skip(HOUR_MS - 1);
  expect(refusals.has(target, 'm', ONE)).toBe(true);
  refusals.remember(target, 'm', ONE);
  time.skip(HOUR_MS - 1);
  expect(refusals.has(target, 'm', ONE)).toBe(true);
  time.skip(1);
  expect(refusals.has(target, 'm', ONE)).toBe(false);
  expect(refusals.has(target, 'm', ONE)).toBe(false);
});

test('it is that of an upstream and of the model as that one has it', () => {
  const refusals = new StreamRefusals(new VirtualTime());
  refusals.remember({ ...target, model: 'own' }, 'm', ONE);
  expect(refusals.has({ ...target, model: 'own' }, 'another', ONE)).toBe(true);
  expect(refusals.has(target, 'own', ONE)).toBe(true);
  expect(refusals.has(target, 'm', ONE)).toBe(false);
  expect(refusals.has({ ...target, name: 'other' }, 'own', ONE)).toBe(false);
});

test('it is that of one client, unless the key is the operator’s', () => {
  const refusals = new StreamRefusals(new VirtualTime());
  refusals.remember(target, 'm', ONE);
  expect(refusals.has(target, 'm', OTHER)).toBe(false);
  refusals.remember(keyed, 'm', ONE);
  expect(refusals.has(keyed, 'm', OTHER)).toBe(true);
});

test('of very many the oldest are forgotten', () => {
  const refusals = new StreamRefusals(new VirtualTime());
  for (let count = 0; count <= 10_000; count++) refusals.remember(target, `m${count}`, ONE);
  expect(refusals.has(target, 'm0', ONE)).toBe(false);
  expect(refusals.has(target, 'm1', ONE)).toBe(true);
  expect(refusals.has(target, 'm10000', ONE)).toBe(true);
});
