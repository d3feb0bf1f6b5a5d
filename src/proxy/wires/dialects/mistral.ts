import { createHash } from 'node:crypto';
import { type Dialect, PLAIN } from '../common/dialect.ts';

const CALL_ID = /^[a-zA-Z0-9]{9}$/;
const CALL_ID_CHARACTERS = 9;

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
