import { isObject } from '../../../lib/json.ts';
import { type Dialect, eventFingerprint, type Interrupted, PLAIN } from '../common/dialect.ts';
import { familyCallsTools, familyMayContinue } from './model-families.ts';

/** Names of providers as they are listed (`Google AI Studio`), in the form in which they are asked for. */
const slugOf = (provider: string): string => provider.toLowerCase().replace(/[^a-z0-9/]+/g, '-');

/**
 * The provider that began the answer is asked first, because how a prefix is taken is for the provider to say. Others
 * stay allowed: it may be down, which is why the answer was cut.
 */
function routing({ request, first }: Interrupted): Readonly<Record<string, unknown>> {
  if (typeof first.provider !== 'string' || first.provider === '') return {};
  const wanted = isObject(request.provider) ? request.provider : {};
  return { provider: { ...wanted, order: [slugOf(first.provider)] } };
}

/** Passes a trailing assistant message on: its effect depends on the model. */
export const openrouter: Dialect = {
  ...PLAIN,
  name: 'openrouter',
  about: {
    speakers: 'OpenRouter',
    models: [
      'anthropic/claude-sonnet-4.5',
      'anthropic/claude-opus-4.6',
      'google/gemini-2.5-flash',
      'openai/gpt-5',
      'meta-llama/llama-3.3-70b-instruct',
    ],
    unverified:
      'Whether the providers behind it get the message as it was sent: models that continue elsewhere are tried.',
  },
  addresses: ['openrouter.ai', '*.openrouter.ai'],
  // Other gateways name the provider, too.
  sign: eventFingerprint(
    '`provider`, and an `id` that begins with `gen-`',
    ({ provider, id }) => typeof provider === 'string' && typeof id === 'string' && id.startsWith('gen-'),
  ),
  prefill: familyMayContinue,
  prefillWithTools: familyCallsTools,
  echoes: false,
  prefillParameters: routing,
};
