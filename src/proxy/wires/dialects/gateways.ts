import { isObject } from '../../../lib/json.ts';
import {
  type Dialect,
  eventFingerprint,
  type Fingerprint,
  type Interrupted,
  PLAIN,
  type Prefill,
} from '../common/dialect.ts';
import { claudeContinues, familyCallsTools, familyMayContinue, isMistral } from './model-families.ts';

/** Matches on response headers with this prefix. */
const headerFingerprint = (prefix: string): Fingerprint => ({
  says: `response headers \`${prefix}*\``,
  isIn: ({ headers }) => Object.keys(headers).some((name) => name.startsWith(prefix)),
});

/** The gateway's base URL, without the part for an upstream: `…/v1/<account>/<gateway>/compat`. */
const gatewayOf = (base_url: string): string => base_url.replace(/(\/v1\/[^/]+\/[^/]+)\/.*$/, '$1');

/** A gateway that reads every answer to its end, even without a client, and stores some for a while. */
export const cloudflare: Dialect = {
  ...PLAIN,
  name: 'cloudflare',
  about: {
    speakers: 'Cloudflare AI Gateway',
    models: ['openai/gpt-5.4', 'anthropic/claude-haiku-4.5', 'groq/llama-3.3-70b-versatile'],
    unverified:
      'Whether a prefix reaches the provider behind it: models that continue elsewhere are tried. Cloudflare does not call its resuming generally available: `cf-aig-run-id` was measured through the binding of Workers only, where the address ends as here, and it was not there on other ways. Without the header nothing is tried, and where the address turns out to be another one the rest is asked for. How comments are counted: an answer that has any is not resumed. Whether an answer without a client can be stopped: it is not.',
  },
  addresses: ['gateway.ai.cloudflare.com'],
  sign: headerFingerprint('cf-aig-'),
  prefill: familyMayContinue,
  echoes: familyMayContinue,
  keeps: {
    counts: 'events',
    id: { in: 'response', header: 'cf-aig-run-id' },
    resumeUrl: (base_url, id, from) => `${gatewayOf(base_url)}/run/${id}/resume?from=${from}`,
  },
};

/** It forwards prefixes to Mistral, DeepSeek and Anthropic. */
function continues(model: string): Prefill {
  if (isMistral(model) || /deepseek/i.test(model) || claudeContinues(model)) return true;
  return familyMayContinue(model);
}

function echoes(model: string): boolean | undefined {
  if (isMistral(model)) return true;
  return continues(model) === undefined ? undefined : false;
}

/** One syntax for the prefixes of several providers. Operators choose the model names. */
export const litellm: Dialect = {
  ...PLAIN,
  name: 'litellm',
  about: {
    speakers: 'LiteLLM as the upstream',
    models: ['mistral-large-latest', 'claude-sonnet-4-5', 'gpt-5', 'my-model'],
    unverified:
      'What stands behind a name that says nothing: it is tried. An answer that LiteLLM itself was cut off from may come with a `finish_reason` of its making, and then looks whole.',
  },
  sign: headerFingerprint('x-litellm-'),
  prefill: continues,
  echoes,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, prefix: true }),
};

/** Converts a provider's display name (`Google AI Studio`) to the form used in requests. */
const slugOf = (provider: string): string => provider.toLowerCase().replace(/[^a-z0-9/]+/g, '-');

/**
 * Prefers the provider that began the answer, because its treatment of a prefix is known. Others stay allowed, because
 * that provider may be down.
 */
function routing({ request, first }: Interrupted): Readonly<Record<string, unknown>> {
  if (typeof first.provider !== 'string' || first.provider === '') return {};
  const wanted = isObject(request.provider) ? request.provider : {};
  return { provider: { ...wanted, order: [slugOf(first.provider)] } };
}

/** Forwards a trailing assistant message; its effect depends on the model. */
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
  // Both are required, because other gateways also name the provider.
  sign: eventFingerprint(
    '`provider`, and an `id` that begins with `gen-`',
    ({ provider, id }) => typeof provider === 'string' && typeof id === 'string' && id.startsWith('gen-'),
  ),
  prefill: familyMayContinue,
  prefillWithTools: familyCallsTools,
  echoes: false,
  prefillParameters: routing,
};
