import { type Dialect, PLAIN } from './dialect.ts';

/** Chat prefix completion lives on another path, and takes the reasoning as well. */
export const deepseek: Dialect = {
  ...PLAIN,
  name: 'deepseek',
  prefill: true,
  continuesReasoning: true,
  assistantMessage: ({ text, reasoning }) => ({
    role: 'assistant',
    content: text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    prefix: true,
  }),
  prefillUrl: (base_url) => `${base_url.replace(/(\/(v1|beta))?\/?$/, '')}/beta`,
};
