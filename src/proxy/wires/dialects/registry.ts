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

/** An unknown server. Whether it continues a trailing assistant message is tried once and remembered. */
const generic: Dialect = { ...PLAIN, name: 'generic', about: { speakers: 'anything else' } };

/**
 * All dialects by configuration name; `scripts/generate-reference.mjs` adds new ones to the configuration. The order is
 * that of matching signs: gateways also show the signs of the servers behind them, and others imitate OpenAI's.
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

/** The dialect for this address; `undefined` if unknown. */
export function dialectAt(base_url: string): Dialect | undefined {
  const { hostname = '', host = '' } = URL.parse(base_url) ?? {};
  return ADDRESSES.find(({ hasPort, pattern }) => pattern.matches(hasPort ? host : hostname))?.dialect;
}

/** The dialect that these samples identify; `undefined` if none. */
export const dialectBehind = (traces: Samples): Dialect | undefined =>
  SIGNED.find(({ sign }) => sign?.isIn(traces));
