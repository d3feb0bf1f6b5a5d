import { type Dialect, PLAIN } from './dialect.ts';

/** Repeats the prefix in its first chunk or two, with the trailing space moved to the chunk after. */
export const mistral: Dialect = {
  ...PLAIN,
  name: 'mistral',
  prefill: true,
  prefillWithTools: true,
  echoes: true,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, prefix: true }),
};
