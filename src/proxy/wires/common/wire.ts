import type { EventSourceMessage } from 'eventsource-parser';
import type { JournalEvent, WireName } from '../../../checkpoint/journal.ts';
import type { ProviderError } from '../../../interrupts/provider-error.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { SeamKind } from '../../../plans/seam/joint.ts';
import type { Mode } from '../../../plans/seam/mode.ts';
import type { SettledCall, ToolCall } from '../../../plans/tool-call.ts';
import type { Conversation, WireNotices } from './conversation.ts';
import type { DeliveredEvents } from './delivered-events.ts';
import type { Dialect } from './dialect.ts';
import type { WireDocument } from './document.ts';
import type { CacheFacts, Continuation, ContinuationFacts, RequestFacts } from './request.ts';

/** A streaming request; the parts that all wires share. Other parameters are kept unchanged. */
export interface WireRequest {
  readonly model: string;
  readonly stream: true;
  readonly [parameter: string]: unknown;
}

/** An API surface: how to read and continue its requests, and to read and write its streams. */
export interface Wire<Event extends AnswerEvent = AnswerEvent, Request extends WireRequest = WireRequest> {
  readonly name: WireName;
  /** Path below `/v1` and below an upstream's base URL. */
  readonly path: `/${string}`;
  /** The header for its providers' key, if it isn't `Authorization: Bearer`. */
  readonly keyHeader?: 'x-api-key';
  /** Headers that its providers require, for clients that return to a run without them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How to add notices to its requests, if that is possible. */
  readonly notices?: WireNotices;
  /** The continuation modes that it supports. */
  readonly modes: readonly Mode[];
  /** Its answers are sequential blocks: text before a call has ended when the call begins. */
  readonly isOrdered?: true;
  /** How all providers continue a prefix, if the wire defines that. */
  readonly dialect?: Dialect;
  /** Its providers may store answers beyond a lost connection, depending on the dialect. */
  readonly isKept?: true;
  /** The request field that names the answer it continues, on wires whose providers store answers. */
  readonly previousAnswer?: string;
  /** Validates only what a run relies on; the provider validates the rest. Throws an `ApiError`. */
  request(fields: Fields): Request;
  facts(request: Request): RequestFacts;
  /** The request that asks for the rest of the answer. */
  continuation(facts: ContinuationFacts<Request>): Continuation<Request>;
  /**
   * Whether a nudge with unchanged settings is the best continuation, because any other one would make the provider
   * read the conversation without its prompt cache.
   */
  keepsCache?(facts: CacheFacts<Request>): boolean;
  /** Whether the provider's `refusal` means that it doesn't accept a thought that another provider sealed. */
  refusesThoughts?(refusal: string): boolean;
  /** The request without the thoughts whose seals satisfy `isLeftOut`; undefined if there are none. */
  withoutThoughts?(request: Request, isLeftOut: (seal: string) => boolean): Request | undefined;
  /** How to compress the conversation, on wires whose requests contain it as messages. */
  readonly conversation?: Conversation<Request>;
  /** The body for one of our errors, if it isn't `{"error": …}`. `error`: in the OpenAI format. */
  errorBody?(error: object): string;
  /** The event name for a payload, on wires with named events. */
  eventOf?(payload: string): string;
  /**
   * A reader for the events of one attempt at `request`. `nextCall` assigns the run's indices for tool calls. `isRest`:
   * the attempt received the earlier output. `isInBackground`: it used {@link backgroundFields}.
   */
  reader(
    nextCall: () => number,
    request: Request,
    isRest?: boolean,
    isInBackground?: boolean,
  ): WireReader<Event>;
  /**
   * Fields that make a provider generate the answer even without a connection, if the client left that open. The client
   * must not notice the difference in the answer.
   */
  backgroundFields?(request: Request): Fields | undefined;
  /** A writer for the answer of one run. */
  writer(options: AnswerWriterOptions): AnswerWriter<Event>;
  readonly delivered: DeliveredEvents<Event>;
  /** How it answers without a stream. */
  readonly document: WireDocument;
}

