import { type Dialect, PLAIN } from '../common/dialect.ts';
import { familyCallsTools, familyMayContinue } from './model-families.ts';

/** Its OpenAI-compatible endpoints. */
export const bedrock: Dialect = {
  ...PLAIN,
  name: 'bedrock',
  about: {
    speakers: 'Amazon Bedrock, OpenAI-compatible endpoints',
    models: ['anthropic.claude-haiku-4-5', 'anthropic.claude-opus-4-8', 'openai.gpt-oss-120b'],
    unverified:
      'Whether these endpoints have the rule of its other ones: models are tried that continue there, or of which nothing is known.',
  },
  addresses: ['bedrock-runtime.*.amazonaws.com', 'bedrock-mantle.*.api.aws'],
  prefill: familyMayContinue,
  prefillWithTools: familyCallsTools,
  echoes: false,
};
