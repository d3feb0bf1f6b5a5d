import type { RunId } from '../../checkpoint/store.ts';
import { tailOf } from '../../lib/text-tail.ts';
import { type PartialAnswer, partsOf } from '../wires/common/answer-parts.ts';

/** Of each part of a partial answer, an error event brings no more than the end: its client was sent all of it. */
const PART_CHARACTERS_MAX = 16_384;

export interface FailedRun {
  readonly run: RunId;
  /** `undefined` when its journal has lost that. */
  readonly created_at_ms: number | undefined;
  /** The `id` of the chunks that its client was sent. */
  readonly stream_id: string | undefined;
  /** Upstream requests made for it, where that is known. */
  readonly attempts?: number;
  readonly cause: string;
  readonly retryable: boolean;
  /** How long the provider asked to wait before it is asked again. */
  readonly retry_after_ms?: number | undefined;
  /** The last word on it, as the error itself says it. */
  readonly message: string;
}

/** The `holdfast` object of the error that ends a stream: everything a client needs to save what there is. */
export function failureDetails(failed: FailedRun, partial: PartialAnswer): object {
  const { run, created_at_ms, stream_id, attempts, cause, retryable, retry_after_ms, message } = failed;
  const said = partial.text || partial.refusal;
  const text = tailOf(said, PART_CHARACTERS_MAX);
  return {
    run_id: run,
    root_request_id: run,
    stream_id: stream_id ?? null,
    created_at: created_at_ms === undefined ? null : Math.floor(created_at_ms / 1000),
    cause,
    ...(attempts !== undefined && { attempts }),
    retryable,
    ...(retry_after_ms !== undefined && { retry_after_ms: Math.ceil(retry_after_ms) }),
    terminal_message: message,
    partial: true,
    partial_chars: partial.text.length + partial.refusal.length,
    partial_text: text,
    partial_text_truncated: said.length > PART_CHARACTERS_MAX,
    parts: partsOf(partial, PART_CHARACTERS_MAX),
    tool_calls: partial.calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
  };
}
