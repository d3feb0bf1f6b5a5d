import type { Delta } from '../plans/delta.ts';

/**
 * One delivered `data:` event. `deltas` is its content (empty for advisory events and `[DONE]`). `payload` preserves
 * the exact bytes if they can't be rebuilt from the envelope and the deltas.
 */
export interface JournalEvent {
  readonly deltas: readonly Delta[];
  readonly payload?: string;
}

/** Whether the event must be stored without delay, because losing it would repeat work. */
export const settles = ({ deltas }: JournalEvent): boolean =>
  deltas.some(({ kind }) => kind === 'tool_close' || kind === 'choice_call' || kind === 'finish');

/** Weight of an event besides its text. */
const OVERHEAD_UNITS = 64;

/** Approximate memory of an event in UTF-16 units. */
export function unitsOf({ deltas, payload = '' }: JournalEvent): number {
  let units = OVERHEAD_UNITS + payload.length;
  for (const delta of deltas) {
    if ('text' in delta) units += delta.text.length;
    else if (delta.kind === 'choice_call') units += delta.arguments.length;
  }
  return units;
}

/**
 * A batch of consecutive events. `seq` is the 1-based ordinal of its last event: the client's cursor after it. A run's
 * first record has `seq` 0, no events, and the run's `header`.
 */
export interface JournalRecord {
  readonly seq: number;
  /** When it was handed to the store; absent in records of older versions. */
  readonly at_ms?: number;
  readonly header?: RunHeader;
  readonly events: readonly JournalEvent[];
}

/** The API surface on which a run is delivered. */
export type WireName = 'chat_completions' | 'completions' | 'messages' | 'responses';

/** `number`: from 1. */
export interface StepOfTask {
  readonly task: string;
  readonly number: number;
  /** The client's name for the step. */
  readonly name?: string;
  /** The client's name for the parent task. */
  readonly parent?: string;
}

/** What a replay or a takeover needs besides the events. */
export interface RunHeader {
  readonly wire: WireName;
  readonly created_at_ms: number;
  /** The model that the client requested. */
  readonly model: string;
  /** The configured name of the upstream that received the run. */
  readonly upstream: string;
  /** The `Holdfast-Events` mode or `live`, which determines the form of the events. */
  readonly events: 'none' | 'live' | 'chunks' | 'comments';
  /** `Holdfast-Thread` of the request. */
  readonly thread?: string;
  /** The task step that this run answers. */
  readonly step?: StepOfTask;
  /** The run whose answer this one continues. The other run's delivered content is this answer's beginning. */
  readonly continues?: string;
  /** Identifies the request, even if the body isn't kept. */
  readonly digest?: string;
  /** The exact request body. Kept only if the client asked for a resumable run (`Holdfast-Resume: 1`). */
  readonly body?: string;
}
