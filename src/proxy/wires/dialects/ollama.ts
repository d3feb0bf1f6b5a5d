import { type Dialect, PLAIN } from '../common/dialect.ts';
import { systemFingerprint } from '../common/fingerprint.ts';

/** Newer models are rendered so that a trailing assistant message stays open; templates of others close it. */
export const ollama: Dialect = {
  ...PLAIN,
  name: 'ollama',
  about: { speakers: 'Ollama', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:11434'],
  sign: systemFingerprint('`fp_ollama`', /^fp_ollama$/),
  prefillWithTools: true,
  echoes: false,
};
