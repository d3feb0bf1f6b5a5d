import type { AttemptUsage, Count } from '../../plans/attempt-usage.ts';
import type { Delta, Usage } from '../../plans/delta.ts';
import type { PlannedAttempt } from './next-attempt/recovery-request.ts';

/** Deltas of one kind: how many came, and how much of what they said became part of the run. */
class Tally {
  deltas = 0;
  came = 0;
  kept = 0;

  arrive(characters: number): void {
    this.deltas++;
    this.came += characters;
  }

  keep(characters: number): void {
    this.kept += characters;
  }

  /** A seam joins what it held back into one delta, so deltas are shared out by characters. */
  get keptCount(): Count {
    const deltas = this.came === 0 ? 0 : Math.round((this.deltas * this.kept) / this.came);
    return { deltas, characters: this.kept };
  }

  get swallowedCount(): Count {
    return { deltas: this.deltas - this.keptCount.deltas, characters: this.came - this.kept };
  }
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
  readonly #text = new Tally();
  readonly #reasoning = new Tally();
  readonly #calls = new Map<number, Tally>();

  /** There is no target where the attempts of another replica are told as one. */
  constructor({ target, mode, added_messages, added_reasoning = 0 }: AskedAttempt) {
    if (target) this.upstream = target.name;
    this.mode = mode;
    this.added_messages = added_messages;
    this.added_reasoning = added_reasoning;
  }

  get text(): Count {
    return this.#text.keptCount;
  }

  get reasoning(): Count {
    return this.#reasoning.keptCount;
  }

  get tools(): Count {
    return sum([...this.#calls.values()].map((tally) => tally.keptCount));
  }

  get swallowed(): Count {
    return sum([this.#text.swallowedCount, this.#reasoning.swallowedCount]);
  }

  /** Everything that the provider sent, whether it became part of the run or not. */
  get arrived(): Count {
    const tallies = [this.#text, this.#reasoning, ...this.#calls.values()];
    return sum(tallies.map(({ deltas, came: characters }) => ({ deltas, characters })));
  }

  /** A delta that the provider sent. */
  arrive(delta: Delta): void {
    if (delta.kind === 'usage') this.reported = delta.usage;
    else this.#tallyOf(delta)?.arrive(charactersOf(delta));
  }

  /** A delta that became part of the run. */
  keep(delta: Delta): void {
    if (delta.kind === 'tool_cancel') this.#calls.delete(delta.index);
    else this.#tallyOf(delta)?.keep(charactersOf(delta));
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
        const tally = this.#calls.get(delta.index) ?? new Tally();
        this.#calls.set(delta.index, tally);
        return tally;
      }
      default:
        return undefined;
    }
  }
}

function charactersOf(delta: Delta): number {
  if (delta.kind === 'tool_start') return delta.name.length;
  return 'text' in delta ? delta.text.length : 0;
}

function sum(counts: readonly Count[]): Count {
  return counts.reduce(
    (total, { deltas, characters }) => ({
      deltas: total.deltas + deltas,
      characters: total.characters + characters,
    }),
    { deltas: 0, characters: 0 },
  );
}
