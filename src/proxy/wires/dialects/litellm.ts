import { type Dialect, type Fingerprint, PLAIN, type Prefill } from '../common/dialect.ts';
import { claudeContinues, familyMayContinue, isMistral } from './model-families.ts';

const sign: Fingerprint = {
  says: 'response headers `x-litellm-*`',
  isIn: ({ headers }) => Object.keys(headers).some((name) => name.startsWith('x-litellm-')),
};

/** It passes prefixes on to Mistral, DeepSeek and Anthropic. */
function continues(model: string): Prefill {
  if (isMistral(model) || /deepseek/i.test(model) || claudeContinues(model)) return true;
  return familyMayContinue(model);
}

function echoes(model: string): boolean | undefined {
  if (isMistral(model)) return true;
  return continues(model) === undefined ? undefined : false;
}

/** One spelling for the prefixes of several providers; models have whatever names its operator gave them. */
export const litellm: Dialect = {
  ...PLAIN,
  name: 'litellm',
  about: {
    speakers: 'LiteLLM as the upstream',
    models: ['mistral-large-latest', 'claude-sonnet-4-5', 'gpt-5', 'my-model'],
    unverified:
      'What stands behind a name that says nothing: it is tried. An answer that LiteLLM itself was cut off from may come with a `finish_reason` of its making, and then looks whole.',
  },
  sign,
  prefill: continues,
  echoes,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, prefix: true }),
};
