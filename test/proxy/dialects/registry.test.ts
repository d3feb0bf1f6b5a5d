import { describe, expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../../src/config/dialect-names.ts';
import { deepseek } from '../../../src/proxy/dialects/deepseek.ts';
import { DIALECTS } from '../../../src/proxy/dialects/registry.ts';

test.each(DIALECT_NAMES)('%s is registered under its name', (name) => {
  expect(DIALECTS[name].name).toBe(name);
});

/** What a dialect says decides whether an answer may be continued; a wrong one restarts answers in the middle. */
test.each([
  ['openai', { prefill: false, echoes: false }],
  ['generic', { prefill: undefined, prefillWithTools: false, echoes: false }],
  ['vllm', { prefill: true, prefillWithTools: true, echoes: false }],
  ['deepseek', { prefill: true, prefillWithTools: false, continuesReasoning: true }],
  ['mistral', { prefill: true, prefillWithTools: true, echoes: true }],
] as const)('%s: %j', (name, facts) => {
  expect(DIALECTS[name]).toMatchObject(facts);
});

describe('DeepSeek takes prefixes on another path', () => {
  test.each([
    ['https://api.deepseek.com', 'https://api.deepseek.com/beta'],
    ['https://api.deepseek.com/', 'https://api.deepseek.com/beta'],
    ['https://api.deepseek.com/v1', 'https://api.deepseek.com/beta'],
    ['https://api.deepseek.com/v1/', 'https://api.deepseek.com/beta'],
    ['https://api.deepseek.com/beta', 'https://api.deepseek.com/beta'],
    ['https://gateway.example.com/deepseek/v1', 'https://gateway.example.com/deepseek/beta'],
    ['https://gateway.example.com/v1/deepseek', 'https://gateway.example.com/v1/deepseek/beta'],
  ])('%s: %s', (base_url, url) => {
    expect(deepseek.prefillUrl?.(base_url)).toBe(url);
  });

  test('the others take them where they take everything', () => {
    for (const name of DIALECT_NAMES) {
      if (name !== 'deepseek') expect(DIALECTS[name].prefillUrl).toBeUndefined();
    }
  });
});
