import type { JournalEvent } from '../../checkpoint/journal.ts';
import type { Delta } from '../../plans/delta.ts';
import type { AnswerEvent } from './wire.ts';

/** What a wire makes of its own events, as a client was sent them: from a store, or brought by the client. */
export interface DeliveredEvents<Event extends AnswerEvent = AnswerEvent> {
  /** For the events of one run, in order. */
  reader(): DeliveredReader;
  /** Whether this payload ends the stream, and how. */
  endOf(payload: string): 'done' | 'error' | undefined;
  /** Whether this payload can give an answer its identity. */
  hasIdentity(payload: string): boolean;
  /** What the provider calls the answer that this payload is of. */
  idOf(payload: string): string | undefined;
  /** Stands for all that was sent, where something has to be said in the name of an event. `first`: has the identity. */
  standIn(first: string): Event;
  /** Makes payloads of text that was stored without. `first`: has the identity. */
  rebuilder(first: string): (deltas: readonly Delta[]) => string;
  /** The events that end an answer for this reason. */
  ending(first: string, reason: string): readonly JournalEvent[];
  /** What comes after the end of the answer. */
  readonly done: JournalEvent;
}

export interface DeliveredReader {
  /** What the event said; `undefined` for what no run can have sent. `calls`: how many calls began before it. */
  read(payload: string, calls: number): DeliveredEvent | undefined;
}

export interface DeliveredEvent {
  /** Calls are told by their positions. Closes and cancels are not seen in events. */
  readonly deltas: readonly Delta[];
  /** The id of a call that it says was cancelled. */
  readonly cancelled?: string;
}
