import type { Delta } from '../../plans/delta.ts';
import { parses } from '../../plans/tool-call.ts';
import type { AnswerEvent } from '../wires/common/wire.ts';
import type { RunState } from './run-state.ts';

/** What an event weighs in memory besides its text. */
const EVENT_OVERHEAD_BYTES = 256;

type Show = (deltas: readonly Delta[], event: AnswerEvent, intact: boolean) => void;

/**
 * JSON for a client that asked for no stream, held back until it is whole: until then it can be asked for again as if
 * nothing had been said. Cutting it loses nothing, since such an answer is only ever generated again from its beginning.
 */
export class HeldDocument {
  readonly #events: Parameters<Show>[] = [];
  #text = '';
  #bytes = 0;
  #isText = true;

  /** `undefined` where something was said already, or where the answer is not to parse: a stop sequence may end it anywhere. */
  static of({ facts, transcript }: RunState): HeldDocument | undefined {
    const { size, toolCalls, providerTools } = transcript;
    const isBegun = size > 0 || toolCalls.length > 0 || providerTools.length > 0;
    const isJson = facts.expectsJson && facts.stops.length === 0 && facts.choices === 1;
    return isJson && !isBegun ? new HeldDocument() : undefined;
  }

  /** Bytes held in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A refusal and calls of tools are answers as well. */
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
