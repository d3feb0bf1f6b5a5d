import type { Delta, Usage } from '../plans/delta.ts';
import type { AttemptUsage, Count } from '../plans/usage-ledger.ts';
import type { PlannedAttempt } from './recovery-request.ts';

class Tally implements Count {
  deltas = 0;
  characters = 0;

  add(characters: number): void {
    this.deltas++;
    this.characters += characters;
  }
}

/** Counts what one attempt contributes while it runs. */
export class AttemptLedger implements AttemptUsage {
  readonly mode: AttemptUsage['mode'];
  readonly added_messages: readonly number[];
  readonly text = new Tally();
  readonly reasoning = new Tally();
  readonly swallowed = new Tally();
  reported?: Usage;
  readonly #calls = new Map<number, Tally>();

  constructor({ mode, added_messages }: PlannedAttempt) {
    this.mode = mode;
    this.added_messages = added_messages;
  }

  get tools(): Count {
    const sum = new Tally();
    for (const { deltas, characters } of this.#calls.values()) {
      sum.deltas += deltas;
      sum.characters += characters;
    }
    return sum;
  }

  /** A delta that became part of the run. */
  keep(delta: Delta): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
        this.text.add(delta.text.length);
        return;
      case 'reasoning':
        this.reasoning.add(delta.text.length);
        return;
      case 'tool_start':
        this.#call(delta.index).add(delta.name.length);
        return;
      case 'tool_arguments':
        this.#call(delta.index).add(delta.text.length);
        return;
      case 'tool_cancel':
        this.#calls.delete(delta.index);
        return;
      case 'usage':
        this.reported = delta.usage;
    }
  }

  /** A delta that the client had seen already, or will not see. */
  swallow(delta: Delta): void {
    if ('text' in delta) this.swallowed.add(delta.text.length);
  }

  #call(index: number): Tally {
    const tally = this.#calls.get(index) ?? new Tally();
    this.#calls.set(index, tally);
    return tally;
  }
}
