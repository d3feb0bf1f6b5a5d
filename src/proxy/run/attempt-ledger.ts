import type { Delta, Usage } from '../../plans/delta.ts';
import { type AttemptUsage, type Count, sumOf } from '../../plans/tokens.ts';
import type { PlannedAttempt } from './next-attempt/recovery-request.ts';

/** Deltas of one kind: how many came, how many characters, and how many of these became part of the run. */
interface Tally {
  deltas: number;
  came: number;
  kept: number;
}

interface AskedAttempt extends Pick<PlannedAttempt, 'mode' | 'added_messages' | 'added_reasoning'> {
  readonly target?: { readonly name: string };
}

/** Counts what one attempt contributes while it runs. */
export class AttemptLedger implements AttemptUsage {
  readonly upstream?: string;
  readonly mode: AttemptUsage['mode'];
  readonly added_messages: readonly number[];
  readonly added_reasoning: number;
  reported?: Usage;
  readonly #text = newTally();
  readonly #reasoning = newTally();
  readonly #calls = new Map<number, Tally>();

  /** Without a `target`, it stands for all attempts of another replica. */
  constructor({ target, mode, added_messages, added_reasoning = 0 }: AskedAttempt) {
    if (target) this.upstream = target.name;
    this.mode = mode;
    this.added_messages = added_messages;
    this.added_reasoning = added_reasoning;
  }

  get text(): Count {
    return keptOf(this.#text);
  }

  get reasoning(): Count {
    return keptOf(this.#reasoning);
  }

  get tools(): Count {
    return sumOf([...this.#calls.values()].map(keptOf));
  }

  get swallowed(): Count {
    return sumOf([swallowedOf(this.#text), swallowedOf(this.#reasoning)]);
  }

  /** Everything that the provider sent, whether it became part of the run or not. */
  get arrived(): Count {
    const tallies = [this.#text, this.#reasoning, ...this.#calls.values()];
    return sumOf(tallies.map(({ deltas, came: characters }) => ({ deltas, characters })));
  }

  /** A delta that the provider sent. */
  arrive(delta: Delta): void {
    if (delta.kind === 'usage') this.reported = delta.usage;
    const tally = this.#tallyOf(delta);
    if (!tally) return;
    tally.deltas++;
    tally.came += charactersOf(delta);
  }

  /** A delta that became part of the run. */
  keep(delta: Delta): void {
    if (delta.kind === 'tool_cancel') this.#calls.delete(delta.index);
    const tally = this.#tallyOf(delta);
    if (tally) tally.kept += charactersOf(delta);
  }

  #tallyOf(delta: Delta): Tally | undefined {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
        return this.#text;
      case 'reasoning':
        return this.#reasoning;
      case 'tool_start':
      case 'tool_arguments': {
        const tally = this.#calls.get(delta.index) ?? newTally();
        this.#calls.set(delta.index, tally);
        return tally;
      }
      default:
        return undefined;
    }
  }
}

const newTally = (): Tally => ({ deltas: 0, came: 0, kept: 0 });

/** A seam joins what it held back into one delta, so deltas are shared out by characters. */
const keptOf = ({ deltas, came, kept }: Tally): Count => ({
  deltas: came === 0 ? 0 : Math.round((deltas * kept) / came),
  characters: kept,
});

const swallowedOf = (tally: Tally): Count => ({
  deltas: tally.deltas - keptOf(tally).deltas,
  characters: tally.came - tally.kept,
});

function charactersOf(delta: Delta): number {
  if (delta.kind === 'tool_start') return delta.name.length;
  return 'text' in delta ? delta.text.length : 0;
}
