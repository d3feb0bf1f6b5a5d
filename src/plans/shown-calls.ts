import type { Delta, ToolDelta } from './delta.ts';
import { normalisedArguments, type ToolCall } from './tool-call.ts';

/** A piece of a tool call as the client is to see it: the whole call, or a fragment of it in live mode. */
export interface ShownFragment {
  readonly position: number;
  readonly start?: {
    readonly id: string;
    readonly name: string;
    readonly extra: Readonly<Record<string, unknown>>;
  };
  readonly arguments: string;
  readonly legacy: boolean;
  /** The same in deltas, by position: what the journal records. */
  readonly deltas: readonly Delta[];
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly extra: Readonly<Record<string, unknown>>;
  arguments: string;
  /** Where the client sees it; `undefined` while it is held. */
  position: number | undefined;
}

/**
 * Which tool calls the client sees, and where. Positions are contiguous from 0 in the order of showing: by default
 * a call is held until it is closed, so a call that is cut leaves no gap.
 */
export class ShownCalls {
  readonly live: boolean;
  readonly #legacy: boolean;
  readonly #calls = new Map<number, Call>();
  #positions = 0;

  /** `live`: fragments are shown as they come. `legacy`: calls have no id. */
  constructor({ live, legacy }: { live: boolean; legacy: boolean }) {
    this.live = live;
    this.#legacy = legacy;
  }

  /** Calls that another replica has shown: they keep their positions, and those that are open continue here. */
  restore(calls: readonly ToolCall[]): void {
    for (const { index, id, name, arguments: text, state } of calls) {
      if (state === 'open') this.#calls.set(index, { id, name, extra: {}, arguments: text, position: index });
    }
    this.#positions = calls.length;
  }

  /** What is to be shown now because of `delta`, if anything. */
  show(delta: ToolDelta): ShownFragment | undefined {
    if (delta.kind === 'tool_start') {
      const { id, name, extra = {} } = delta;
      const call: Call = {
        id: this.#legacy ? id : shownCallId(id, delta.index),
        name,
        extra,
        arguments: '',
        position: undefined,
      };
      this.#calls.set(delta.index, call);
      return this.live ? this.#start(call) : undefined;
    }
    const call = this.#calls.get(delta.index);
    if (!call) return undefined;
    if (delta.kind === 'tool_arguments') {
      call.arguments += delta.text;
      return this.live ? this.#fragment(call, delta.text) : undefined;
    }
    const whole = normalisedArguments(call.arguments);
    if (this.live) return whole === call.arguments ? undefined : this.#fragment(call, whole);
    const position = this.#place(call);
    return {
      position,
      start: call,
      arguments: whole,
      legacy: this.#legacy,
      deltas: [
        { kind: 'tool_start', index: position, id: call.id, name: call.name },
        { kind: 'tool_arguments', index: position, text: whole },
        { kind: 'tool_close', index: position, proof: delta.proof },
      ],
    };
  }

  /** The delta as the journal has it. */
  positioned(delta: ToolDelta): ToolDelta {
    return { ...delta, index: this.#calls.get(delta.index)?.position ?? delta.index };
  }

  /** By which id the client knows the call; undefined once it is over. */
  idOf(index: number): string | undefined {
    return this.#calls.get(index)?.id;
  }

  /** Forgets the call; returns it if the client has seen something of it. */
  cancel(
    index: number,
  ): { readonly position: number; readonly id: string; readonly name: string } | undefined {
    const call = this.#calls.get(index);
    this.#calls.delete(index);
    return call?.position === undefined ? undefined : { ...call, position: call.position };
  }

  #start(call: Call): ShownFragment {
    const position = this.#place(call);
    const deltas: Delta[] = [{ kind: 'tool_start', index: position, id: call.id, name: call.name }];
    return { position, start: call, arguments: '', legacy: this.#legacy, deltas };
  }

  #fragment(call: Call, text: string): ShownFragment {
    const position = call.position ?? this.#place(call);
    const deltas: Delta[] = [{ kind: 'tool_arguments', index: position, text }];
    return { position, arguments: text, legacy: this.#legacy, deltas };
  }

  #place(call: Call): number {
    call.position = this.#positions++;
    return call.position;
  }
}

/** Clients match results to calls by id, so a call that came without one is given one. */
export const shownCallId = (id: string, index: number): string => (id === '' ? `call_${index}` : id);
