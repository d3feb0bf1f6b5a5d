import type { JournalEvent } from '../../checkpoint/journal.ts';
import type { Time } from '../../lib/time.ts';
import { type Delta, partOf, type Segment, type Usage } from '../../plans/delta.ts';
import type { Client } from '../downstream/client.ts';
import { eventFrame } from '../downstream/event-frame.ts';
import { FrameWriter } from '../downstream/frame-writer.ts';
import type { Advisory, EventsMode } from '../wires/common/advisory.ts';
import type { RequestFacts } from '../wires/common/request-facts.ts';
import type { AnswerEvent, AnswerWriter, Ending, ForwardedCalls, Wire } from '../wires/common/wire.ts';
import type { RestoredRun } from './restored-run.ts';

export interface DeliveryOptions {
  readonly wire: Wire;
  readonly client: Client;
  readonly time: Time;
  readonly events: EventsMode;
  readonly facts: RequestFacts;
  /** Asked for when the response is opened. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Is given every `data:` event, in the order in which they are sent. */
  readonly journal: { record(event: JournalEvent): void; stored(): Promise<void> };
  /** Nobody may have anything before the journal has its beginning: without the request in it nobody could go on. */
  readonly storeFirst?: boolean;
  /** The id of the event with this ordinal, where the client asked for ids. */
  readonly idOf?: (seq: number) => string;
  /** What was delivered before this replica. */
  readonly restored?: RestoredRun;
}

/**
 * The client's view of a run: every event that the wire's writer has to say is numbered, recorded and sent, in that
 * order. Frames are collected, and written by {@link flush} once for everything that arrived together.
 */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #answer: AnswerWriter;
  readonly #idOf: ((seq: number) => string) | undefined;
  readonly #frames: FrameWriter;
  #seq = 0;
  /** Deltas without an event of their own; recorded with the next one. */
  #silent: Delta[] = [];
  /** The attempt under way, until something of it is sent. */
  #segment: Segment | undefined;
  #needsStored: boolean;
  #recovering = false;

  constructor(options: DeliveryOptions) {
    const { wire, events, facts, restored } = options;
    this.#options = options;
    this.#needsStored = options.storeFirst ?? false;
    this.#idOf = options.idOf;
    this.#frames = new FrameWriter({ ...options, onSilence: () => this.#breakSilence() });
    this.#answer = wire.writer({
      events,
      facts,
      sink: {
        send: (payload, deltas, keepPayload) => this.#send(payload, deltas, keepPayload),
        comment: (text) => this.#frames.add(`: ${text}\n`),
        keep: (delta) => void this.#silent.push(delta),
        storeFirst: () => {
          this.#needsStored = true;
        },
      },
    });
    if (restored) {
      this.#seq = restored.seq;
      restored.restore(this.#answer);
    }
  }

  /** True once content was sent: from then on the answer has an identity that stays. */
  get begun(): boolean {
    return this.#answer.begun;
  }

  /** What the provider calls the answer, once there is any of it. */
  get stream_id(): string | undefined {
    return this.#answer.id;
  }

  /**
   * Nobody may have what was collected before the journal has: it comes after a cancelled call, and does not show it, so
   * that only the journal tells that call from one that was closed; or it begins what only the journal has the rest of.
   */
  get needsStored(): boolean {
    return this.#needsStored;
  }

  /** The calls of an answer with several choices, which is sent as it comes. */
  get forwardedCalls(): ForwardedCalls {
    return this.#answer.forwardedCalls ?? NO_CALLS;
  }

  /** Something was collected that {@link flush} would write. */
  get pending(): boolean {
    return this.#frames.pending;
  }

  /** See {@link AnswerWriter.thoughts}. */
  get thoughts(): AnswerWriter['thoughts'] {
    return this.#answer.thoughts;
  }

  /** The whole response was handed to the client. */
  get ended(): boolean {
    return this.#frames.ended;
  }

  /**
   * Shows `deltas`, which `event` brought. `intact`: nothing was taken out of the event, so it may pass as it came.
   */
  show(deltas: readonly Delta[], event: AnswerEvent, intact: boolean): void {
    this.#answer.show(deltas, event, intact);
  }

  /** An event of a request that is never spliced: sent as it came. */
  forward(event: AnswerEvent): void {
    this.#answer.forward(event);
  }

  /** The attempt that this tells of begins: what is sent from now on is of it. */
  begin(segment: Segment): void {
    this.#segment = segment;
  }

  /**
   * A new attempt begins: what the last one sent before any content is forgotten. `isSame`: unless it comes back to the
   * very answer of the last one.
   */
  restart(isSame: boolean): void {
    if (!isSame) this.#answer.restart();
    this.#recovering = true;
  }

  /** The calls were cut: what was held of them is dropped, what was shown is announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    this.#answer.cancelCalls(indexes, reason, attempt);
  }

  advise(advisory: Advisory): void {
    this.#answer.advise(advisory);
  }

  /** The recovery is felt no more: new content has come. */
  recovered(): void {
    this.#recovering = false;
  }

  /** Writes what was collected. The promise, if any, is the client's backpressure. */
  flush(): Promise<void> | undefined {
    this.#needsStored = false;
    return this.#frames.flush();
  }

  /** Collects what ends the answer, which leaves with the {@link end} of the response. */
  finish(ending: Ending): void {
    this.#answer.finish(ending);
  }

  /** What comes after the end of the answer, where that was sent already. */
  finishRest(usage: Usage | undefined): void {
    this.#answer.finishRest(usage);
  }

  /** The stream of a request that is never spliced has ended as it should. */
  finishForwarded(): void {
    this.#answer.finishForwarded();
  }

  /** The answer could not be finished: one error event, and nothing that looks like an end. */
  fail(error: object): void {
    this.#answer.fail(error);
  }

  /** Writes what was collected together with the end of the response. */
  end(): void {
    this.#frames.end();
  }

  /** Nothing more is sent: the client has gone or was answered without a stream, or the run is not ours any more. */
  close(): void {
    this.#frames.close();
  }

  #send(payload: string, deltas: readonly Delta[], keepPayload: boolean): void {
    this.#seq++;
    this.#frames.add(eventFrame(payload, this.#options.wire, this.#idOf?.(this.#seq)));
    let said = this.#segment ? this.#withSegment(this.#segment, deltas) : deltas;
    if (this.#silent.length > 0) {
      said = [...this.#silent, ...said];
      this.#needsStored ||= this.#options.events === 'comments' && this.#silent.some(isCancel);
      this.#silent = [];
    }
    this.#options.journal.record(keepPayload ? { deltas: said, payload } : { deltas: said });
  }

  /** An attempt that adds nothing to the answer has no part in it. */
  #withSegment(segment: Segment, deltas: readonly Delta[]): readonly Delta[] {
    if (!deltas.some(partOf)) return deltas;
    this.#segment = undefined;
    return [{ kind: 'segment', ...segment }, ...deltas];
  }

  /** While a recovery takes long: an event that says nothing. */
  #breakSilence(): boolean {
    if (!this.#recovering || !this.#answer.breakSilence()) return false;
    // After so long a silence the run may be another replica's, which would give this ordinal to another event.
    void this.#options.journal.stored().then(() => this.flush());
    return true;
  }
}

const NO_CALLS: ForwardedCalls = { settled: [], unfinished: [] };
const isCancel = (delta: Delta): boolean => delta.kind === 'tool_cancel';
