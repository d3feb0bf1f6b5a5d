import type { Fields } from '../../../lib/json-body.ts';
import { nudgeText } from '../../../plans/continuation.ts';
import type { ToolSchemas } from '../../../plans/tool-call.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  type ChatMessage,
  type ChatRequest,
  type Continuation,
  type ContinuationFacts,
  checkMessages,
  checkModel,
  checkStop,
  checkStreamOptions,
  checkTools,
  constraintsOf,
  type RequestFacts,
} from '../common/request.ts';

/** Validates only what a run relies on; the provider validates the rest. Throws `ApiError`. */
export function checkChatRequest(fields: Fields): ChatRequest {
  checkModel(fields);
  checkMessages(fields);
  checkStreamOptions(fields);
  checkTools(fields);
  checkStop(fields);
  return fields as unknown as ChatRequest;
}

/** Reads unvalidated fields defensively. */
export function factsOf(request: ChatRequest): RequestFacts {
  const { tool_choice, stop, max_tokens, max_completion_tokens } = request;
  const { expectsJson, isGuided } = constraintsOf(request);
  const forcesTool = tool_choice === 'required' || (typeof tool_choice === 'object' && tool_choice !== null);
  const choices = typeof request.n === 'number' ? request.n : 1;
  return {
    schemas: schemasOf(request),
    hasTools: Array.isArray(request.tools) && request.tools.length > 0,
    choices,
    spliceable: choices === 1 && !request.logprobs && !hasAudio(request),
    onlyReplay: isGuided || forcesTool,
    expectsJson,
    stops: [stop].flat().filter((sequence) => typeof sequence === 'string'),
    max_tokens: [max_completion_tokens, max_tokens].find((limit) => typeof limit === 'number') ?? Infinity,
    usageAsked: request.stream_options?.include_usage === true,
    legacyFunctions: Array.isArray(request.functions),
    promptSize: () => promptSize(request.messages, request.tools, request.functions, request.response_format),
  };
}

function schemasOf(request: ChatRequest): ToolSchemas {
  const schemas = new Map<string, unknown>();
  for (const tool of Array.isArray(request.tools) ? request.tools : []) {
    if (tool?.function?.name) schemas.set(tool.function.name, tool.function.parameters ?? {});
  }
  return schemas;
}

const hasAudio = ({ modalities }: ChatRequest): boolean =>
  Array.isArray(modalities) && modalities.includes('audio');

/** The request for the rest of the answer. It only appends messages, which preserves the provider's prompt cache. */
export function continuationOf(facts: ContinuationFacts<ChatRequest>): Continuation<ChatRequest> {
  const { request, dialect, first, mode, prefix, reasoning, cutTools, insists, tokens_left } = facts;
  if (mode === 'replay' || mode === 'restart') return { body: request, added_messages: [] };

  const partial = { text: prefix.sent, reasoning };
  if (mode === 'prefill') {
    const message = dialect.assistantMessage(partial);
    // A format applies to the generated part, which is only the rest: providers refuse the combination with a prefix,
    // or restart the answer.
    const { response_format: _, ...free } = request;
    return {
      body: {
        ...free,
        ...limits(request, tokens_left),
        ...dialect.prefillParameters({ request, first }),
        messages: withAssistant(request.messages, message),
      },
      added_messages: [prefix.sent.length],
      added_reasoning: reasoningIn(message),
    };
  }
  const hasTools = (request.tools?.length ?? 0) > 0;
  const nudge = nudgeText({ delivered: prefix.sent, hasTools, cutTools, insists });
  const messages = [
    ...withAssistant(request.messages, { role: 'assistant', content: prefix.sent }),
    { role: 'user', content: nudge },
  ];
  return {
    body: {
      ...request,
      ...limits(request, tokens_left),
      ...dialect.nudgeParameters?.({ request, first }),
      messages,
    },
    added_messages: [prefix.sent.length, nudge.length],
  };
}

/** Length of the reasoning that a dialect sends back next to the text. */
const reasoningIn = ({ role: _, content: __, ...fields }: ChatMessage): number =>
  Object.values(fields).reduce<number>(
    (sum, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  );

/**
 * Merges a client's own prefill with our partial answer, because strict chat templates refuse two assistant messages in
 * a row.
 */
function withAssistant(messages: readonly ChatMessage[], partial: ChatMessage): ChatMessage[] {
  const last = messages.at(-1);
  const isPrefill =
    last?.role === 'assistant' && typeof last.content === 'string' && last.tool_calls === undefined;
  if (!isPrefill) return [...messages, partial];
  return [...messages.slice(0, -1), { ...last, ...partial, content: `${last.content}${partial.content}` }];
}

/** The client's limit applies to the whole answer. */
function limits(request: ChatRequest, tokens_left: number): Partial<ChatRequest> {
  const left = Math.max(1, tokens_left);
  return {
    ...(typeof request.max_tokens === 'number' && { max_tokens: left }),
    ...(typeof request.max_completion_tokens === 'number' && { max_completion_tokens: left }),
  };
}
