import type { JournalEvent } from '../../../checkpoint/journal.ts';
import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import type { AnswerEvent } from './wire.ts';

/** What a wire makes of its own events, as a client was sent them: from a store, or brought by the client. */
export interface DeliveredEvents<Event extends AnswerEvent = AnswerEvent> {
  /** For the events of one run, in order. */
  reader(): DeliveredReader;
  /** Whether this payload ends the stream, and how. */
  endOf(payload: string): 'done' | 'error' | undefined;
  /** Where a failure is two events: the error of the first one, which announces it, if this payload is that event. */
  announcedError?(payload: string): object | undefined;
  /** Whether this payload can give an answer its identity. */
  hasIdentity(payload: string): boolean;
  /** What the provider calls the answer that this payload is of. */
  idOf(payload: string): string | undefined;
  /** Stands for all that was sent, where something has to be said in the name of an event. `first`: has the identity. */
  standIn(first: string): Event;
  /** Makes payloads of text that was stored without. */
  rebuilder(): Rebuilder;
  /** Parts of what was sent that a provider takes back only as they were. */
  sealed?(sent: readonly JournalEvent[]): readonly object[];
  /** The payloads that end a stream which could not be finished. `error`: in the OpenAI shape. */
  failure(error: object, sent: readonly JournalEvent[]): readonly string[];
  /** What comes after the end of the answer, if anything. */
  readonly done: readonly JournalEvent[];
  /** A call is several events, of which the last one closes it; else one event is a whole call. */
  readonly showsCloses?: true;
}

/** Takes all events of a run in order: those that were stored with their payloads, and the others. */
export interface Rebuilder {
  add(payload: string): void;
  /** The payload of an event of which only the deltas were stored. */
  payloadOf(deltas: readonly Delta[]): string;
}

export interface DeliveredReader {
  /** What the event said; `undefined` for what no run can have sent. `calls`: how many calls began before it. */
  read(payload: string, calls: number): DeliveredEvent | undefined;
}

export interface DeliveredEvent {
  /** Positions identify calls. Events do not show cancels, nor closes unless the wire {@link DeliveredEvents.showsCloses shows} them. */
  readonly deltas: readonly Delta[];
  /** The id of a call that it says was cancelled. */
  readonly cancelled?: string;
}

/** What of the text of an answer they are. */
export const textOf = (deltas: readonly Delta[]): string =>
  deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');

/** The id of the call that an event as it was delivered says was cancelled, in our own object in it. */
export function cancelledCallOf({ holdfast }: Readonly<Record<string, unknown>>): string | undefined {
  const isCancel = isObject(holdfast) && holdfast.type === 'ToolCallCancel';
  return isCancel && typeof holdfast.id === 'string' ? holdfast.id : undefined;
}
