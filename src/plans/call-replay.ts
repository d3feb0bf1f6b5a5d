import type { Delta, ToolDelta } from './delta.ts';
import type { SeamRejection } from './seam/joint.ts';
import type { ToolCall } from './tool-call.ts';

/** A call that is made again, as far as it has come. */
interface Repeated {
  readonly index: number;
  /** What the client has of its arguments. */
  readonly shown: string;
  readonly isClosed: boolean;
  /** UTF-16 units that have come again. */
  said: number;
}

const NONE: readonly Delta[] = [];

/**
 * Joins the tool calls of an answer that is made again to those that its client has seen, in the order in which they began. What
 * was shown is compared, unit for unit, and left out; a call that was cut is continued behind that.
 */
export class CallReplay {
  /** Those that have not begun again. */
  readonly #expected: Repeated[];
  readonly #names: readonly string[];
  /** By the number that this attempt has for them. */
  readonly #repeated = new Map<number, Repeated>();
  readonly #all: readonly Repeated[];

  /** `calls`: those that the client has, as far as it has them. */
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

  /** Everything that was shown has come again. */
  get isOver(): boolean {
    return this.#expected.length === 0 && this.#all.every(({ said, shown }) => said >= shown.length);
  }

  /** Some of the deltas are of calls that the client knows by other numbers. */
  concerns(deltas: readonly Delta[]): boolean {
    return deltas.some((delta) => 'index' in delta && this.#repeated.has(delta.index));
  }

  /** What is new in `delta`, of the call as the client knows it; or why this is another answer. */
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
