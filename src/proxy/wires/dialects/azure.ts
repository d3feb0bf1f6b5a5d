import { type Dialect, PLAIN } from '../common/dialect.ts';
import { eventFingerprint } from '../common/fingerprint.ts';

/** As OpenAI. Its first event is about the prompt, and names neither answer nor model. */
export const azure: Dialect = {
  ...PLAIN,
  name: 'azure',
  about: { speakers: 'Azure OpenAI' },
  addresses: ['*.openai.azure.com', '*.cognitiveservices.azure.com', '*.services.ai.azure.com'],
  sign: eventFingerprint('`prompt_filter_results`', (event) => 'prompt_filter_results' in event),
  prefill: false,
  echoes: false,
};
