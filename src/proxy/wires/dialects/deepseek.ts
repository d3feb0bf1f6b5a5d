import { type Dialect, PLAIN } from '../common/dialect.ts';

/** Chat prefix completion lives on another path, and takes the reasoning as well. */
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