/** Converts the body `{"error": …}` of one of our errors to this wire's format. */
export function errorBodyOn(wire: Pick<Wire, 'errorBody'> | undefined, body: string): string {
  if (!wire?.errorBody) return body;
  const { error } = JSON.parse(body) as { readonly error: object };
  return wire.errorBody(error);
}

export interface WireReader<Event extends AnswerEvent = AnswerEvent> {
  /** Parsed events that may identify the server: the first ones and the finishing one. */
  readonly samples?: readonly Readonly<Record<string, unknown>>[];
  /** Parts of the answer so far that its provider accepts back only verbatim. */
  readonly sealed?: readonly object[];
  /** The provider's id for the answer, on wires where later requests may name it. */
  readonly answer_id?: string | undefined;
  /**
   * Path to resume the answer after the part read so far, below the provider's base URL; undefined if that isn't
   * possible.
   */
  readonly resume_path?: string | undefined;
  /** Path to `POST` to when the answer is no longer needed, below the same URL; undefined if it need not be stopped. */
  readonly cancel_path?: string | undefined;
  read(event: EventSourceMessage): WireEvent<Event>;
}

/** The interpretation of one event from a provider's stream. */
export type WireEvent<Answer extends AnswerEvent = AnswerEvent> =
  | Answer
  | { readonly kind: 'done' }
  | { readonly kind: 'error_event'; readonly error: ProviderError }
  | { readonly kind: 'bad_finish'; readonly reason: string; readonly status: number }
  /** Unreadable, and may have carried part of the answer. */
  | { readonly kind: 'malformed' }
  /** Certainly without content. */
  | { readonly kind: 'nothing' };

/** An event that is part of the answer. Wires add their own fields. */
export interface AnswerEvent {
  readonly kind: 'answer';
  readonly deltas: readonly Delta[];
  /** Meaningless to the client. */
  readonly ping?: true;
  /** The provider is working, although no delta shows it. */
  readonly progress?: 'thinking' | 'work';
  /** Nothing follows it. */
  readonly last?: true;
  /** The model is working without output: it reasons, or uses provider tools. */
  readonly works?: boolean;
  /** Concerns provider tools: not part of the text, and never a repetition. */
  readonly aside?: true;
  /** More than one choice, or not the first: `n > 1`, which is forwarded but never spliced. */
  readonly manyChoices: boolean;
}

/** The end of an answer. */
export interface Ending<Event extends AnswerEvent = AnswerEvent> {
  readonly reason: string;
  /** The provider's finishing event, and what followed it: usage, filter results. */
  readonly finish?: Event;
  readonly after: readonly Event[];
  /** The stop sequence that ended it, if only Holdfast could see it. */
  readonly stop_sequence?: string;
  /** Replaces the provider's report; without it, that report applies. */
  readonly usage?: Usage;
  /** The client asked for a usage report, and must get one. */
  readonly usageAsked: boolean;
}

/** Receives the output of an {@link AnswerWriter} in order. */
export interface AnswerSink {
  /** Sends a `data:` event. `keepPayload`: it can't be rebuilt from its deltas alone. */
  send(payload: string, deltas: readonly Delta[], keepPayload: boolean): void;
  /** Sends a comment, which is no event. `text`: a single line. */
  comment(text: string): void;
  /** Keeps a delta without an event, to be recorded with the next one. */
  keep(delta: Delta): void;
  /**
   * Requires that the last event is stored before it is sent, because it begins something that only the journal can
   * complete.
   */
  storeFirst(): void;
}

/**
 * What the client wants to see besides the standard wire, according to the `Holdfast-Events` request header. All modes
 * except `none` show calls as they arrive; `live`, set by `Holdfast-Tool-Calls`, does only that.
 */
export type EventsMode = 'none' | 'live' | 'chunks' | 'comments';

