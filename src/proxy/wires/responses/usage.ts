import { isObject } from '../../../lib/json.ts';
import type { Usage } from '../../../plans/delta.ts';

/** The report of a response in the words of a delta; its details stay under their own names. */
export function usageIn(usage: unknown): Usage | undefined {
  if (!isObject(usage) || typeof usage.output_tokens !== 'number') return undefined;
  const { input_tokens, output_tokens, total_tokens, ...details } = usage;
  const prompt_tokens = typeof input_tokens === 'number' ? input_tokens : 0;
  return {
    ...details,
    prompt_tokens,
    completion_tokens: output_tokens,
    total_tokens: typeof total_tokens === 'number' ? total_tokens : prompt_tokens + output_tokens,
  };
}

/** The same as clients read it, who rely on the details. */
export function responsesUsage(usage: Usage): object {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = usage;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    ...details,
    total_tokens,
  };
}
