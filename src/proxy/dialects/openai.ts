import { type Dialect, PLAIN } from './dialect.ts';
import { eventSign } from './sign.ts';

/** Accepts a trailing assistant message, but starts the answer anew. */
export const openai: Dialect = {
  ...PLAIN,
  name: 'openai',
  about: { speakers: 'OpenAI' },
  addresses: ['api.openai.com', '*.api.openai.com'],
  sign: eventSign('`obfuscation`', (event) => typeof event.obfuscation === 'string'),
  prefill: false,
  echoes: false,
};
