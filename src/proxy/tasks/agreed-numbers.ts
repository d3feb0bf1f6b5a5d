import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import {
  type NumberedList,
  type NumberedName,
  NumberedNames,
  type NumberedNamesOptions,
} from './numbered-names.ts';

export interface AgreedNumbersOptions extends NumberedNamesOptions {
  /** Of the notes that say which number a name is to have. */
  readonly turn: NoteKey['kind'];
}

/** Lists of {@link NumberedNames} that several requests and replicas may add the same name to: it has one number all the same. */
export class AgreedNumbers extends NumberedNames {
  readonly #options: AgreedNumbersOptions;
  readonly #notes: Notes;

  constructor(options: AgreedNumbersOptions) {
    super(options);
    this.#options = options;
    this.#notes = options.notes;
  }

  /**
   * The number of the name, which is added if it is not there. `known`, and `undefined`, as of {@link add}. In each turn, all
   * replicas that number this name at the same time agree on a number for it, and on the name that has the number: this one, or
   * another one that was a moment ahead.
   */
  numberOf(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    const { ttl_ms } = this.#options;
    return this.claimed(list, name, known, async (next, turn) => {
      const note = this.#turnNote(list, name, turn);
      return Number(await this.#notes.claim(list.owner, note, String(next), ttl_ms));
    });
  }

  /** Forgets the name, and that it had a number. */
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
