import type { NoteKey } from '../../checkpoint/notes.ts';
import { AgreedNumbers, type AgreedNumbersOptions } from './agreed-numbers.ts';
import type { NumberedList, NumberedName } from './numbered-names.ts';

interface ShrinkingListsOptions extends Omit<AgreedNumbersOptions, 'numbers_max'> {
  /** Kind of the note with the last assigned number. */
  readonly last: NoteKey['kind'];
}

/**
 * {@link AgreedNumbers} whose names may be removed in any order. The remaining names don't show where such a list ends,
 * so a note contains its last number, or one slightly before. Every method rejects if the store does not answer.
 */
export class ShrinkingLists {
  readonly #options: ShrinkingListsOptions;
  readonly #names: AgreedNumbers;

  constructor(options: ShrinkingListsOptions) {
    this.#options = options;
    this.#names = new AgreedNumbers({ ...options, numbers_max: Number.MAX_SAFE_INTEGER });
  }

  /** The name's number: `known`, if the name had it before and no other name has it now. */
  async add(list: NumberedList, name: string, known?: number): Promise<number | undefined> {
    const last = await this.#lastNoted(list);
    const isKept = known !== undefined && (await this.#names.keep(list, { number: known, name }));
    const number = isKept ? known : await this.#names.numberOf(list, name, last);
    if (number === undefined) return undefined;
    const { notes, ttl_ms } = this.#options;
    await notes.put(list.owner, this.#lastNote(list), String(Math.max(last, number)), ttl_ms);
    return number;
  }

  /** The last number; 0 if none was assigned. */
  async last(list: NumberedList): Promise<number> {
    return this.#names.lastOf(list, await this.#lastNoted(list));
  }

  /** The names from `first` to `last` that still exist. */
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
