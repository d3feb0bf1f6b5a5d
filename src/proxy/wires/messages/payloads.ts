import { isObject } from '../../../lib/json.ts';
import type { MessagesPayload } from './event.ts';
import { stopReasonOf } from './reasons.ts';

export const MESSAGE_STOP = JSON.stringify({ type: 'message_stop' });

export const blockStart = (index: number, content_block: object): string =>
  JSON.stringify({ type: 'content_block_start', index, content_block });

export const blockDelta = (index: number, delta: object): string =>
  JSON.stringify({ type: 'content_block_delta', index, delta });

export const textDelta = (index: number, text: string): string =>
  blockDelta(index, { type: 'text_delta', text });

export const inputDelta = (partial_json: string) => ({ type: 'input_json_delta', partial_json });

export const blockStop = (index: number): string => JSON.stringify({ type: 'content_block_stop', index });

/** The end of a message, but for its report. `stop_sequence`: what ended it, if one did. */
export const messageDelta = (reason: string, stop_sequence?: string): MessagesPayload => ({
  type: 'message_delta',
  delta:
    stop_sequence === undefined
      ? { stop_reason: stopReasonOf(reason), stop_sequence: null }
      : { stop_reason: 'stop_sequence', stop_sequence },
});

/** With our own object, if any, which no SDK looks at there. */
export const pingPayload = (holdfast?: object): string =>
  JSON.stringify({ type: 'ping', ...(holdfast && { holdfast }) });

/** How a block begins of which nothing was said yet. */
export const blankBlock = (type: string): object =>
  type === 'text' ? { type, text: '' } : { type, thinking: '', signature: '' };

/** {@link textDelta} says all that this event does. */
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
  upstream_timeout: 'timeout_error',
  context_overflow: 'invalid_request_error',
  invalid_request: 'invalid_request_error',
  content_filter: 'invalid_request_error',
  quota: 'billing_error',
};

/** An error as this wire has it. `error`: in the OpenAI shape; what that has besides is kept. */
export function errorPayload(error: object): string {
  const { type, param: _, ...rest }: { type?: unknown; param?: unknown; code?: unknown } = { ...error };
  const known = TYPES[String(rest.code)] ?? TYPES[String(type)] ?? 'api_error';
  return JSON.stringify({ type: 'error', error: { type: known, ...rest } });
}
