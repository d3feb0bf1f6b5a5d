import { type Dialect, PLAIN } from './dialect.ts';
import { eventSign } from './sign.ts';

/** As OpenAI. Its first event is about the prompt, and names neither answer nor model. */
export const azure: Dialect = {
  ...PLAIN,
  name: 'azure',
  about: { speakers: 'Azure OpenAI' },
  addresses: ['*.openai.azure.com', '*.cognitiveservices.azure.com', '*.services.ai.azure.com'],
  sign: eventSign('`prompt_filter_results`', (event) => 'prompt_filter_results' in event),
  prefill: false,
  echoes: false,
};
