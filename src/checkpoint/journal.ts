import type { Delta } from '../plans/delta.ts';

/**
 * One `data:` event as it was delivered. `deltas` is what it said (empty for advisory events and `[DONE]`);
 * `payload` is kept, byte for byte, for every event whose payload cannot be rebuilt from the envelope and its
 * deltas alone.
 */
export interface JournalEvent {
  readonly deltas: readonly Delta[];
  readonly payload?: string;
}

/** Losing such an event would mean doing work twice: it is stored without delay. */
export const settles = ({ deltas }: JournalEvent): boolean =>
  deltas.some(({ kind }) => kind === 'tool_close' || kind === 'choice_call' || kind === 'finish');

/** What an event weighs besides its text. */
const OVERHEAD_UNITS = 64;

/** What an event weighs in memory, roughly, in UTF-16 units. */
export function unitsOf({ deltas, payload = '' }: JournalEvent): number {
  let units = OVERHEAD_UNITS + payload.length;
  for (const delta of deltas) {
    if ('text' in delta) units += delta.text.length;
    else if (delta.kind === 'choice_call') units += delta.arguments.length;
  }
  return units;
}

/**
 * A batch of consecutive events. `seq` is the ordinal of its last event, 1-based: the client's cursor after it.
 * The first record of a run has `seq` 0, no events, and the run's `header`.
 */
export interface JournalRecord {
  readonly seq: number;
  /** When it was handed to the store; unknown of what older versions have stored. */
  readonly at_ms?: number;
  readonly header?: RunHeader;
  readonly events: readonly JournalEvent[];
}

/** The API surface a run is delivered on. */
export type WireName = 'chat_completions' | 'completions' | 'messages' | 'responses';

/** `number`: from 1 on. */
export interface StepOfTask {
  readonly task: string;
  readonly number: number;
  /** What the client calls it. */
  readonly name?: string;
  /** The task that this one is a part of, as the client calls it. */
  readonly parent?: string;
}

/** What a replay, and a replica that takes the run over, need besides the events. */
export interface RunHeader {
  readonly wire: WireName;
  readonly created_at_ms: number;
  /** As the client asked for it. */
  readonly model: string;
  /** The configured name of the upstream that the run was sent to. */
  readonly upstream: string;
  /** The `Holdfast-Events` mode, or `live`, which decides what the events look like. */
  readonly events: 'none' | 'live' | 'chunks' | 'comments';
  /** `Holdfast-Thread` of the request. */
  readonly thread?: string;
  /** Which step of which task it answers. */
  readonly step?: StepOfTask;
  /** The run whose answer this one continues: what that run had delivered is its beginning. */
  readonly continues?: string;
  /** Tells the request from others, where it is not kept, too. */
  readonly digest?: string;
  /** The request body as it came. Kept only for a run that its client asked to be resumable (`Holdfast-Resume: 1`). */
  readonly body?: string;
}
