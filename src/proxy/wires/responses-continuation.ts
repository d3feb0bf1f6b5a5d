import { nudgeText } from '../../plans/continuation.ts';
import type { Continuation, ContinuationFacts } from './continuation.ts';
import { itemsOf, type ResponsesRequest } from './responses-request.ts';

/** Providers refuse a lower limit. */
const MAX_OUTPUT_TOKENS_MIN = 16;

/**
 * The request that asks for the rest of the answer: the partial answer and a turn of the user's after the input. What
 * the conversation hangs on (`previous_response_id`, `conversation`, `store`) stays as it came.
 */
export function responsesContinuationOf({
  request,
  mode,
  prefix,
  cutTools,
  tokens_left,
}: ContinuationFacts<ResponsesRequest>): Continuation<ResponsesRequest> {
  if (mode !== 'nudge') return { body: request, added_messages: [] };
  const hasTools = Array.isArray(request.tools) && request.tools.length > 0;
  const nudge = nudgeText({ prefix: prefix.sent, hasTools, cutTools });
  const input = [
    ...itemsOf(request),
    { type: 'message', role: 'assistant', content: prefix.sent },
    { type: 'message', role: 'user', content: nudge },
  ];
  return {
    body: { ...request, ...limits(request, tokens_left), input },
    added_messages: [prefix.sent.length, nudge.length],
  };
}

/** The client's limit counts the whole answer. */
function limits(request: ResponsesRequest, tokens_left: number): Partial<ResponsesRequest> {
  if (typeof request.max_output_tokens !== 'number') return {};
  return { max_output_tokens: Math.max(MAX_OUTPUT_TOKENS_MIN, tokens_left) };
}
