import type { Fields } from '../../../lib/json-body.ts';
import type { ToolSchemas } from '../../../plans/tool-proof.ts';
import type { ChatRequest } from '../common/chat-request.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  checkMessages,
  checkModel,
  checkStop,
  checkStreamOptions,
  checkTools,
} from '../common/request-checks.ts';
import { constraintsOf, type RequestFacts } from '../common/request-facts.ts';

/** What a run relies on; everything else is left to the provider to judge. */
export function checkChatRequest(fields: Fields): ChatRequest {
  checkModel(fields);
  checkMessages(fields);
  checkStreamOptions(fields);
  checkTools(fields);
  checkStop(fields);
  return fields as unknown as ChatRequest;
}

/** Fields are looked at with care: what is wrong with them is for the provider to say. */
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
