import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';

/** How many times the name of another replica may be a moment ahead. */
const TURNS_MAX = 64;
/** Lists whose ends this replica has at hand. */
const LISTS_MAX = 10_000;
/** How many names are asked for at once where one of them is looked for. */
const SEARCHED_AT_ONCE = 100;

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
  /** Of the notes that say which name has a number. */
  readonly kind: NoteKey['kind'];
  readonly ttl_ms: number;
  /** The highest number there is. */
  readonly numbers_max: number;
}

/**
 * Lists of names with numbers from 1 on. Each number is a note of its own that is never changed, so all replicas see the same
 * names, in the same order. Every method rejects where the store does not answer.
 */
export class NumberedNames {
  readonly #notes: Notes;
  readonly #kind: NoteKey['kind'];
  readonly #ttl_ms: number;
  readonly #numbers_max: number;
  readonly #last = new Map<string, number>();
  /** Of each list that is added to here, the name that is numbered last: those of one replica would only be in each other's way. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor({ notes, kind, ttl_ms, numbers_max }: NumberedNamesOptions) {
    this.#notes = notes;
    this.#kind = kind;
    this.#ttl_ms = ttl_ms;
    this.#numbers_max = numbers_max;
  }

  /** The highest number that this replica has seen; `undefined` where it has not seen the list. */
  seen(list: NumberedList): number | undefined {
    return this.#last.get(keyOf(list));
  }

  /**
   * Gives the name the next number; `undefined` where the list is full. A name that is added twice has two. `known`: a number
   * that was given, or 0, for a replica that has not seen the list, or not for long.
   */
  add(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    return this.claimed(list, name, known, async (next) => next);
  }

  /** The last number that the name was given. It takes as many reads as there are numbers above it. `known`: as of {@link add}. */
  async find(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    for (let last = await this.lastOf(list, known); last > 0; last -= SEARCHED_AT_ONCE) {
      const names = await this.names(list, Math.max(1, last - SEARCHED_AT_ONCE + 1), last);
      const found = names.findLast((each) => each.name === name);
      if (found) return found.number;
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
    return this.#notes.get(list.owner, this.#note(list, number));
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
    await this.#notes.put(list.owner, this.#note(list, number), name, this.#ttl_ms);
    return true;
  }

  async remove({ owner, ...list }: NumberedList, { number }: NumberedName): Promise<void> {
    await this.#notes.consume(owner, this.#note(list, number));
  }

  /**
   * Claims a number for the name, which `numberFor` chooses where `next` seems to be free, until one is not another name's. One
   * name of a list after the other.
   */
  protected claimed(
    list: NumberedList,
    name: string,
    known: number,
    numberFor: (next: number, turn: number) => Promise<number>,
  ): Promise<number | undefined> {
    return this.#queued(list, async () => {
      let last = Math.max(known, this.seen(list) ?? 0);
      for (let turn = 0; turn < TURNS_MAX; turn++) {
        const number = await numberFor(last + 1, turn);
        if (number > this.#numbers_max) return undefined;
        const holder = await this.#notes.claim(list.owner, this.#note(list, number), name, this.#ttl_ms);
        if (number > (this.seen(list) ?? 0)) remember(this.#last, keyOf(list), number, LISTS_MAX);
        if (holder === name) return number;
        last = await this.lastOf(list, number);
      }
      return undefined;
    });
  }

  async #queued<Result>(list: NumberedList, work: () => Promise<Result>): Promise<Result> {
    const key = keyOf(list);
    const before = this.#queues.get(key);
    const working = (async () => {
      await before?.catch(() => {});
      return work();
    })();
    this.#queues.set(key, working);
    try {
      return await working;
    } finally {
      if (this.#queues.get(key) === working) this.#queues.delete(key);
    }
  }

  #note({ name }: Pick<NumberedList, 'name'>, number: number): NoteKey {
    return { kind: this.#kind, name: JSON.stringify([name, number]) };
  }
}

const keyOf = ({ owner, name, era }: NumberedList): string => JSON.stringify([owner, name, era]);
