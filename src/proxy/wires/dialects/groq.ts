import { type Dialect, PLAIN } from '../common/dialect.ts';
import { eventFingerprint } from '../common/fingerprint.ts';

const REASONS = /gpt-oss|qwen|deepseek-r1|qwq/;

/** Any text-to-text model continues a trailing assistant message. */
export const groq: Dialect = {
  ...PLAIN,
  name: 'groq',
  about: {
    speakers: 'Groq',
    models: ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'],
    unverified:
      'Whether reasoning models continue: they are tried. Whether tools are still called after a prefix: with tools there is a nudge.',
  },
  addresses: ['api.groq.com'],
  sign: eventFingerprint('`x_groq`', (event) => 'x_groq' in event),
  prefill: (model) => (REASONS.test(model.toLowerCase()) ? undefined : true),
  echoes: false,
};
