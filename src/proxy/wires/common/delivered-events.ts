import type { JournalEvent } from '../../../checkpoint/journal.ts';
import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import type { AnswerEvent } from './wire.ts';

/** How a wire interprets its own delivered events, from a store or from a client. */
export interface DeliveredEvents<Event extends AnswerEvent = AnswerEvent> {
  /** For the events of one run, in order. */
  reader(): DeliveredReader;
  /** Whether and how this payload ends the stream. */
  endOf(payload: string): 'done' | 'error' | undefined;
  /** For wires on which a failure consists of two events: the error in this payload, if it is the first of them. */
  announcedError?(payload: string): object | undefined;
  /** Whether this payload can define an answer's identity. */
  hasIdentity(payload: string): boolean;
  /** The provider's id for this payload's answer. */
  idOf(payload: string): string | undefined;
  /** A stand-in event, for output that has no event of its own. `first`: a payload with the identity. */
  standIn(first: string): Event;
  /** Rebuilds the payloads of text that was stored without them. */
  rebuilder(): Rebuilder;
  /** Delivered parts that the provider accepts back only verbatim. */
  sealed?(sent: readonly JournalEvent[]): readonly object[];
  /** The payloads that end a stream that could not be finished. `error`: in the OpenAI format. */
  failure(error: object, sent: readonly JournalEvent[]): readonly string[];
  /** The events after the end of the answer, if any. */
  readonly done: readonly JournalEvent[];
  /** A call spans several events, and the last one closes it. Otherwise one event is a whole call. */
  readonly showsCloses?: true;
}

/** Receives all events of a run in order, through one method or the other. */
export interface Rebuilder {
  add(payload: string): void;
  /** The payload for an event stored only as deltas. */
  payloadOf(deltas: readonly Delta[]): string;
}

export interface DeliveredReader {
  /** The content of an event; `undefined` if no run can have sent it. `calls`: how many calls began before it. */
  read(payload: string, calls: number): DeliveredEvent | undefined;
}

export interface DeliveredEvent {
  /**
   * Positions identify calls. Cancellations aren't visible, and neither are closes unless the wire {@link
   * DeliveredEvents.showsCloses shows} them.
   */
  readonly deltas: readonly Delta[];
  /** The id of a call that the event announces as cancelled. */
  readonly cancelled?: string;
}

/** The text in these deltas. */
export const textOf = (deltas: readonly Delta[]): string =>
  deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');

/** The id of the call that our own object in a delivered event announces as cancelled. */
export function cancelledCallOf({ holdfast }: Readonly<Record<string, unknown>>): string | undefined {
  const isCancel = isObject(holdfast) && holdfast.type === 'ToolCallCancel';
  return isCancel && typeof holdfast.id === 'string' ? holdfast.id : undefined;
}
