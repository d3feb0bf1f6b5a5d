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

/** A request that asks for a stream, as far as every wire has it; everything else is kept as it came. */
export interface WireRequest {
  readonly model: string;
  readonly stream: true;
  readonly [parameter: string]: unknown;
}

/** An API surface: how its requests are read and continued, and how its streams are read and written. */
export interface Wire<Event extends AnswerEvent = AnswerEvent, Request extends WireRequest = WireRequest> {
  readonly name: WireName;
  /** Below `/v1`, and below the base URL of an upstream. */
  readonly path: `/${string}`;
  /** The header its providers want their key in, if that is not `Authorization: Bearer`. */
  readonly keyHeader?: 'x-api-key';
  /** Headers that its providers insist on, for clients that come back to a run without them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How notices are added to its requests, if these have a place for them. */
  readonly notices?: WireNotices;
  /** Ways of asking for the rest that it has. */
  readonly modes: readonly Mode[];
  /** Its answers are blocks one after the other: the text before a call has ended when the call begins. */
  readonly isOrdered?: true;
  /** How all providers continue a prefix, where that is part of the wire. */
  readonly dialect?: Dialect;
  /** Its provider may keep answers, as the dialect says, after a lost connection. */
  readonly isKept?: true;
  /** The field of a request that names the answer it continues, on a wire whose providers keep answers. */
  readonly previousAnswer?: string;
  /** Checks what a run relies on; everything else is left to the provider to judge. Throws an `ApiError`. */
  request(fields: Fields): Request;
  facts(request: Request): RequestFacts;
  /** The request that asks for the rest of the answer. */
  continuation(facts: ContinuationFacts<Request>): Continuation<Request>;
  /**
   * Whether a nudge that leaves the settings of the request alone is the better way to ask for the rest, because every other
   * way makes the provider read the conversation without its prompt cache.
   */
  keepsCache?(facts: CacheFacts<Request>): boolean;
  /** Whether `refusal`, in a provider's words, says that it does not take back a thought: another provider has sealed it. */
  refusesThoughts?(refusal: string): boolean;
  /** The request without the thoughts that are left out, by what seals each of them; undefined where there are none. */
  withoutThoughts?(request: Request, isLeftOut: (seal: string) => boolean): Request | undefined;
  /** How what was said before can be put in fewer words, on a wire that has it as messages. */
  readonly conversation?: Conversation<Request>;
  /** The body of an error of ours, if that is not `{"error": …}`. `error`: in the OpenAI shape. */
  errorBody?(error: object): string;
  /** The name of the event that has this payload, on a wire whose events have names. */
  eventOf?(payload: string): string;
  /**
   * For the events of one attempt at `request`. `nextCall` hands out the run's numbers for tool calls. `isRest`: the attempt
   * was given what had been said before. `isInBackground`: it was asked for with {@link backgroundFields}.
   */
  reader(
    nextCall: () => number,
    request: Request,
    isRest?: boolean,
    isInBackground?: boolean,
  ): WireReader<Event>;
  /**
   * What has a provider make the answer whether or not it is listened to, where the client has left that open. The answer is
   * to look as if it had not been asked for.
   */
  backgroundFields?(request: Request): Fields | undefined;
  /** For the answer of one run. */
  writer(options: AnswerWriterOptions): AnswerWriter<Event>;
  readonly delivered: DeliveredEvents<Event>;
  /** How it answers where no stream is asked for. */
  readonly document: WireDocument;
}

/** The body of an error of ours, `{"error": …}`, in the form of this wire. */
export function errorBodyOn(wire: Pick<Wire, 'errorBody'> | undefined, body: string): string {
  if (!wire?.errorBody) return body;
  const { error } = JSON.parse(body) as { readonly error: object };
  return wire.errorBody(error);
}

export interface WireReader<Event extends AnswerEvent = AnswerEvent> {
  /** Events as they were parsed that may give away what server they come from: the first ones, and the one that finishes. */
  readonly samples?: readonly Readonly<Record<string, unknown>>[];
  /** Parts of the answer so far that its provider takes back only as they were. */
  readonly sealed?: readonly object[];
  /** What the provider calls the answer, on a wire where later requests may name it. */
  readonly answer_id?: string | undefined;
  /** Where the provider continues the answer after what was read, below its base URL; undefined if it cannot. */
  readonly resume_path?: string | undefined;
  /** What to `POST` to once the answer is not needed any more, below the same; undefined where it need not be stopped. */
  readonly cancel_path?: string | undefined;
  read(event: EventSourceMessage): WireEvent<Event>;
}

