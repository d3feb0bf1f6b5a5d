import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import {
  type NumberedList,
  type NumberedName,
  NumberedNames,
  type NumberedNamesOptions,
  TURNS_MAX,
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

  /** The number of the name, which is added if it is not there. `known`, and `undefined`, as of {@link add}. */
  numberOf(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    return this.queued(list, () => this.#agreedNumber(list, name, known));
  }

  /**
   * In each turn, all replicas that number this name at the same time agree on a number for it, and on the name that has the
   * number: this one, or another one that was a moment ahead.
   */
  async #agreedNumber(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    const { numbers_max, ttl_ms } = this.#options;
    let last = Math.max(known, this.seen(list) ?? 0);
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const wanted = this.#notes.claim(
        list.owner,
        this.#turnNote(list, name, turn),
        String(last + 1),
        ttl_ms,
      );
      const number = Number(await wanted);
      if (number > numbers_max) return undefined;
      if (await this.claim(list, number, name)) return number;
      last = await this.lastOf(list, number);
    }
    return undefined;
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
