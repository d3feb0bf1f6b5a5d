import { type Dialect, PLAIN } from '../common/dialect.ts';

/** Partial mode. Models that always think want their reasoning back. */
export const kimi: Dialect = {
  ...PLAIN,
  name: 'kimi',
  about: {
    speakers: 'Moonshot AI (Kimi)',
    unverified:
      'Whether tools are still called after a prefix: with tools there is a nudge. Whether reasoning alone is continued: it is generated anew.',
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