/** What one event of a provider's stream turned out to be. */
export type WireEvent<Answer extends AnswerEvent = AnswerEvent> =
  | Answer
  | { readonly kind: 'done' }
  | { readonly kind: 'error_event'; readonly error: ProviderError }
  | { readonly kind: 'bad_finish'; readonly reason: string; readonly status: number }
  /** It cannot be read, and may have carried a part of the answer. */
  | { readonly kind: 'malformed' }
  /** It provably says nothing. */
  | { readonly kind: 'nothing' };

/** An event that belongs to the answer. What else a wire knows of it is its own. */
export interface AnswerEvent {
  readonly kind: 'answer';
  readonly deltas: readonly Delta[];
  /** It has no meaning for the client. */
  readonly ping?: true;
  /** The provider is at work, although no delta says so. */
  readonly progress?: 'thinking' | 'work';
  /** Nothing is to come after it. */
  readonly last?: true;
  /** The model is at work although nothing is said: it thinks, or uses what its provider lets it use. */
  readonly works?: boolean;
  /** It is of something that the provider does itself: no part of the text, and never a repetition of what was shown. */
  readonly aside?: true;
  /** More than one choice, or another than the first: `n > 1`, which is forwarded but never spliced. */
  readonly manyChoices: boolean;
}

/** How an answer ends. */
export interface Ending<Event extends AnswerEvent = AnswerEvent> {
  readonly reason: string;
  /** The provider's event that finishes the answer, and what it sent after it: usage, filter results. */
  readonly finish?: Event;
  readonly after: readonly Event[];
  /** What ended it, where that is a stop sequence which only we could see. */
  readonly stop_sequence?: string;
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
  /** What was sent last must be stored before it leaves: it begins something that only the journal could complete. */
  storeFirst(): void;
}

/**
 * What the client asked to see besides the standard wire: the `Holdfast-Events` request header. In every mode but `none` calls
 * are shown as they come; `live`: that, and nothing else, as `Holdfast-Tool-Calls` asks for it.
 */
export type EventsMode = 'none' | 'live' | 'chunks' | 'comments';

/** Events for clients that asked to see recoveries (`Holdfast-Events`); never part of the transcript. */
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
      /** What of the answer so far starts anew. */
      readonly scope: 'reasoning' | 'text' | 'all';
    }
  | {
      readonly type: 'Recovered';
      readonly plan: 'R1' | 'R3' | 'R4';
      /** How the rest was asked for. */
      readonly mode: 'first' | Mode;
      /** How its two sides were joined; absent where the answer starts anew or is resumed. */
      readonly seam?: SeamKind;
      readonly cause: string;
      readonly attempt: number;
      /** Silence the client felt, in milliseconds. */
      readonly gap_ms: number;
      /** The upstream that continues the answer, if it is not the interrupted one. */
      readonly upstream?: string;
    };

export interface AnswerWriterOptions {
  readonly events: EventsMode;
  readonly facts: RequestFacts;
  readonly sink: AnswerSink;
}

/** What another replica has sent of an answer. */
export interface ShownAnswer {
  /** The payload that gave the answer its identity, and the first one with content; none while nothing was sent. */
  readonly first: string | undefined;
  readonly content: string | undefined;
  /** In the order in which they were shown. */
  readonly calls: readonly ToolCall[];
  /** Everything that was sent. */
  readonly events: readonly JournalEvent[];
}

/** The calls of all choices. */
export interface ForwardedCalls {
  readonly settled: readonly SettledCall[];
  /** Those that were not settled. */
  readonly unfinished: readonly ToolCall[];
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
  /**
   * What the client has of thoughts, on a wire where they are items that belong to one attempt: `whole` ones are kept and
   * not shown another time; where all were `cut`, those that a restart brings are shown beside them.
   */
  readonly thoughts?: 'whole' | 'cut' | undefined;
  /** UTF-16 units of the latest reasoning that are held until their block is whole, and dropped by {@link restart}. */
  readonly held_reasoning?: number;
  /** Continues where another replica stopped. */
  restore(shown: ShownAnswer): void;
  /** Shows `deltas`, which `event` brought. `intact`: nothing was taken out of the event, so it may pass as it came. */
  show(deltas: readonly Delta[], event: Event, intact: boolean): void;
  /** An event of a request that is never spliced: sent as it came. */
  forward(event: Event): void;
  /** The calls of an answer that was {@link forward}ed, where its wire has answers with several choices. */
  readonly forwardedCalls?: ForwardedCalls | undefined;
  /** Bytes that {@link forwardedCalls} hold. */
  readonly forwarded_bytes?: number;
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
  /** The answer could not be finished: one error event, and nothing that looks like an end. `error`: in the OpenAI shape. */
  fail(error: object): void;
}
