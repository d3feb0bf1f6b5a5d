import { type Dialect, PLAIN } from '../common/dialect.ts';
import { eventFingerprint } from '../common/fingerprint.ts';

/** Accepts a trailing assistant message, but starts the answer anew. */
export const openai: Dialect = {
  ...PLAIN,
  name: 'openai',
  about: { speakers: 'OpenAI' },
  addresses: ['api.openai.com', '*.api.openai.com'],
  sign: eventFingerprint('`obfuscation`', (event) => typeof event.obfuscation === 'string'),
  prefill: false,
  echoes: false,
};
