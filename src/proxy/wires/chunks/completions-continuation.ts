import type { Continuation, ContinuationFacts } from '../common/continuation.ts';
import type { CompletionRequest } from './completions-request.ts';

/** The prompt with the answer so far at its end: going on with that is what the wire is for. */
export function completionContinuationOf({
  request,
  mode,
  prefix,
  tokens_left,
}: ContinuationFacts<CompletionRequest>): Continuation<CompletionRequest> {
  if (mode !== 'prefill') return { body: request, added_messages: [] };
  return {
    body: {
      ...request,
      ...(typeof request.max_tokens === 'number' && { max_tokens: Math.max(1, tokens_left) }),
      prompt: `${request.prompt}${prefix.sent}`,
      echo: false,
    },
    added_messages: [prefix.sent.length],
  };
}
