import { partOf } from '../plans/delta.ts';
import { EventDecoder } from '../proxy/upstream/event-decoder.ts';
import type { Wire, WireEvent, WireReader } from '../proxy/wires/common/wire.ts';

/** What a piece of an answer brings, as far as faults are placed by it. */
export interface Step {
  /** Of text, reasoning, refusals and arguments, in UTF-16 units. */
  readonly characters: number;
  /** Something of the answer, if only the name of a tool. */
  readonly isContent: boolean;
  /** A piece of the arguments of a tool call. */
  readonly isArguments: boolean;
  readonly isFinish: boolean;
}

/** Reads the events of one answer on its wire. */
export class StepReader {
  readonly #decoder: EventDecoder;
  readonly #reader: WireReader;
  #calls = 0;

  constructor(wire: Wire, event_bytes_max: number) {
    this.#decoder = new EventDecoder(event_bytes_max);
    // As if for the rest of an answer, with which nothing of a request is looked at.
    this.#reader = wire.reader(() => this.#calls++, { model: '', stream: true }, true);
  }

  /** `bytes`: whole events, of at most `event_bytes_max` each. */
  read(bytes: Buffer): Step {
    return this.#decoder
      .decode(bytes)
      .map((event) => stepOf(this.#reader.read(event)))
      .reduce(joined, NOTHING);
  }
}

const NOTHING: Step = { characters: 0, isContent: false, isArguments: false, isFinish: false };

function joined(one: Step, other: Step): Step {
  return {
    characters: one.characters + other.characters,
    isContent: one.isContent || other.isContent,
    isArguments: one.isArguments || other.isArguments,
    isFinish: one.isFinish || other.isFinish,
  };
}

function stepOf(event: WireEvent): Step {
  if (event.kind === 'done') return { ...NOTHING, isFinish: true };
  if (event.kind !== 'answer') return NOTHING;
  const { deltas } = event;
  return {
    characters: deltas.reduce((sum, delta) => sum + ('text' in delta ? delta.text.length : 0), 0),
    isContent: deltas.some((delta) => partOf(delta) !== undefined),
    isArguments: deltas.some(({ kind }) => kind === 'tool_arguments'),
    isFinish: deltas.some(({ kind }) => kind === 'finish'),
  };
}
