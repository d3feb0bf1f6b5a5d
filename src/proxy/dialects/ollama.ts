import { type Dialect, PLAIN } from './dialect.ts';
import { fingerprintSign } from './sign.ts';

/** Newer models are rendered so that a trailing assistant message stays open; templates of others close it. */
export const ollama: Dialect = {
  ...PLAIN,
  name: 'ollama',
  about: { speakers: 'Ollama', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:11434'],
  sign: fingerprintSign('`fp_ollama`', /^fp_ollama$/),
  prefillWithTools: true,
  echoes: false,
};
