import { type Dialect, PLAIN } from '../common/dialect.ts';

/** Repeats the prefix in its first chunk or two, with the trailing space moved to the chunk after. */
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
};
