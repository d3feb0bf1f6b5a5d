import { cancelDelta, type Delta, type Usage } from '../../../plans/delta.ts';
import { ShownCalls } from '../../../plans/shown-calls.ts';
import type { NamedCall } from '../../../plans/tool-call.ts';
import type { Advisory, AnswerSink, AnswerWriterOptions } from './wire.ts';

export type WriterOptions = Pick<AnswerWriterOptions, 'events' | 'sink'>;

/** A call that the client has seen at least partly, with its position. */
export type SeenCall = NamedCall & { readonly position: number };

/** The result for a provider tool that was running when the connection was lost. */
export const UNKNOWN_RESULT =
  'The connection was lost while this tool ran. It may have had its effect, and its result is not known.';

/** The common part of all wires' answer writers: advisories, cut calls, and empty events. */
export abstract class BaseAnswerWriter {
  protected readonly sink: AnswerSink;
  readonly #events: AnswerWriterOptions['events'];
  readonly #legacy: boolean;
  /** Undefined before the first call. */
  #calls: ShownCalls | undefined;
  /** Advisories from before the answer began: clients take its first event for the beginning of the message. */
  #advisories: readonly Advisory[] = [];

  /** `legacy`: calls have no id. */
  constructor({ events, sink }: WriterOptions, legacy = false) {
    this.sink = sink;
    this.#events = events;
    this.#legacy = legacy;
  }

  /** Whether content was sent. */
  abstract get begun(): boolean;

  /** Sends what follows the end of the answer, if that end was already sent. */
  abstract finishRest(usage: Usage | undefined): void;

  /** Sends a valid event without content, which may carry our own object. */
  protected abstract sendEmpty(holdfast?: object): void;

  /** Tool calls are shown as they arrive. */
  protected get isLive(): boolean {
    return this.#events !== 'none';
  }

  /** Which calls the client sees, and at which positions. */
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

  /** Gives up a call. Returns it if the client has seen part of it. */
  protected dropCall(index: number): SeenCall | undefined {
    return this.calls.cancel(index);
  }

  /** Ends the forwarded stream of a request that is never spliced. */
  finishForwarded(): void {
    this.finishRest(undefined);
  }

  /** Sends an event that can't be rebuilt from its deltas alone. */
  protected send(payload: string, deltas: readonly Delta[] = []): void {
    this.sink.send(payload, deltas, true);
  }

  /** Announces that a call was cut after the client had seen its beginning. */
  protected announceCut(_call: SeenCall, cancel: Advisory): void {
    this.advise(cancel);
  }

  /** Called when the answer begins. Returns the advisories held until then. */
  protected drainAdvisories(): readonly Advisory[] {
    const advisories = this.#advisories;
    this.#advisories = [];
    return advisories;
  }
}
