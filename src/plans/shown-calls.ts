import type { Delta, ToolDelta } from './delta.ts';
import { normalisedArguments, type ToolCall } from './tool-call.ts';

/** A piece of a tool call to show to the client: the whole call, or a fragment in live mode. */
export interface ShownFragment {
  readonly position: number;
  readonly start?: {
    readonly id: string;
    readonly name: string;
    readonly extra: Readonly<Record<string, unknown>>;
  };
  readonly arguments: string;
  readonly legacy: boolean;
  /** The same as deltas with client positions, for the journal. */
  readonly deltas: readonly Delta[];
}

interface Call {
  readonly id: string;
  readonly name: string;
  readonly extra: Readonly<Record<string, unknown>>;
  arguments: string;
  /** The client's position for the call; `undefined` while the call is held. */
  position: number | undefined;
}

/**
 * Decides which tool calls the client sees, and at which position. Positions are contiguous from 0 in display order: by
 * default a call is held until it closes, so a cut call leaves no gap.
 */
export class ShownCalls {
  readonly live: boolean;
  readonly #legacy: boolean;
  readonly #calls = new Map<number, Call>();
  #positions = 0;

  /** `live`: fragments are shown as they arrive. `legacy`: calls have no id. */
  constructor({ live, legacy }: { live: boolean; legacy: boolean }) {
    this.live = live;
    this.#legacy = legacy;
  }

  /** Restores calls shown by another replica: they keep their positions, and the open ones continue here. */
  restore(calls: readonly ToolCall[]): void {
    for (const { index, id, name, arguments: text, state } of calls) {
      if (state === 'open') this.#calls.set(index, { id, name, extra: {}, arguments: text, position: index });
    }
    this.#positions = calls.length;
  }

  /** The fragment to show because of `delta`, if any. */
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

  /** The delta under the client's position, for the journal. */
  positioned(delta: ToolDelta): ToolDelta {
    return { ...delta, index: this.#calls.get(delta.index)?.position ?? delta.index };
  }

  /** The id that the client knows the call by; `undefined` once it is cancelled. */
  idOf(index: number): string | undefined {
    return this.#calls.get(index)?.id;
  }

  /** Forgets the call. Returns it if the client has seen part of it. */
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

/** Clients match results to calls by id, so a call without one gets a generated id. */
export const shownCallId = (id: string, index: number): string => (id === '' ? `call_${index}` : id);
