import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import {
  type NumberedList,
  type NumberedName,
  NumberedNames,
  type NumberedNamesOptions,
} from './numbered-names.ts';

export interface AgreedNumbersOptions extends NumberedNamesOptions {
  /** Kind of the notes that record the number chosen for a name. */
  readonly turn: NoteKey['kind'];
}

/**
 * {@link NumberedNames} for names that several requests or replicas may add at once: each name still gets one number.
 */
export class AgreedNumbers extends NumberedNames {
  readonly #options: AgreedNumbersOptions;
  readonly #notes: Notes;

  constructor(options: AgreedNumbersOptions) {
    super(options);
    this.#options = options;
    this.#notes = options.notes;
  }

  /**
   * The name's number; adds the name if necessary. `known` and `undefined`: as in {@link add}. In each turn, all
   * replicas that add this name at once agree on a number and on its holder: this name, or another one that was faster.
   */
  numberOf(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    const { ttl_ms } = this.#options;
    return this.claimed(list, name, known, async (next, turn) => {
      const note = this.#turnNote(list, name, turn);
      return Number(await this.#notes.claim(list.owner, note, String(next), ttl_ms));
    });
  }

  /** Removes the name and the record of its number. */
  override async remove(list: NumberedList, numbered: NumberedName): Promise<void> {
    let turn = 0;
    const next = () => this.#notes.consume(list.owner, this.#turnNote(list, numbered.name, turn++));
    while ((await next()) !== undefined);
    await super.remove(list, numbered);
  }

  #turnNote(list: NumberedList, name: string, turn: number): NoteKey {
    return { kind: this.#options.turn, name: JSON.stringify([list.name, name, turn]) };
  }
}
