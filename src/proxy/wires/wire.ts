import type { EventSourceMessage } from 'eventsource-parser';
import type { WireName } from '../../checkpoint/journal.ts';
import type { ProviderError } from '../../interrupts/provider-error.ts';
import type { Delta, Usage } from '../../plans/delta.ts';
import type { ToolCall } from '../../plans/transcript.ts';
import type { Advisory } from '../advisory.ts';
import type { EventsMode } from '../run.ts';
import type { ChatFacts } from './chat-facts.ts';
import type { DeliveredEvents } from './delivered-events.ts';

/** An API surface: how its streams are read and written. */
export interface Wire<Event extends AnswerEvent = AnswerEvent> {
  readonly name: WireName;
  /** Below `/v1`, and below the base URL of an upstream. */
  readonly path: `/${string}`;
  /** For the events of one attempt. `nextCall` hands out the run's numbers for tool calls. */
  reader(nextCall: () => number): WireReader<Event>;
  /** For the answer of one run. */
  writer(options: AnswerWriterOptions): AnswerWriter<Event>;
  readonly delivered: DeliveredEvents<Event>;
}

export interface WireReader<Event extends AnswerEvent = AnswerEvent> {
  read(event: EventSourceMessage): WireEvent<Event>;
}

/** What one event of a provider's stream turned out to be. */
export type WireEvent<Answer extends AnswerEvent = AnswerEvent> =
  | Answer
  | { readonly kind: 'done' }
  | { readonly kind: 'error_event'; readonly error: ProviderError }
  | { readonly kind: 'bad_finish'; readonly reason: string; readonly status: number }
  | { readonly kind: 'malformed' };

/** An event that belongs to the answer. What else a wire knows of it is its own. */
export interface AnswerEvent {
  readonly kind: 'answer';
  readonly deltas: readonly Delta[];
  /** It says nothing to anybody but us. */
  readonly ping?: true;
  /** More than one choice, or another than the first: `n > 1`, which is forwarded but never spliced. */
  readonly manyChoices: boolean;
}

/** How an answer ends. */
export interface Ending<Event extends AnswerEvent = AnswerEvent> {
  readonly reason: string;
  /** The provider's event that finishes the answer, and what it sent after it: usage, filter results. */
  readonly finish?: Event;
  readonly after: readonly Event[];
  /** Put in place of what the provider reported; without it, its own report stands. */
  readonly usage?: Usage;
  /** The client asked for a usage report and must get one. */
  readonly usageAsked: boolean;
}

/** Takes what an {@link AnswerWriter} has to say, in order. */
export interface AnswerSink {
  /** One `data:` event. `keepPayload`: it says more than can be rebuilt from its deltas. */
  send(payload: string, deltas: readonly Delta[], keepPayload: boolean): void;
  /** A comment, which is no event: `text` is one line. */
  comment(text: string): void;
  /** A delta without an event of its own: recorded with the next one. */
  keep(delta: Delta): void;
}

export interface AnswerWriterOptions {
  readonly events: EventsMode;
  readonly facts: ChatFacts;
  readonly sink: AnswerSink;
}

/** What another replica has sent of an answer. */
export interface ShownAnswer {
  /** The payload that gave the answer its identity, and the first one with content; none while nothing was sent. */
  readonly first: string | undefined;
  readonly content: string | undefined;
  /** In the order in which they were shown. */
  readonly calls: readonly ToolCall[];
}

/**
 * Writes the answer of one run as events of its wire. Sends what can be sent as the bytes that came, rebuilds the rest,
 * and holds back what might have to be taken back: a beginning before any content, a tool call before it is closed.
 */
export interface AnswerWriter<Event extends AnswerEvent = AnswerEvent> {
  /** True once content was sent: from then on the answer has an identity that stays. */
  readonly begun: boolean;
  /** What the provider calls the answer, once it has begun. */
  readonly id: string | undefined;
  /** Goes on where another replica stopped. */
  restore(shown: ShownAnswer): void;
  /** Shows `deltas`, which `event` brought. `intact`: nothing was taken out of the event, so it may pass as it came. */
  show(deltas: readonly Delta[], event: Event, intact: boolean): void;
  /** An event of a request that is never spliced: sent as it came. */
  forward(event: Event): void;
  /** A new attempt begins: what the last one sent before any content is forgotten. */
  restart(): void;
  /** The calls were cut: what was held of them is dropped, what was shown is announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void;
  advise(advisory: Advisory): void;
  /** An event that says nothing but resets timers which ignore comments. False if there is none yet. */
  breakSilence(): boolean;
  finish(ending: Ending<Event>): void;
  /** What comes after the end of the answer, where its events were sent already. */
  finishRest(usage: Usage | undefined): void;
  /** The stream of a request that is never spliced has ended as it should. */
  finishForwarded(): void;
  /** The answer could not be finished: one error event, and nothing that looks like an end. */
  fail(error: object): void;
}
