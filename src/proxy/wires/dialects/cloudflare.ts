import { type Dialect, type Fingerprint, PLAIN } from '../common/dialect.ts';
import { familyMayContinue } from './model-families.ts';

const sign: Fingerprint = {
  says: 'response headers `cf-aig-*`',
  isIn: ({ headers }) => Object.keys(headers).some((name) => name.startsWith('cf-aig-')),
};

/** The gateway, without the part of it that an upstream is: `…/v1/<account>/<gateway>/compat`. */
const gatewayOf = (base_url: string): string => base_url.replace(/(\/v1\/[^/]+\/[^/]+)\/.*$/, '$1');

/** A gateway to other providers. It reads every answer to its end, also without a client, and keeps some for a while. */
export const cloudflare: Dialect = {
  ...PLAIN,
  name: 'cloudflare',
  about: {
    speakers: 'Cloudflare AI Gateway',
    models: ['openai/gpt-5.4', 'anthropic/claude-haiku-4.5', 'groq/llama-3.3-70b-versatile'],
    unverified:
      'Whether a prefix reaches the provider behind it: models that continue elsewhere are tried. Cloudflare does not call its resuming generally available: `cf-aig-run-id` was measured through the binding of Workers only, where the address ends as here, and it was not there on other ways. Without the header nothing is tried, and where the address turns out to be another one the rest is asked for. How comments are counted: an answer that has any is not resumed. Whether an answer that nobody waits for can be stopped: it is not.',
  },
  addresses: ['gateway.ai.cloudflare.com'],
  sign,
  prefill: familyMayContinue,
  echoes: familyMayContinue,
  keeps: {
    counts: 'events',
    id: { in: 'response', header: 'cf-aig-run-id' },
    resumeUrl: (base_url, id, from) => `${gatewayOf(base_url)}/run/${id}/resume?from=${from}`,
  },
};
