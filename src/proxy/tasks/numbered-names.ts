import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';

/** How many times the name of another replica may be a moment ahead. */
const TURNS_MAX = 64;
/** Lists whose ends this replica has at hand. */
const LISTS_MAX = 10_000;

/** One list, and whose it is. */
export interface NumberedList {
  readonly owner: Owner;
  readonly name: string;
  /** Of a list that was emptied: what this replica remembers of the one before it counts no longer. */
  readonly era: string;
}

export interface NumberedName {
  readonly number: number;
  readonly name: string;
}

export interface NumberedNamesOptions {
  readonly notes: Notes;
  /** Of the notes that say which name has a number, and which number a name is to have. */
  readonly kinds: { readonly number: NoteKey['kind']; readonly turn: NoteKey['kind'] };
  readonly ttl_ms: number;
  /** The highest number there is. */
  readonly numbers_max: number;
}

/**
 * Lists of names with numbers from 1 on. A name is given the next number once, and keeps it. Each number is a note of its own
 * that is never changed, so all replicas see the same names, in the same order. Every method rejects where the store does not answer.
 */
export class NumberedNames {
  readonly #notes: Notes;
  readonly #kinds: NumberedNamesOptions['kinds'];
  readonly #ttl_ms: number;
  readonly #numbers_max: number;
  readonly #last = new Map<string, number>();
  /** Of each list that is added to here, the name that is numbered last: those of one replica would only be in each other's way. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor({ notes, kinds, ttl_ms, numbers_max }: NumberedNamesOptions) {
    this.#notes = notes;
    this.#kinds = kinds;
    this.#ttl_ms = ttl_ms;
    this.#numbers_max = numbers_max;
  }

  /** The highest number that this replica has seen; `undefined` where it has not seen the list. */
  seen(list: NumberedList): number | undefined {
    return this.#last.get(keyOf(list));
  }

  /**
   * The number of the name; `undefined` where the list is full. `known`: a number that was given, or 0, for a replica that has
   * not seen the list, or not for long.
   */
  async numberOf(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    const key = keyOf(list);
    const before = this.#queues.get(key);
    const numbering = (async () => {
      await before?.catch(() => {});
      return this.#claimNumber(list, name, known);
    })();
    this.#queues.set(key, numbering);
    try {
      return await numbering;
    } finally {
      if (this.#queues.get(key) === numbering) this.#queues.delete(key);
    }
  }

  /**
   * In each turn, all replicas that number this name at the same time agree on a number for it, and on the name that has the
   * number: this one, or another one that was a moment ahead.
   */
  async #claimNumber(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    const { owner } = list;
    const claim = (note: NoteKey, value: string) => this.#notes.claim(owner, note, value, this.#ttl_ms);
    let last = Math.max(known, this.seen(list) ?? 0);
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const number = Number(await claim(this.#turnNote(list, name, turn), String(last + 1)));
      if (number > this.#numbers_max) return undefined;
      const holder = await claim(this.#numberNote(list, number), name);
      this.#see(list, number);
      if (holder === name) return number;
      last = await this.lastOf(list, number);
    }
    return undefined;
  }

  /** The highest number that was given. `known`: one that was. */
  async lastOf(list: NumberedList, known: number): Promise<number> {
    const isThere = async (number: number) => (await this.nameAt(list, number)) !== undefined;
    let last = Math.max(known, this.seen(list) ?? 0);
    let stride = 1;
    while (await isThere(last + stride)) {
      last += stride;
      stride *= 2;
    }
    for (stride /= 2; stride >= 1; stride /= 2) if (await isThere(last + stride)) last += stride;
    return last;
  }

  /** `undefined` where there is none, or it is known no longer. */
  async nameAt(list: Omit<NumberedList, 'era'>, number: number): Promise<string | undefined> {
    return this.#notes.get(list.owner, this.#numberNote(list, number));
  }

  /** Those of the names from `first` to `last` that are still known, all asked for at once. */
  async names(list: NumberedList, first: number, last: number): Promise<readonly NumberedName[]> {
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const names = await Promise.all(numbers.map((number) => this.nameAt(list, number)));
    return names.flatMap((name, index) => (name === undefined ? [] : { number: first + index, name }));
  }

  /** Has the name keep its number for as long as if it had been given it now. False where another name has it. */
  async keep(list: NumberedList, { number, name }: NumberedName): Promise<boolean> {
    const holder = await this.nameAt(list, number);
    if (holder !== undefined && holder !== name) return false;
    await this.#notes.put(list.owner, this.#numberNote(list, number), name, this.#ttl_ms);
    return true;
  }

  /** Forgets a name, and that it had a number. */
  async remove(list: NumberedList, { number, name }: NumberedName): Promise<void> {
    const { owner } = list;
    let turn = 0;
    while ((await this.#notes.consume(owner, this.#turnNote(list, name, turn))) !== undefined) turn++;
    await this.#notes.consume(owner, this.#numberNote(list, number));
  }

  #see(list: NumberedList, number: number): void {
    if (number > (this.seen(list) ?? 0)) remember(this.#last, keyOf(list), number, LISTS_MAX);
  }

  #turnNote(list: NumberedList, name: string, turn: number): NoteKey {
    return { kind: this.#kinds.turn, name: JSON.stringify([list.name, name, turn]) };
  }

  #numberNote(list: Omit<NumberedList, 'era'>, number: number): NoteKey {
    return { kind: this.#kinds.number, name: JSON.stringify([list.name, number]) };
  }
}

const keyOf = ({ owner, name, era }: NumberedList): string => JSON.stringify([owner, name, era]);
