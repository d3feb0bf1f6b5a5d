import type { WireRequest } from './wire.ts';

/** The parts of a chat completion request that decide how a run may be continued. */
export interface ChatRequest extends WireRequest {
  readonly messages: readonly ChatMessage[];
  readonly stream_options?: { readonly include_usage?: boolean; readonly [option: string]: unknown } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly n?: number | null;
  readonly logprobs?: boolean | null;
  readonly tools?: readonly ToolDefinition[] | null;
  readonly tool_choice?: string | object | null;
  readonly response_format?: { readonly type: string; readonly [detail: string]: unknown } | null;
}

export interface ChatMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

export interface ToolDefinition {
  readonly type?: string;
  readonly function?: {
    readonly name?: string;
    readonly parameters?: unknown;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}
