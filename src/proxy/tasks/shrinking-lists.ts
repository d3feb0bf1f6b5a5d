import type { NoteKey } from '../../checkpoint/notes.ts';
import { AgreedNumbers, type AgreedNumbersOptions } from './agreed-numbers.ts';
import type { NumberedList, NumberedName } from './numbered-names.ts';

interface ShrinkingListsOptions extends Omit<AgreedNumbersOptions, 'numbers_max'> {
  /** Of the note that says which number was given last. */
  readonly last: NoteKey['kind'];
}

/**
 * Lists of {@link AgreedNumbers} that lose their names in any order. What is left of such a list does not show where it ends,
 * so its last number is noted, or one shortly before that. Every method rejects where the store does not answer.
 */
export class ShrinkingLists {
  readonly #options: ShrinkingListsOptions;
  readonly #names: AgreedNumbers;

  constructor(options: ShrinkingListsOptions) {
    this.#options = options;
    this.#names = new AgreedNumbers({ ...options, numbers_max: Number.MAX_SAFE_INTEGER });
  }

  /** The number of the name, which is `known` where that was its number before, and is no other's by now. */
  async add(list: NumberedList, name: string, known?: number): Promise<number | undefined> {
    const last = await this.#lastNoted(list);
    const isKept = known !== undefined && (await this.#names.keep(list, { number: known, name }));
    const number = isKept ? known : await this.#names.numberOf(list, name, last);
    if (number === undefined) return undefined;
    const { notes, ttl_ms } = this.#options;
    await notes.put(list.owner, this.#lastNote(list), String(Math.max(last, number)), ttl_ms);
    return number;
  }

  /** The last number; 0 where none was given. */
  async last(list: NumberedList): Promise<number> {
    return this.#names.lastOf(list, await this.#lastNoted(list));
  }

  /** Those of the names from `first` to `last` that are still there. */
  names(list: NumberedList, first: number, last: number): Promise<readonly NumberedName[]> {
    return this.#names.names(list, first, last);
  }

  has(list: NumberedList, number: number): Promise<boolean> {
    return this.#names.nameAt(list, number).then((name) => name !== undefined);
  }

  remove(list: NumberedList, name: NumberedName): Promise<void> {
    return this.#names.remove(list, name);
  }

  async #lastNoted(list: NumberedList): Promise<number> {
    const last = Number(await this.#options.notes.get(list.owner, this.#lastNote(list)));
    return Number.isSafeInteger(last) ? last : 0;
  }

  #lastNote({ name }: NumberedList): NoteKey {
    return { kind: this.#options.last, name };
  }
}
