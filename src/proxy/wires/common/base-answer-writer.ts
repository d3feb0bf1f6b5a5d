import { cancelDelta, type Delta, type Usage } from '../../../plans/delta.ts';
import { ShownCalls } from '../../../plans/shown-calls.ts';
import type { NamedCall } from '../../../plans/tool-call.ts';
import type { Advisory, AnswerSink, AnswerWriterOptions } from './wire.ts';

export type WriterOptions = Pick<AnswerWriterOptions, 'events' | 'sink'>;

/** A call of which the client has seen something, and its place among those that it has seen. */
export type SeenCall = NamedCall & { readonly position: number };

/** The result that stands for a tool that its provider was running when the connection was lost. */
export const UNKNOWN_RESULT =
  'The connection was lost while this tool ran. It may have had its effect, and its result is not known.';

/** What the answer writers of all wires have in common: advisories, calls that are cut, and events that only break a silence. */
export abstract class BaseAnswerWriter {
  protected readonly sink: AnswerSink;
  readonly #events: AnswerWriterOptions['events'];
  readonly #legacy: boolean;
  /** Undefined before the first call. */
  #calls: ShownCalls | undefined;
  /** Those from before the answer began: clients take its first event for the beginning of the message. */
  #advisories: readonly Advisory[] = [];

  /** `legacy`: calls have no id. */
  constructor({ events, sink }: WriterOptions, legacy = false) {
    this.sink = sink;
    this.#events = events;
    this.#legacy = legacy;
  }

  /** Whether content was sent. */
  abstract get begun(): boolean;

  /** Sends what comes after the end of the answer, where its events were sent already. */
  abstract finishRest(usage: Usage | undefined): void;

  /** Sends a valid event that says nothing, with our own object in it, if any. */
  protected abstract sendEmpty(holdfast?: object): void;

  /** Tool calls are shown as they come. */
  protected get isLive(): boolean {
    return this.#events !== 'none';
  }

  /** Which calls the client sees, and where. */
  protected get calls(): ShownCalls {
    this.#calls ??= new ShownCalls({ live: this.isLive, legacy: this.#legacy });
    return this.#calls;
  }

  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    for (const index of indexes) {
      const call = this.dropCall(index);
      if (!call) continue;
      const { position, id, name } = call;
      this.sink.keep(cancelDelta(position, reason));
      this.announceCut(call, { type: 'ToolCallCancel', id, name, reason, attempt });
    }
  }

  advise(advisory: Advisory): void {
    if (this.#events === 'none' || this.#events === 'live') return;
    if (!this.begun) this.#advisories = [...this.#advisories, advisory];
    else if (this.#events === 'comments') this.sink.comment(`holdfast ${JSON.stringify(advisory)}`);
    else this.sendEmpty(advisory);
  }

  breakSilence(): boolean {
    if (this.begun) this.sendEmpty();
    return this.begun;
  }

  /** Gives a call up. Returns it if the client has seen something of it. */
  protected dropCall(index: number): SeenCall | undefined {
    return this.calls.cancel(index);
  }

  /** The stream of a request that is never spliced has ended as it should. */
  finishForwarded(): void {
    this.finishRest(undefined);
  }

  /** An event that says more than can be rebuilt from its deltas. */
  protected send(payload: string, deltas: readonly Delta[] = []): void {
    this.sink.send(payload, deltas, true);
  }

  /** Says that a call was cut of which the client has seen the beginning. */
  protected announceCut(_call: SeenCall, cancel: Advisory): void {
    this.advise(cancel);
  }

  /** The answer has begun. Returns what was to be advised before. */
  protected drainAdvisories(): readonly Advisory[] {
    const advisories = this.#advisories;
    this.#advisories = [];
    return advisories;
  }
}
