import { createHash } from 'node:crypto';
import type { DialectName } from '../../../config/dialect-names.ts';
import { isObject } from '../../../lib/json.ts';
import { type Dialect, eventFingerprint, PLAIN, type Prefill } from '../common/dialect.ts';
import { claudeContinues, familyCallsTools, familyMayContinue, geminiContinues } from './model-families.ts';

/** Anthropic's OpenAI-compatible endpoint. */
export const anthropic: Dialect = {
  ...PLAIN,
  name: 'anthropic',
  about: {
    speakers: 'Anthropic, OpenAI-compatible endpoint',
    models: ['claude-sonnet-4-5', 'claude-opus-4-6'],
    unverified:
      'Whether the endpoint has the rule of the Messages API: models that continue there are tried. That tools do no harm.',
  },
  addresses: ['api.anthropic.com'],
  // Names without a version belong to models that are newer than the rule.
  prefill: (model) => (claudeContinues(model) ? undefined : false),
  prefillWithTools: true,
  echoes: false,
  // A reasoning model requires a thinking block at the beginning of the message, which this endpoint never returns.
  prefillParameters: ({ request: { thinking } }) =>
    isObject(thinking) ? { thinking: { type: 'disabled' } } : {},
};

/** The OpenAI-compatible endpoints of Amazon Bedrock. */
export const bedrock: Dialect = {
  ...PLAIN,
  name: 'bedrock',
  about: {
    speakers: 'Amazon Bedrock, OpenAI-compatible endpoints',
    models: ['anthropic.claude-haiku-4-5', 'anthropic.claude-opus-4-8', 'openai.gpt-oss-120b'],
    unverified:
      'Whether these endpoints follow the same rule as its other ones: Holdfast tries models that continue there, and unknown ones.',
  },
  addresses: ['bedrock-runtime.*.amazonaws.com', 'bedrock-mantle.*.api.aws'],
  prefill: familyMayContinue,
  prefillWithTools: familyCallsTools,
  echoes: false,
};

/** DeepSeek: chat prefix completion uses another path, and accepts the reasoning too. */
export const deepseek: Dialect = {
  ...PLAIN,
  name: 'deepseek',
  about: {
    speakers: 'DeepSeek',
    unverified: 'Whether tools are still called after a prefix: with tools there is a nudge.',
  },
  addresses: ['api.deepseek.com'],
  prefill: true,
  echoes: false,
  continuesReasoning: true,
  assistantMessage: ({ text, reasoning }) => ({
    role: 'assistant',
    content: text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    prefix: true,
  }),
  prefillUrl: (base_url) => `${base_url.replace(/(\/(v1|beta))?\/?$/, '')}/beta`,
};

/** Gemini: a trailing assistant message becomes a model turn, which later models refuse. */
export const gemini: Dialect = {
  ...PLAIN,
  name: 'gemini',
  about: {
    speakers: 'Gemini and Vertex AI, OpenAI-compatible endpoints',
    models: ['gemini-2.5-flash', 'gemini-3.5-flash', 'gemini-3.5-flash-lite', 'gemini-3.6-flash'],
  },
  addresses: [
    'generativelanguage.googleapis.com',
    'aiplatform.googleapis.com',
    '*-aiplatform.googleapis.com',
  ],
  prefill: geminiContinues,
  prefillWithTools: true,
  echoes: false,
};

const GROQ_REASONS = /gpt-oss|qwen|deepseek-r1|qwq/;

/** Groq: any text-to-text model continues a trailing assistant message. */
export const groq: Dialect = {
  ...PLAIN,
  name: 'groq',
  about: {
    speakers: 'Groq',
    models: ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'],
    unverified:
      'Whether reasoning models continue: they are tried. Whether tools are still called after a prefix: with tools there is a nudge.',
  },
  addresses: ['api.groq.com'],
  sign: eventFingerprint('`x_groq`', (event) => 'x_groq' in event),
  prefill: (model) => (GROQ_REASONS.test(model.toLowerCase()) ? undefined : true),
  echoes: false,
};

