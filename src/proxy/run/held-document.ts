import type { Delta } from '../../plans/delta.ts';
import { parses } from '../../plans/tool-call.ts';
import type { AnswerEvent } from '../wires/common/wire.ts';
import type { RunState } from './run-state.ts';

/** Memory per event in addition to its text. */
const EVENT_OVERHEAD_BYTES = 256;

type Show = (deltas: readonly Delta[], event: AnswerEvent, intact: boolean) => void;

/**
 * Holds back a JSON answer for a client without a stream until it is complete, so that it can be requested again as if
 * nothing had been received. Nothing is lost, because such an answer is always regenerated from its beginning.
 */
export class HeldDocument {
  readonly #events: Parameters<Show>[] = [];
  #text = '';
  #bytes = 0;
  #isText = true;

  /** `undefined` if the answer has begun, or if it need not parse: a stop sequence may end it anywhere. */
  static of({ facts, transcript }: RunState): HeldDocument | undefined {
    const { size, toolCalls, providerTools } = transcript;
    const isBegun = size > 0 || toolCalls.length > 0 || providerTools.length > 0;
    const isJson = facts.expectsJson && facts.stops.length === 0 && facts.choices === 1;
    return isJson && !isBegun ? new HeldDocument() : undefined;
  }

  /** Memory used. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Refusals and tool calls are valid answers too. */
  get isUsable(): boolean {
    return !this.#isText || parses(this.#text);
  }

  hold(...event: Parameters<Show>): void {
    this.#bytes += EVENT_OVERHEAD_BYTES;
    for (const delta of event[0]) {
      if ('text' in delta) this.#bytes += Buffer.byteLength(delta.text);
      if (delta.kind === 'text') this.#text += delta.text;
      else if (delta.kind === 'refusal' || delta.kind === 'tool_start') this.#isText = false;
    }
    this.#events.push(event);
  }

  show(show: Show): void {
    for (const event of this.#events) show(...event);
  }
}
