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

export const lmstudio: Dialect = {
  ...PLAIN,
  name: 'lmstudio',
  about: { speakers: 'LM Studio', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:1234'],
  prefillWithTools: true,
  echoes: false,
};

/** Always continues a trailing assistant message. Tools are described at the end of that very message. */
export const tgi: Dialect = {
  ...PLAIN,
  name: 'tgi',
  about: { speakers: 'Text Generation Inference' },
  sign: systemFingerprint(
    'like `3.0.1-sha-bb9095a` or `3.0.1-native`',
    /^\d+\.\d+\.\d+\S*-(?:native|sha-[0-9a-f]+)/,
  ),
  prefill: true,
  echoes: false,
};
