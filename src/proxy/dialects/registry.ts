import { deepseek } from './deepseek.ts';
import type { Dialect, DialectName } from './dialect.ts';
import { generic } from './generic.ts';
import { mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { vllm } from './vllm.ts';

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { openai, generic, vllm, deepseek, mistral };
