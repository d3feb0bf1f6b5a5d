import { partOf } from '../plans/delta.ts';
import { EventDecoder } from '../proxy/upstream/event-decoder.ts';
import type { Wire, WireEvent, WireReader } from '../proxy/wires/common/wire.ts';

/** The properties of a piece of an answer that decide where a fault strikes. */
export interface Step {
  /** Length of text, reasoning, refusals and arguments in UTF-16 units. */
  readonly characters: number;
  /** The piece carries part of the answer, if only the name of a tool. */
  readonly isContent: boolean;
  /** The piece carries part of a tool call's arguments. */
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
    // Reads in continuation mode, which needs nothing from the request.
    this.#reader = wire.reader(() => this.#calls++, { model: '', stream: true }, true);
  }

  /** `bytes`: whole events, each of at most `event_bytes_max`. */
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
