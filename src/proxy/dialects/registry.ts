import type { DialectName } from '../../config/dialect-names.ts';
import { deepseek } from './deepseek.ts';
import type { Dialect } from './dialect.ts';
import { generic } from './generic.ts';
import { mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { vllm } from './vllm.ts';

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { openai, generic, vllm, deepseek, mistral };
