import type { DialectName } from '../../../config/dialect-names.ts';
import type { Dialect } from '../common/dialect.ts';
import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { cerebras } from './cerebras.ts';
import { cloudflare } from './cloudflare.ts';
import { deepinfra } from './deepinfra.ts';
import { deepseek } from './deepseek.ts';
import { fireworks } from './fireworks.ts';
import { gemini } from './gemini.ts';
import { generic } from './generic.ts';
import { groq } from './groq.ts';
import { kimi } from './kimi.ts';
import { litellm } from './litellm.ts';
import { llamacpp } from './llamacpp.ts';
import { lmstudio } from './lmstudio.ts';
import { mistral } from './mistral.ts';
import { ollama } from './ollama.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { qwen } from './qwen.ts';
import { sglang } from './sglang.ts';
import { tgi } from './tgi.ts';
import { together } from './together.ts';
import { vllm } from './vllm.ts';
import { xai } from './xai.ts';

/**
 * Every dialect, by the name it has in the configuration; `scripts/generate-reference.mjs` tells the configuration of a
 * new one. The order is that in which signs are looked for: a gateway shows those of whom it stands in front of, too,
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
