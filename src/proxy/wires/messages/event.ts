import { isObject } from '../../../lib/json.ts';
import type { AnswerEvent } from '../common/wire.ts';
import { stopReasonOf } from './ending.ts';

/** An event of `/v1/messages` from a provider. Any field may be missing, and others may exist. */
export interface MessagesPayload {
  readonly type?: unknown;
  readonly index?: unknown;
  readonly message?: unknown;
  readonly content_block?: unknown;
  readonly delta?: unknown;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

/**
 * The kind of a content block. `sealed` blocks, including provider tools, can't be continued: they pass unchanged and
 * whole.
 */
export type BlockKind = 'text' | 'thinking' | 'tool' | 'sealed';

/** A content block of one attempt. */
export interface SourceBlock {
  readonly kind: BlockKind;
  /** The block's `type`. */
  readonly type: string;
  /** The run's index of a tool call. */
  readonly call?: number;
}

/** An event that is part of the answer. */
export interface MessagesEvent extends AnswerEvent {
  /** Verbatim, on one line. */
  readonly payload: string;
  readonly parsed: MessagesPayload;
  readonly type: string;
  /** The event's block. */
  readonly block?: SourceBlock;
  /** The attempt's signed reasoning so far. */
  readonly thoughts: readonly Thought[];
}

/** A block at the beginning of an answer that the provider accepts back only verbatim. */
export type Thought =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: unknown };

export function kindOf(type: string): BlockKind {
  switch (type) {
    case 'text':
    case 'thinking':
      return type;
    case 'tool_use':
      return 'tool';
    default:
      return 'sealed';
  }
}

/** Only at the beginning of a payload, where all servers put it: elsewhere it may be the type of a nested object. */
const LEADING_TYPE = /^\{\s*"type"\s*:\s*"([a-z_]+)"/;

/** The type of an event, which is also its name. Empty if it has none. */
export function typeOf(payload: string): string {
  const leading = LEADING_TYPE.exec(payload)?.[1];
  if (leading !== undefined) return leading;
  const parsed: unknown = JSON.parse(payload);
  return isObject(parsed) && typeof parsed.type === 'string' ? parsed.type : '';
}

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

export const MESSAGE_STOP = JSON.stringify({ type: 'message_stop' });

export const blockStart = (index: number, content_block: object): string =>
  JSON.stringify({ type: 'content_block_start', index, content_block });

export const blockDelta = (index: number, delta: object): string =>
  JSON.stringify({ type: 'content_block_delta', index, delta });

export const textDelta = (index: number, text: string): string =>
  blockDelta(index, { type: 'text_delta', text });

export const inputDelta = (partial_json: string) => ({ type: 'input_json_delta', partial_json });

export const blockStop = (index: number): string => JSON.stringify({ type: 'content_block_stop', index });

/** The end of a message, without its usage report. `stop_sequence`: the one that ended it, if any. */
export const messageDelta = (reason: string, stop_sequence?: string): MessagesPayload => ({
  type: 'message_delta',
  delta:
    stop_sequence === undefined
      ? { stop_reason: stopReasonOf(reason), stop_sequence: null }
      : { stop_reason: 'stop_sequence', stop_sequence },
});

/** A ping that may carry our own object, which SDKs ignore. */
export const pingPayload = (holdfast?: object): string =>
  JSON.stringify({ type: 'ping', ...(holdfast && { holdfast }) });

/** An empty block. */
export const blankBlock = (type: string): object =>
  type === 'text' ? { type, text: '' } : { type, thinking: '', signature: '' };

/** Whether {@link textDelta} can rebuild this event. */
export function isPlainText(event: MessagesPayload): boolean {
  const { delta } = event;
  return Object.keys(event).length === 3 && isObject(delta) && Object.keys(delta).length === 2;
}

const TYPES: Readonly<Record<string, string>> = {
  invalid_request_error: 'invalid_request_error',
  rate_limit_error: 'rate_limit_error',
  model_not_found: 'not_found_error',
  run_not_found: 'not_found_error',
  not_found: 'not_found_error',
  unauthorised: 'authentication_error',
  unknown_client: 'authentication_error',
  invalid_token: 'authentication_error',
  route_not_allowed: 'permission_error',
  upstream_timeout: 'timeout_error',
  context_overflow: 'invalid_request_error',
  invalid_request: 'invalid_request_error',
  content_filter: 'invalid_request_error',
  quota: 'billing_error',
};

/** An error in this wire's format. `error`: in the OpenAI format; its additional fields are kept. */
export function errorPayload(error: object): string {
  const { type, param: _, ...rest }: { type?: unknown; param?: unknown; code?: unknown } = { ...error };
  const known = TYPES[String(rest.code)] ?? TYPES[String(type)] ?? 'api_error';
  return JSON.stringify({ type: 'error', error: { type: known, ...rest } });
}
