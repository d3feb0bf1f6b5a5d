import { isObject } from '../../../lib/json.ts';

/** A chat completion chunk as providers send it; every field may be missing and more may be there. */
export interface ChatChunk {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  usage?: unknown;
  error?: unknown;
  [field: string]: unknown;
}

export interface ChatChoice {
  index?: unknown;
  delta?: ChatDelta | null;
  finish_reason?: unknown;
  logprobs?: unknown;
  [field: string]: unknown;
}

export interface ChatDelta {
  role?: unknown;
  content?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  [field: string]: unknown;
}

export interface ChatToolCall {
  index?: unknown;
  id?: unknown;
  type?: unknown;
  function?: { name?: unknown; arguments?: unknown; [field: string]: unknown } | null;
  [field: string]: unknown;
}

/** `delta` of a chunk's first choice. */
export function deltaOf({ choices }: ChatChunk): ChatDelta | undefined {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && isObject(choice.delta) ? choice.delta : undefined;
}
