import { describe, expect, test } from 'vitest';
import type { Time } from '../../../../src/lib/time.ts';
import type { Target } from '../../../../src/proxy/upstream/target.ts';
import type { Samples } from '../../../../src/proxy/wires/common/dialect.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';

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
  capabilities.rememberPrefill('local', 'llama', 'exact');
  capabilities.rememberPrefill('local', 'gemma', 'new_turn');
  expect(capabilities.prefill('local', 'llama')).toBe('exact');
  expect(capabilities.prefill('local', 'gemma')).toBe('new_turn');
  expect(capabilities.prefill('other', 'llama')).toBeUndefined();
});

test('no two pairs of names are the same', () => {
  const { capabilities } = memory();
  capabilities.rememberPrefill('a', 'b/c', 'exact');
  expect(capabilities.prefill('a/b', 'c')).toBeUndefined();
});

test('whether answers are kept is learnt beside it', () => {
  const { capabilities, elapse } = memory();
  expect(capabilities.keeps('local', 'llama')).toBeUndefined();
  capabilities.rememberPrefill('local', 'llama', 'exact');
  capabilities.rememberKeeping('local', 'llama', false);
  expect(capabilities.keeps('local', 'llama')).toBe(false);
  expect(capabilities.prefill('local', 'llama')).toBe('exact');
  elapse(DAY_MS);
  expect(capabilities.keeps('local', 'llama')).toBeUndefined();
});

test('it is forgotten after a day', () => {
  const { capabilities, elapse } = memory();
  capabilities.rememberPrefill('local', 'llama', 'exact');
  elapse(DAY_MS - 1);
  expect(capabilities.prefill('local', 'llama')).toBe('exact');
  elapse(1);
  expect(capabilities.prefill('local', 'llama')).toBeUndefined();
});

test('it is learnt anew', () => {
  const { capabilities, elapse } = memory();
  capabilities.rememberPrefill('local', 'llama', 'new_turn');
  elapse(DAY_MS - 1);
  capabilities.rememberPrefill('local', 'llama', 'exact');
  elapse(DAY_MS - 1);
  expect(capabilities.prefill('local', 'llama')).toBe('exact');
});

test('clients that name ever new models push out the oldest', () => {
  const { capabilities } = memory();
  for (let model = 0; model <= 10_000; model++) capabilities.rememberPrefill('local', `m${model}`, 'exact');
  expect(capabilities.prefill('local', 'm0')).toBeUndefined();
  expect(capabilities.prefill('local', 'm1')).toBe('exact');
  expect(capabilities.prefill('local', 'm10000')).toBe('exact');
});

test('what is learnt anew is not the oldest any more, and pushes nothing out', () => {
  const { capabilities } = memory();
  for (let model = 0; model < 10_000; model++) capabilities.rememberPrefill('local', `m${model}`, 'exact');
  capabilities.rememberPrefill('local', 'm5', 'new_turn');
  expect(capabilities.prefill('local', 'm0')).toBe('exact');
  for (let model = 0; model < 6; model++) capabilities.rememberPrefill('local', `n${model}`, 'exact');
  expect(capabilities.prefill('local', 'm4')).toBeUndefined();
  expect(capabilities.prefill('local', 'm5')).toBe('new_turn');
});

const target = (upstream: Partial<Target['upstream']> = {}, more: Partial<Target> = {}): Target => ({
  name: 'local',
  upstream: { base_url: 'http://llm.internal:8000/v1', ...upstream },
  ...more,
});
const OLLAMA: Samples = { events: [{ system_fingerprint: 'fp_ollama' }], headers: {} };
const VLLM: Samples = { events: [{ system_fingerprint: 'vllm-0.24.0' }], headers: {} };

describe('the dialect of a target', () => {
  test('is the one that is configured, whatever its address and its events say', () => {
    const { capabilities } = memory();
    const given = target({ base_url: 'https://api.openai.com/v1', dialect: 'vllm' });
    capabilities.recognise(given, 'llama', OLLAMA);
    expect(capabilities.dialect(given, 'llama')?.name).toBe('vllm');
  });

  test('else that of its address, whatever its events say', () => {
    const { capabilities } = memory();
    const known = target({ base_url: 'https://api.mistral.ai/v1' });
    capabilities.recognise(known, 'llama', OLLAMA);
    expect(capabilities.dialect(known, 'llama')?.name).toBe('mistral');
  });

  test('else what it sent has given away', () => {
    const { capabilities } = memory();
    expect(capabilities.dialect(target(), 'llama')).toBeUndefined();
    capabilities.recognise(target(), 'llama', OLLAMA);
    expect(capabilities.dialect(target(), 'llama')?.name).toBe('ollama');
  });

  test('is that of one model: a gateway has another server behind each', () => {
    const { capabilities } = memory();
    capabilities.recognise(target(), 'llama', OLLAMA);
    capabilities.recognise(target(), 'qwen', VLLM);
    expect(capabilities.dialect(target(), 'llama')?.name).toBe('ollama');
    expect(capabilities.dialect(target(), 'qwen')?.name).toBe('vllm');
    expect(capabilities.dialect(target(), 'other')).toBeUndefined();
  });

  test('is known by the name that the target has for the model', () => {
    const { capabilities } = memory();
    const renamed = target({}, { model: 'meta/llama' });
    capabilities.recognise(renamed, 'llama', OLLAMA);
    expect(capabilities.dialect(renamed, 'whatever')?.name).toBe('ollama');
    expect(capabilities.dialect(target(), 'meta/llama')?.name).toBe('ollama');
  });

  test('is not learnt from events that say nothing', () => {
    const { capabilities } = memory();
    capabilities.recognise(target(), 'llama', { events: [{ id: 'chatcmpl-1' }], headers: {} });
    expect(capabilities.dialect(target(), 'llama')).toBeUndefined();
  });

  test('stays what was learnt first, and is forgotten after a day', () => {
    const { capabilities, elapse } = memory();
    capabilities.recognise(target(), 'llama', OLLAMA);
    capabilities.recognise(target(), 'llama', VLLM);
    expect(capabilities.dialect(target(), 'llama')?.name).toBe('ollama');
    elapse(DAY_MS);
    expect(capabilities.dialect(target(), 'llama')).toBeUndefined();
    capabilities.recognise(target(), 'llama', VLLM);
    expect(capabilities.dialect(target(), 'llama')?.name).toBe('vllm');
  });

  test('makes worthless what was learnt about prefill without it', () => {
    const { capabilities } = memory();
    capabilities.rememberPrefill('local', 'llama', 'new_turn');
    capabilities.recognise(target(), 'llama', VLLM);
    expect(capabilities.prefill('local', 'llama')).toBeUndefined();
    capabilities.rememberPrefill('local', 'llama', 'exact');
    expect(capabilities.dialect(target(), 'llama')?.name).toBe('vllm');
    expect(capabilities.prefill('local', 'llama')).toBe('exact');
  });
});