/** Events for clients that asked to see recoveries (`Holdfast-Events`). Not part of the transcript. */
export type Advisory =
  | {
      readonly type: 'ToolCallCancel';
      readonly id: string;
      readonly name: string;
      readonly reason: string;
      readonly attempt: number;
    }
  | {
      readonly type: 'StreamReset';
      readonly reason: string;
      readonly attempt: number;
      /** The part of the answer that restarts. */
      readonly scope: 'reasoning' | 'text' | 'all';
    }
  | {
      readonly type: 'Recovered';
      readonly plan: 'R1' | 'R3' | 'R4';
      /** How the continuation was requested. */
      readonly mode: 'first' | Mode;
      /** How both sides were joined; absent if the answer restarts or is resumed. */
      readonly seam?: SeamKind;
      readonly cause: string;
      readonly attempt: number;
      /** How long the client received no content, in milliseconds. */
      readonly gap_ms: number;
      /** The upstream that continues the answer, if it changed. */
      readonly upstream?: string;
    };

export interface AnswerWriterOptions {
  readonly events: EventsMode;
  readonly facts: RequestFacts;
  readonly sink: AnswerSink;
}

/** The part of an answer that another replica sent. */
export interface ShownAnswer {
  /** The payload that defined the answer's identity, and the first one with content; none if nothing was sent. */
  readonly first: string | undefined;
  readonly content: string | undefined;
  /** In display order. */
  readonly calls: readonly ToolCall[];
  /** All events sent. */
  readonly events: readonly JournalEvent[];
}

/** The calls of all choices. */
export interface ForwardedCalls {
  readonly settled: readonly SettledCall[];
  /** Calls that were not settled. */
  readonly unfinished: readonly ToolCall[];
}

/**
 * Writes the answer of one run as events of its wire. Events pass verbatim where possible and are rebuilt otherwise.
 * Holds back what might have to be withdrawn: a beginning before any content, and a tool call before it closes.
 */
export interface AnswerWriter<Event extends AnswerEvent = AnswerEvent> {
  /** True once content was sent, which fixes the answer's identity. */
  readonly begun: boolean;
  /** The provider's id for the answer, once it has begun. */
  readonly id: string | undefined;
  /**
   * The thoughts that the client has, on wires where they are items of one attempt: `whole` ones are kept and not shown
   * again; if all were `cut`, those of a restart are shown as well.
   */
  readonly thoughts?: 'whole' | 'cut' | undefined;
  /** UTF-16 units of reasoning held until its block is complete, and dropped by {@link restart}. */
  readonly held_reasoning?: number;
  /** Continues after the part that another replica sent. */
  restore(shown: ShownAnswer): void;
  /** Shows the `deltas` of `event`. `intact`: nothing was removed, so the event may pass unchanged. */
  show(deltas: readonly Delta[], event: Event, intact: boolean): void;
  /** Forwards an event of a request that is never spliced. */
  forward(event: Event): void;
  /** The calls of a {@link forward}ed answer, on wires with several choices. */
  readonly forwardedCalls?: ForwardedCalls | undefined;
  /** The memory held by {@link forwardedCalls}. */
  readonly forwarded_bytes?: number;
  /** A new attempt begins: forgets what the last one sent before any content. */
  restart(): void;
  /** Cancels cut calls: held parts are dropped, shown ones are announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void;
  advise(advisory: Advisory): void;
  /** Sends an event without content, for client timeouts that ignore comments. False if there is none yet. */
  breakSilence(): boolean;
  finish(ending: Ending<Event>): void;
  /** Sends what follows the end of the answer, if that end was already sent. */
  finishRest(usage: Usage | undefined): void;
  /** Ends the forwarded stream of a request that is never spliced. */
  finishForwarded(): void;
  /** Sends an error and no regular end, because the answer could not be finished. `error`: in the OpenAI format. */
  fail(error: object): void;
}
