import type { RunId } from '../checkpoint/store.ts';
import { tailOf } from './notices/text-tail.ts';

/** Of each part of a partial answer, an error event brings no more than the end: its client was sent all of it. */
const PART_CHARACTERS_MAX = 16_384;

/** A settled tool call. Never cut short: it is work that was done. */
export interface SettledCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** What a run that was given up had said. */
export interface PartialAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly SettledCall[];
}

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
  /** The last word on it, as the error itself says it. */
  readonly message: string;
}

/** The `holdfast` object of the error that ends a stream: everything a client needs to save what there is. */
export function failureDetails(failed: FailedRun, partial: PartialAnswer): object {
  const { run, created_at_ms, stream_id, attempts, cause, retryable, message } = failed;
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
    terminal_message: message,
    partial: true,
    partial_chars: partial.text.length + partial.refusal.length,
    partial_text: text,
    partial_text_truncated: said.length > PART_CHARACTERS_MAX,
    parts: partsOf(partial),
    tool_calls: partial.calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json })),
  };
}

function partsOf({ reasoning, text, refusal, calls }: PartialAnswer): readonly object[] {
  const said = Object.entries({ reasoning, text, refusal }).filter(([, whole]) => whole !== '');
  return [
    ...said.map(([type, whole]) => ({
      type,
      text: tailOf(whole, PART_CHARACTERS_MAX),
      ...(whole.length > PART_CHARACTERS_MAX && { truncated: true }),
    })),
    ...calls.map(({ id, name, arguments: json }) => ({ type: 'tool_call', id, name, arguments: json })),
  ];
}
