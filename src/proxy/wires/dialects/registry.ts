import type { DialectName } from '../../../config/dialect-names.ts';
import { ModelPattern } from '../../../config/model-pattern.ts';
import { type Dialect, PLAIN, type Samples } from '../common/dialect.ts';
import { cloudflare, litellm, openrouter } from './gateways.ts';
import { llamacpp, lmstudio, ollama, sglang, tgi, vllm } from './local-servers.ts';
import {
  anthropic,
  azure,
  bedrock,
  cerebras,
  deepinfra,
  deepseek,
  fireworks,
  gemini,
  groq,
  kimi,
  mistral,
  openai,
  qwen,
  together,
  xai,
} from './model-hosts.ts';

/** An unknown server: whether it continues a trailing assistant message is tried once and remembered. */
const generic: Dialect = { ...PLAIN, name: 'generic', about: { speakers: 'anything else' } };

/**
 * Every dialect, by the name it has in the configuration; `scripts/generate-reference.mjs` makes the configuration know a
 * new one. The order is that in which signs are looked for: a gateway also shows the signs of the servers behind it,
 * and OpenAI's are what others imitate.
 */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  litellm,
  cloudflare,
  openrouter,
  azure,
  groq,
  ollama,
  llamacpp,
  tgi,
  sglang,
  vllm,
  openai,
  anthropic,
  gemini,
  mistral,
  deepseek,
  kimi,
  qwen,
  xai,
  fireworks,
  together,
  cerebras,
  deepinfra,
  bedrock,
  lmstudio,
  generic,
};

const ADDRESSES = Object.values(DIALECTS).flatMap((dialect) =>
  dialect.addresses.map((address) => ({
    dialect,
    hasPort: address.includes(':'),
    pattern: new ModelPattern(address),
  })),
);

const SIGNED = Object.values(DIALECTS).filter(({ sign }) => sign !== undefined);

/** The dialect of this address; `undefined` where it says nothing. */
export function dialectAt(base_url: string): Dialect | undefined {
  const { hostname = '', host = '' } = URL.parse(base_url) ?? {};
  return ADDRESSES.find(({ hasPort, pattern }) => pattern.matches(hasPort ? host : hostname))?.dialect;
}

/** The dialect that leaves such traces; `undefined` where they say nothing. */
export const dialectBehind = (traces: Samples): Dialect | undefined =>
  SIGNED.find(({ sign }) => sign?.isIn(traces));
