import type { Delta, ToolDelta } from './delta.ts';
import type { SeamRejection } from './seam/joint.ts';
import type { ToolCall } from './tool-call.ts';

/** A call from the earlier attempt, and how much of it the new attempt has repeated. */
interface Repeated {
  readonly index: number;
  /** The arguments that the client has. */
  readonly shown: string;
  readonly isClosed: boolean;
  /** UTF-16 units repeated so far. */
  said: number;
}

const NONE: readonly Delta[] = [];

/**
 * Aligns the tool calls of a regenerated answer with those that the client has seen, in order of appearance. It
 * compares the repeated arguments unit by unit and drops them; a cut call continues after that.
 */
export class CallReplay {
  /** Calls that have not started again. */
  readonly #expected: Repeated[];
  readonly #names: readonly string[];
  /** Keyed by the index that this attempt uses. */
  readonly #repeated = new Map<number, Repeated>();
  readonly #all: readonly Repeated[];

  /** `calls`: the client's calls, complete or not. */
  constructor(calls: readonly Pick<ToolCall, 'index' | 'name' | 'arguments' | 'state'>[]) {
    this.#all = calls.map(({ index, arguments: shown, state }) => ({
      index,
      shown,
      isClosed: state === 'closed',
      said: 0,
    }));
    this.#expected = [...this.#all];
    this.#names = calls.map(({ name }) => name);
  }

  /** The attempt has repeated everything that the client has seen. */
  get isOver(): boolean {
    return this.#expected.length === 0 && this.#all.every(({ said, shown }) => said >= shown.length);
  }

  /** Some of the deltas belong to calls that the client knows by another index. */
  concerns(deltas: readonly Delta[]): boolean {
    return deltas.some((delta) => 'index' in delta && this.#repeated.has(delta.index));
  }

  /** The new part of `delta`, under the client's index; or the reason why this answer differs. */
  accept(delta: ToolDelta): readonly Delta[] | SeamRejection {
    if (delta.kind === 'tool_start') return this.#begin(delta);
    const repeated = this.#repeated.get(delta.index);
    if (!repeated) return [delta];
    if (delta.kind === 'tool_arguments') return continued(repeated, delta.text);
    if (repeated.said < repeated.shown.length) return 'diverged';
    return repeated.isClosed ? NONE : [{ ...delta, index: repeated.index }];
  }

  #begin(delta: Extract<Delta, { kind: 'tool_start' }>): readonly Delta[] | SeamRejection {
    const name = this.#names[this.#all.length - this.#expected.length];
    const repeated = this.#expected.shift();
    if (!repeated) return [delta];
    if (name !== delta.name) return 'diverged';
    this.#repeated.set(delta.index, repeated);
    return NONE;
  }
}

function continued(repeated: Repeated, text: string): readonly Delta[] | SeamRejection {
  const { index, shown, said, isClosed } = repeated;
  const left = shown.slice(said);
  const isSame = left.length < text.length ? text.startsWith(left) : left.startsWith(text);
  if (!isSame) return 'diverged';
  repeated.said += text.length;
  const more = text.slice(left.length);
  if (more === '') return NONE;
  return isClosed ? 'diverged' : [{ kind: 'tool_arguments', index, text: more }];
}
