import { nudgeAfterTools } from '../../../plans/continuation.ts';
import type { AnswerGivenBack } from '../../../plans/provider-tools.ts';
import {
  type Continuation,
  type ContinuationFacts,
  givenBackCharacters,
  NOTHING_RAN,
} from '../common/continuation.ts';
import { secretOf } from './items.ts';
import { forcesTool, itemsOf, type ResponsesRequest } from './request.ts';

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
  ran = NOTHING_RAN,
  sealed,
  cutTools,
  insists,
  tokens_left,
}: ContinuationFacts<ResponsesRequest>): Continuation<ResponsesRequest> {
  if (mode !== 'nudge') return { body: request, added_messages: [] };
  const hasTools = Array.isArray(request.tools) && request.tools.length > 0;
  const nudge = nudgeAfterTools(ran.names, { delivered: prefix.sent, hasTools, cutTools, insists });
  const thoughts = keepsThoughts(request) ? withoutThose(sealed, ran.before) : [];
  const said = [
    ...thoughts,
    ...ran.before.flatMap((part) => (typeof part === 'string' ? [messageOf('assistant', part)] : part)),
    ...(prefix.sent === '' ? [] : [messageOf('assistant', prefix.sent)]),
  ];
  return {
    body: {
      ...request,
      ...limits(request, tokens_left),
      ...choiceAfter(ran.names, request),
      input: [...itemsOf(request), ...said, messageOf('user', nudge)],
    },
    added_messages: [...givenBackCharacters({ ran, prefix }), nudge.length],
    added_reasoning: charactersOf(thoughts),
  };
}

/**
 * Thoughts go back, encrypted, where the client itself would send them: a provider that keeps answers looks them up under
 * their ids, and has none of an answer that was cut.
 */
const keepsThoughts = ({ store }: ResponsesRequest): boolean => store === false;

/** Those that a tool of the provider rests on go with it. */
function withoutThose(sealed: readonly object[], before: AnswerGivenBack['before']): readonly object[] {
  const given = new Set(before.flatMap((part) => (typeof part === 'string' ? [] : part.map(idOf))));
  return sealed.filter((item) => !given.has(idOf(item)));
}

const idOf = (item: object): unknown => ('id' in item ? item.id : item);

/** Of what they are encrypted from, which base64 makes a third longer. */
const charactersOf = (thoughts: readonly object[]): number =>
  thoughts.reduce((sum, item) => sum + Math.ceil(0.75 * secretOf(item).length), 0);

const messageOf = (role: 'assistant' | 'user', content: string) => ({ type: 'message', role, content });

/** A choice that forces a tool is satisfied by one that ran: asked for again, it would run again. */
const choiceAfter = (ran: readonly string[], { tool_choice }: ResponsesRequest): object =>
  ran.length > 0 && forcesTool(tool_choice) ? { tool_choice: 'auto' } : {};

/** The client's limit counts the whole answer. */
function limits(request: ResponsesRequest, tokens_left: number): Partial<ResponsesRequest> {
  if (typeof request.max_output_tokens !== 'number') return {};
  return { max_output_tokens: Math.max(MAX_OUTPUT_TOKENS_MIN, tokens_left) };
}
