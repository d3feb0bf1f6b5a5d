import { type Dialect, eventFingerprint, PLAIN } from '../common/dialect.ts';

/** Accepts a trailing assistant message, but starts the answer anew. */
export const openai: Dialect = {
  ...PLAIN,
  name: 'openai',
  about: { speakers: 'OpenAI' },
  addresses: ['api.openai.com', '*.api.openai.com'],
  sign: eventFingerprint('`obfuscation`', (event) => typeof event.obfuscation === 'string'),
  prefill: false,
  echoes: false,
  limit: 'max_completion_tokens',
  refusesAddedFields: true,
};

/** The same models. Its first event is about the prompt, and names neither answer nor model. */
export const azure: Dialect = {
  ...openai,
  name: 'azure',
  about: { speakers: 'Azure OpenAI' },
  addresses: ['*.openai.azure.com', '*.cognitiveservices.azure.com', '*.services.ai.azure.com'],
  sign: eventFingerprint('`prompt_filter_results`', (event) => 'prompt_filter_results' in event),
};

/** Its models are asked by a nudge, as those of OpenAI. */
export const xai: Dialect = {
  ...PLAIN,
  name: 'xai',
  about: { speakers: 'xAI', unverified: 'Whether any model continues: there is always a nudge.' },
  addresses: ['api.x.ai', '*.api.x.ai'],
  prefill: false,
  echoes: false,
};
