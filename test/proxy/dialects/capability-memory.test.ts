import { expect, test } from 'vitest';
import { CapabilityMemory } from '../../../src/proxy/dialects/capability-memory.ts';
import type { Time } from '../../../src/time.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

function memory() {
  let now_ms = 1_000;
  const time: Time = { now: () => now_ms, wall: () => now_ms, after: () => () => {} };
  const elapse = (duration_ms: number) => {
    now_ms += duration_ms;
  };
  return { capabilities: new CapabilityMemory(time), elapse };
}

test('nothing is known at first', () => {
  expect(memory().capabilities.prefill('openai', 'gpt')).toBeUndefined();
});

test('what was learnt is known, for this upstream and this model', () => {
  const { capabilities } = memory();
  capabilities.rememberPrefill('local', 'llama', true);
  capabilities.rememberPrefill('local', 'gemma', false);
  expect(capabilities.prefill('local', 'llama')).toBe(true);
  expect(capabilities.prefill('local', 'gemma')).toBe(false);
  expect(capabilities.prefill('other', 'llama')).toBeUndefined();
});

test('no two pairs of names are the same', () => {
  const { capabilities } = memory();
  capabilities.rememberPrefill('a', 'b/c', true);
  expect(capabilities.prefill('a/b', 'c')).toBeUndefined();
});

test('it is forgotten after a day', () => {
  const { capabilities, elapse } = memory();
  capabilities.rememberPrefill('local', 'llama', true);
  elapse(DAY_MS - 1);
  expect(capabilities.prefill('local', 'llama')).toBe(true);
  elapse(1);
  expect(capabilities.prefill('local', 'llama')).toBeUndefined();
});

test('it is learnt anew', () => {
  const { capabilities, elapse } = memory();
  capabilities.rememberPrefill('local', 'llama', false);
  elapse(DAY_MS - 1);
  capabilities.rememberPrefill('local', 'llama', true);
  elapse(DAY_MS - 1);
  expect(capabilities.prefill('local', 'llama')).toBe(true);
});

test('clients that name ever new models push out the oldest', () => {
  const { capabilities } = memory();
  for (let model = 0; model <= 10_000; model++) capabilities.rememberPrefill('local', `m${model}`, true);
  expect(capabilities.prefill('local', 'm0')).toBeUndefined();
  expect(capabilities.prefill('local', 'm1')).toBe(true);
  expect(capabilities.prefill('local', 'm10000')).toBe(true);
});

test('what is learnt anew is not the oldest any more, and pushes nothing out', () => {
  const { capabilities } = memory();
  for (let model = 0; model < 10_000; model++) capabilities.rememberPrefill('local', `m${model}`, true);
  capabilities.rememberPrefill('local', 'm5', false);
  expect(capabilities.prefill('local', 'm0')).toBe(true);
  for (let model = 0; model < 6; model++) capabilities.rememberPrefill('local', `n${model}`, true);
  expect(capabilities.prefill('local', 'm4')).toBeUndefined();
  expect(capabilities.prefill('local', 'm5')).toBe(false);
});
