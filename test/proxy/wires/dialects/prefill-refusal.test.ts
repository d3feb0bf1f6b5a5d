import { describe, expect, test } from 'vitest';
import { refusesPrefill } from '../../../../src/proxy/wires/dialects/prefill-evidence.ts';

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
    [
      'Mistral',
      'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
    ],
    [
      'DeepSeek',
      'The last message of deepseek-reasoner must be a user message, or an assistant message with prefix mode on (refer to https://api-docs.deepseek.com/guides/chat_prefix_completion).',
    ],
    ['OpenRouter', 'Provider returned error: Requests ending with a model turn are not supported.'],
    [
      'LiteLLM',
      'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill."}}',
    ],
    ['NIM, TensorRT-LLM', 'Extra inputs are not permitted'],
    ['OpenAI', 'Unrecognized request argument supplied: prefix'],
    ['OpenAI, newer', "Unknown parameter: 'continue_final_message'."],
    ['Gemini, a field', 'Invalid JSON payload received. Unknown name "prefix": Cannot find field.'],
    ['Groq, a field', "'messages.2' : property 'prefix' is unsupported"],
  ])('%s', (_, message) => {
    expect(refusesPrefill(message)).toBe(true);
  });
});

describe('something else is wrong', () => {
  test.each([
    'messages: final assistant content cannot end with trailing whitespace',
    'Cannot set both `continue_final_message` and `add_generation_prompt` to True.',
    'Invalid value for temperature',
    'The model is unsupported in this region',
    '',
  ])('%j', (message) => {
    expect(refusesPrefill(message)).toBe(false);
  });
});
