import { describe, expect, test } from 'vitest';
import {
  claudeContinues,
  familyCallsTools,
  familyMayContinue,
  geminiContinues,
  isMistral,
} from '../../../../src/proxy/wires/dialects/model-families.ts';

describe('Claude continues from a trailing assistant message', () => {
  test.each([
    'claude-sonnet-4-5',
    'claude-sonnet-4-5-20250929',
    'claude-haiku-4-5@20251001',
    'claude-opus-4-1-20250805',
    'claude-3-5-sonnet-20241022',
    'claude-3-7-sonnet-latest',
    'claude-3-opus-20240229',
    'claude-2.1',
    'claude-instant-1.2',
    'anthropic/claude-sonnet-4.5',
    'anthropic/claude-4.5-sonnet-20250929',
    'anthropic.claude-v2:1',
    'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'Claude-Opus-4-5',
  ])('%s', (model) => {
    expect(claudeContinues(model)).toBe(true);
  });

  test.each([
    'claude-opus-4-6',
    'claude-sonnet-4-6-20260115',
    'claude-opus-4-10',
    'claude-sonnet-5',
    'claude-sonnet-5-5',
    'claude-opus-5',
    'anthropic/claude-opus-4.8',
    'claude-mythos-preview',
    'claude-10-opus',
    'model',
    '',
  ])('but not %s', (model) => {
    expect(claudeContinues(model)).toBe(false);
  });

  test.each(['claude-sonnet-4-20250514', 'claude-opus-4'])('nor %s, whose date is no version', (model) => {
    expect(claudeContinues(model)).toBe(false);
  });
});

describe('Gemini continues from a trailing model turn', () => {
  test.each([
    'gemini-2.0-flash',
    'gemini-2.5-flash',
    'gemini-2.5-pro',
    'models/gemini-2.5-flash-lite',
    'google/gemini-2.5-flash',
    'gemini-3-flash-preview',
    'gemini-3.1-pro',
    'gemini-3.5-flash',
    'gemini-pro-latest',
  ])('%s', (model) => {
    expect(geminiContinues(model)).toBe(true);
  });

  test.each([
    'gemini-3.5-flash-lite',
    'gemini-3.6-flash',
    'gemini-3.7-flash',
    'gemini-3.8-flash',
    'gemini-4-pro',
    'gemini-1.5-pro',
    'gemma-3',
  ])('but not %s', (model) => {
    expect(geminiContinues(model)).toBe(false);
  });
});

describe('behind a gateway', () => {
  test.each<[string, false | undefined]>([
    ['anthropic/claude-haiku-4.5', undefined],
    ['anthropic.claude-opus-4-8', false],
    ['google/gemini-2.5-pro', undefined],
    ['google/gemini-3.6-flash', false],
    ['openai/gpt-5', false],
    ['gpt-4o-mini', false],
    ['o3', false],
    ['openai/o4-mini', false],
    ['openai/chatgpt-4o-latest', false],
    ['x-ai/grok-4', false],
    ['openai/gpt-oss-120b', undefined],
    ['openai.gpt-oss-20b-1:0', undefined],
    ['meta-llama/llama-3.3-70b-instruct', undefined],
    ['qwen/qwen3-32b', undefined],
    ['my-model', undefined],
    ['phi-o3-finetune', undefined],
  ])('%s: %s', (model, continues) => {
    expect(familyMayContinue(model)).toBe(continues);
  });

  test('tools are left only to families that are known to call them', () => {
    const models = ['anthropic/claude-sonnet-4.5', 'google/gemini-2.5-pro', 'openai/gpt-5', 'my-model'];
    expect(models.map(familyCallsTools)).toEqual([true, true, false, false]);
  });

  test('Mistral models are known by their names', () => {
    const models = ['mistral-large-latest', 'open-mixtral-8x7b', 'codestral-2508', 'ministral-8b', 'llama'];
    expect(models.map(isMistral)).toEqual([true, true, true, true, false]);
  });
});
