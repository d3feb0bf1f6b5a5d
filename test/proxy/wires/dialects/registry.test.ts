import { describe, expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../../../src/config/dialect-names.ts';
import { type Dialect, forModel, type Prefill } from '../../../../src/proxy/wires/common/dialect.ts';
import type { ChatRequest } from '../../../../src/proxy/wires/common/request.ts';
import { deepseek } from '../../../../src/proxy/wires/dialects/model-hosts.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';

test.each(DIALECT_NAMES)('%s is registered under its name', (name) => {
  expect(DIALECTS[name].name).toBe(name);
});

test('the configuration knows every dialect, in the order of the alphabet', () => {
  expect([...DIALECT_NAMES]).toEqual(Object.keys(DIALECTS).toSorted((one, other) => (one < other ? -1 : 1)));
});

interface Row {
  readonly prefill: Prefill;
  readonly tools?: boolean;
  /** By default, false. */
  readonly echoes?: boolean | undefined;
  readonly continuesReasoning?: boolean;
  readonly fields?: object;
  readonly parameters?: object;
}

/** The claims of a dialect decide whether an answer is continued; with a wrong one, answers restart in the middle. */
test.each<[keyof typeof DIALECTS, string, Row]>([
  ['openai', 'gpt-5', { prefill: false }],
  ['azure', 'gpt-5', { prefill: false }],
  ['anthropic', 'claude-sonnet-4-5', { prefill: undefined, tools: true }],
  ['anthropic', 'claude-opus-4-6', { prefill: false, tools: true }],
  ['gemini', 'gemini-2.5-flash', { prefill: true, tools: true }],
  ['gemini', 'gemini-3.6-flash', { prefill: false, tools: true }],
  ['mistral', 'mistral-large', { prefill: true, echoes: true, fields: { prefix: true } }],
  [
    'deepseek',
    'deepseek-chat',
    {
      prefill: true,
      continuesReasoning: true,
      fields: { prefix: true, reasoning_content: 'Kelp.' },
    },
  ],
  ['kimi', 'kimi-k3', { prefill: true, fields: { partial: true, reasoning_content: 'Kelp.' } }],
  [
    'qwen',
    'qwen-plus',
    { prefill: true, echoes: undefined, fields: { partial: true }, parameters: { enable_thinking: false } },
  ],
  [
    'qwen',
    'qwen3-235b-a22b-thinking-2507',
    { prefill: false, echoes: undefined, fields: { partial: true }, parameters: { enable_thinking: false } },
  ],
  [
    'qwen',
    'deepseek-v3.2',
    {
      prefill: undefined,
      echoes: undefined,
      fields: { partial: true },
      parameters: { enable_thinking: false },
    },
  ],
  ['groq', 'llama-3.3-70b-versatile', { prefill: true }],
  ['groq', 'openai/gpt-oss-120b', { prefill: undefined }],
  ['openrouter', 'anthropic/claude-sonnet-4.5', { prefill: undefined, tools: true }],
  ['openrouter', 'anthropic/claude-opus-4.6', { prefill: false, tools: true }],
  ['openrouter', 'openai/gpt-5', { prefill: false }],
  ['openrouter', 'meta-llama/llama-3.3-70b-instruct', { prefill: undefined }],
  ['xai', 'grok-4', { prefill: false }],
  ['fireworks', 'model', { prefill: undefined, echoes: undefined }],
  ['together', 'model', { prefill: undefined, echoes: undefined }],
  ['cerebras', 'model', { prefill: undefined, echoes: undefined }],
  ['deepinfra', 'model', { prefill: undefined, echoes: undefined }],
  [
    'vllm',
    'model',
    {
      prefill: true,
      tools: true,
      parameters: { continue_final_message: true, add_generation_prompt: false, echo: false },
    },
  ],
  [
    'sglang',
    'model',
    {
      prefill: true,
      tools: true,
      parameters: { continue_final_message: true, chat_template_kwargs: { enable_thinking: false } },
    },
  ],
  [
    'llamacpp',
    'model',
    {
      prefill: true,
      tools: true,
      parameters: {
        continue_final_message: true,
        add_generation_prompt: false,
        echo: false,
        chat_template_kwargs: { enable_thinking: false },
      },
    },
  ],
  ['ollama', 'model', { prefill: undefined, tools: true }],
  ['tgi', 'tgi', { prefill: true }],
  ['lmstudio', 'model', { prefill: undefined, tools: true }],
  ['bedrock', 'anthropic.claude-haiku-4-5', { prefill: undefined, tools: true }],
  ['bedrock', 'anthropic.claude-opus-4-8', { prefill: false, tools: true }],
  ['bedrock', 'openai.gpt-oss-120b', { prefill: undefined }],
  ['litellm', 'claude-sonnet-4-5', { prefill: true, fields: { prefix: true } }],
  ['litellm', 'mistral-large', { prefill: true, echoes: true, fields: { prefix: true } }],
  ['litellm', 'deepseek-chat', { prefill: true, fields: { prefix: true } }],
  ['litellm', 'gpt-5', { prefill: false, fields: { prefix: true } }],
  ['litellm', 'my-model', { prefill: undefined, echoes: undefined, fields: { prefix: true } }],
  ['cloudflare', 'openai/gpt-5.4', { prefill: false }],
  ['cloudflare', 'mistral/mistral-large', { prefill: undefined, echoes: undefined }],
  ['generic', 'model', { prefill: undefined, echoes: undefined }],
])('%s with %s: %j', (name, model, row) => {
  const dialect: Dialect = DIALECTS[name];
  const request: ChatRequest = { model, stream: true, messages: [] };
  expect({
    prefill: forModel(dialect.prefill, model),
    tools: forModel(dialect.prefillWithTools, model),
    echoes: forModel(dialect.echoes, model),
    continuesReasoning: dialect.continuesReasoning,
    message: dialect.assistantMessage({ text: 'The', reasoning: 'Kelp.' }),
    parameters: dialect.prefillParameters({ request, first: {} }),
  }).toEqual({
    prefill: row.prefill,
    tools: row.tools ?? false,
    echoes: 'echoes' in row ? row.echoes : false,
    continuesReasoning: row.continuesReasoning ?? false,
    message: { role: 'assistant', content: 'The', ...row.fields },
    parameters: row.parameters ?? {},
  });
});

const parameters = (name: keyof typeof DIALECTS, fields: object, first: Record<string, unknown> = {}) =>
  DIALECTS[name].prefillParameters({
    request: { model: 'model', stream: true, messages: [], ...fields },
    first,
  });

describe('a request that makes the model think', () => {
  test('has thinking switched off for Anthropic, and only then', () => {
    const thinking = { type: 'enabled', budget_tokens: 2000 };
    expect(parameters('anthropic', { thinking })).toEqual({ thinking: { type: 'disabled' } });
    expect(parameters('anthropic', { thinking: null })).toEqual({});
  });

  test.each(['sglang', 'llamacpp'] as const)('keeps its other template options for %s', (name) => {
    const options = { enable_thinking: true, language: 'fr' };
    expect(parameters(name, { chat_template_kwargs: options })).toMatchObject({
      chat_template_kwargs: { enable_thinking: false, language: 'fr' },
    });
  });
});

describe('OpenRouter is asked for the provider that began the answer first', () => {
  test.each([
    ['Anthropic', 'anthropic'],
    ['Google AI Studio', 'google-ai-studio'],
    ['Z.AI', 'z-ai'],
    ['deepinfra/fp8', 'deepinfra/fp8'],
  ])('%s: %s', (provider, slug) => {
    expect(parameters('openrouter', {}, { provider })).toEqual({ provider: { order: [slug] } });
  });

  test('and all else that the client wants of providers stays', () => {
    const wanted = { order: ['openai', 'azure'], data_collection: 'deny', allow_fallbacks: false };
    expect(parameters('openrouter', { provider: wanted }, { provider: 'Azure' })).toEqual({
      provider: { order: ['azure'], data_collection: 'deny', allow_fallbacks: false },
    });
  });

  test('unless it was not named', () => {
    expect(parameters('openrouter', {}, {})).toEqual({});
    expect(parameters('openrouter', {}, { provider: '' })).toEqual({});
  });
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

describe('an answer that was kept is asked for', () => {
  test.each([
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/v1/stream?conv_id=a&from=7'],
    ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080/v1/stream?conv_id=a&from=7'],
    ['http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080/v1/stream?conv_id=a&from=7'],
    ['https://llm.example.com/llama/v1/', 'https://llm.example.com/llama/v1/stream?conv_id=a&from=7'],
  ])('of llama.cpp at %s: %s', (base_url, url) => {
    expect(DIALECTS.llamacpp.keeps?.resumeUrl(base_url, 'a', 7)).toBe(url);
    expect(DIALECTS.llamacpp.keeps?.stopUrl?.(base_url, 'a')).toBe(url.replace('&from=7', ''));
  });

  test.each([
    [
      'https://gateway.ai.cloudflare.com/v1/account/gateway/compat',
      'https://gateway.ai.cloudflare.com/v1/account/gateway/run/a/resume?from=7',
    ],
    [
      'https://gateway.ai.cloudflare.com/v1/account/gateway/openai/',
      'https://gateway.ai.cloudflare.com/v1/account/gateway/run/a/resume?from=7',
    ],
    ['https://worker.example.com/v1', 'https://worker.example.com/v1/run/a/resume?from=7'],
  ])('of Cloudflare at %s: %s', (base_url, url) => {
    expect(DIALECTS.cloudflare.keeps?.resumeUrl(base_url, 'a', 7)).toBe(url);
  });

  test('and a dialect that has answers kept can have them ended', () => {
    for (const { keeps } of Object.values(DIALECTS)) {
      if (keeps?.id.in === 'request') expect(keeps.stopUrl).toBeDefined();
    }
  });
});

const KNOWN_FOR_BOTH: ReadonlySet<string> = new Set(['llamacpp', 'qwen']);

test('a dialect is never sure of a prefill whose answer may or may not begin with it', () => {
  for (const dialect of Object.values(DIALECTS)) {
    const models = dialect.about.models ?? ['model'];
    for (const model of models) {
      const mayEcho = forModel(dialect.echoes, model) === undefined;
      if (mayEcho && !KNOWN_FOR_BOTH.has(dialect.name))
        expect(forModel(dialect.prefill, model)).toBeUndefined();
    }
  }
});
