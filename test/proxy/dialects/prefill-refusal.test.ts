import { describe, expect, test } from 'vitest';
import { refusesPrefill } from '../../../src/proxy/dialects/prefill-refusal.ts';

describe('this model does not continue an assistant message', () => {
  test.each([
    [
      'Anthropic',
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    ],
    [
      'Bedrock',
      'The model returned the following errors: This model does not support assistant message prefill.',
    ],
    ['Gemini', 'Requests ending with a model turn are not supported.'],
    ['Gemini, old', 'Please ensure that multiturn requests must end with a user role.'],
    ['Gemini, older', 'Please ensure that multiturn requests ends with a user role or a function response.'],
    ['llama.cpp', 'Assistant response prefill is incompatible with enable_thinking.'],
    ['llama.cpp, twice', 'Cannot have 2 or more assistant messages at the end of the list.'],
    ['llama.cpp, with calls', 'Cannot continue an assistant message that contains tool calls.'],
    [
      'Anthropic, thinking',
      'When `thinking` is enabled, a final `assistant` message must start with a thinking block.',
    ],
  ])('%s', (_, message) => {
    expect(refusesPrefill(message)).toBe(true);
  });
});

describe('something else is wrong', () => {
  test.each([
    'messages: final assistant content cannot end with trailing whitespace',
    'Cannot set both `continue_final_message` and `add_generation_prompt` to True.',
    'Invalid value for temperature',
    '',
  ])('%j', (message) => {
    expect(refusesPrefill(message)).toBe(false);
  });
});