/** Kimi: partial mode. Models that always reason require their reasoning back. */
export const kimi: Dialect = {
  ...PLAIN,
  name: 'kimi',
  about: {
    speakers: 'Moonshot AI (Kimi)',
    unverified:
      'Whether tools are still called after a prefix: with tools there is a nudge. Whether reasoning alone is continued: it is generated again.',
  },
  addresses: ['api.moonshot.ai', 'api.moonshot.cn', 'api.kimi.com'],
  prefill: true,
  echoes: false,
  assistantMessage: ({ text, reasoning }) => ({
    role: 'assistant',
    content: text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    partial: true,
  }),
};

const host = (name: DialectName, speakers: string, ...addresses: string[]): Dialect => ({
  ...PLAIN,
  name,
  about: { speakers, unverified: 'Whether models continue: they are tried.' },
  addresses,
});

/** Clouds for open models, of which only the address is known. */
export const cerebras = host('cerebras', 'Cerebras', 'api.cerebras.ai');
export const deepinfra = host('deepinfra', 'DeepInfra', 'api.deepinfra.com');
export const fireworks = host('fireworks', 'Fireworks AI', 'api.fireworks.ai');
export const together = host('together', 'Together AI', 'api.together.xyz', 'api.together.ai');

/** Accepts a trailing assistant message, but restarts the answer. */
export const openai: Dialect = {
  ...PLAIN,
  name: 'openai',
  about: { speakers: 'OpenAI' },
  addresses: ['api.openai.com', '*.api.openai.com'],
  sign: eventFingerprint('`obfuscation`', (event) => typeof event.obfuscation === 'string'),
  prefill: false,
  echoes: false,
  limit: 'max_completion_tokens',
  refusesAddedFields: true,
};

/** The same models. Its first event is about the prompt, and names neither the answer nor the model. */
export const azure: Dialect = {
  ...openai,
  name: 'azure',
  about: { speakers: 'Azure OpenAI' },
  addresses: ['*.openai.azure.com', '*.cognitiveservices.azure.com', '*.services.ai.azure.com'],
  sign: eventFingerprint('`prompt_filter_results`', (event) => 'prompt_filter_results' in event),
};

/** Its models get a nudge, like OpenAI's. */
export const xai: Dialect = {
  ...PLAIN,
  name: 'xai',
  about: { speakers: 'xAI', unverified: 'Whether any model continues: there is always a nudge.' },
  addresses: ['api.x.ai', '*.api.x.ai'],
  prefill: false,
  echoes: false,
};

const CALL_ID = /^[a-zA-Z0-9]{9}$/;
const CALL_ID_CHARACTERS = 9;

/** Repeats the prefix in its first one or two chunks; trailing white space moves to the next chunk. */
export const mistral: Dialect = {
  ...PLAIN,
  name: 'mistral',
  about: {
    speakers: 'Mistral',
    unverified: 'Whether tools are still called after a prefix: with tools there is a nudge.',
  },
  addresses: ['api.mistral.ai'],
  prefill: true,
  echoes: true,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, prefix: true }),
  reportsUnasked: true,
  refusesAddedFields: true,
  answersToolResults: true,
  callId: (id) =>
    CALL_ID.test(id)
      ? id
      : createHash('sha256')
          .update(id)
          .digest('base64url')
          .replace(/[-_]/g, '0')
          .slice(0, CALL_ID_CHARACTERS),
};

/** These models always reason, and partial mode doesn't support reasoning. */
const ALWAYS_THINKS = /thinking|qwq|qvq/;

function qwenContinues(model: string): Prefill {
  const name = model.toLowerCase();
  if (ALWAYS_THINKS.test(name)) return false;
  return name.includes('qwen') ? true : undefined;
}

/** Partial mode, which doesn't support reasoning. */
export const qwen: Dialect = {
  ...PLAIN,
  name: 'qwen',
  about: {
    speakers: 'Alibaba Cloud Model Studio (DashScope)',
    models: ['qwen-plus', 'qwen3-235b-a22b-thinking-2507', 'deepseek-v3.2'],
    unverified:
      'Whether tools are still called after a prefix: with tools there is a nudge. Models other than Qwen are tried. Whether the prefix comes again: short ones are not sent, which would not tell.',
  },
  addresses: ['dashscope*.aliyuncs.com'],
  prefill: qwenContinues,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, partial: true }),
  prefillParameters: () => ({ enable_thinking: false }),
};
