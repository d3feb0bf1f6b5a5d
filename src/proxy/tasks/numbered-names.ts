import type { NoteKey, Notes } from '../../checkpoint/notes.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';

/** How often another replica's name may win the race for a number. */
const TURNS_MAX = 64;
/** Lists whose last number this replica caches. */
const LISTS_MAX = 10_000;
/** Batch size when searching for a name. */
const SEARCHED_AT_ONCE = 100;

/** A list and its owner. */
export interface NumberedList {
  readonly owner: Owner;
  readonly name: string;
  /** Changes when the list is emptied, which invalidates this replica's cache for it. */
  readonly era: string;
}

export interface NumberedName {
  readonly number: number;
  readonly name: string;
}

export interface NumberedNamesOptions {
  readonly notes: Notes;
  /** Kind of the notes that record which name has a number. */
  readonly kind: NoteKey['kind'];
  readonly ttl_ms: number;
  /** The highest permitted number. */
  readonly numbers_max: number;
}

/**
 * Lists of names, numbered from 1. Each number is a note that never changes, so all replicas see the same names in the
 * same order. Every method rejects if the store does not answer.
 */
export class NumberedNames {
  readonly #notes: Notes;
  readonly #kind: NoteKey['kind'];
  readonly #ttl_ms: number;
  readonly #numbers_max: number;
  readonly #last = new Map<string, number>();
  /** The last pending addition per list: additions by one replica would only compete with each other. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor({ notes, kind, ttl_ms, numbers_max }: NumberedNamesOptions) {
    this.#notes = notes;
    this.#kind = kind;
    this.#ttl_ms = ttl_ms;
    this.#numbers_max = numbers_max;
  }

  /** The highest number that this replica has seen; `undefined` if it has not seen the list. */
  seen(list: NumberedList): number | undefined {
    return this.#last.get(keyOf(list));
  }

  /**
   * Gives the name the next number; `undefined` if the list is full. A name added twice gets two numbers. `known`: an
   * assigned number, or 0; speeds up a replica that hasn't seen the list recently.
   */
  add(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    return this.claimed(list, name, known, (next) => next);
  }

  /** The name's last number. Reads all names above it. `known`: as in {@link add}. */
  async find(list: NumberedList, name: string, known: number): Promise<number | undefined> {
    for (let last = await this.lastOf(list, known); last > 0; last -= SEARCHED_AT_ONCE) {
      const names = await this.names(list, Math.max(1, last - SEARCHED_AT_ONCE + 1), last);
      const found = names.findLast((each) => each.name === name);
      if (found) return found.number;
    }
    return undefined;
  }

  /** The highest assigned number. `known`: an assigned number. */
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

  /** `undefined` if there is none, or it is no longer known. */
  async nameAt(list: Omit<NumberedList, 'era'>, number: number): Promise<string | undefined> {
    return this.#notes.get(list.owner, this.#note(list, number));
  }

  /** The names from `first` to `last` that are still known, read concurrently. */
  async names(list: NumberedList, first: number, last: number): Promise<readonly NumberedName[]> {
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const names = await Promise.all(numbers.map((number) => this.nameAt(list, number)));
    return names.flatMap((name, index) => (name === undefined ? [] : { number: first + index, name }));
  }

  /** Renews the retention of the name's number. False if another name has that number. */
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
   * Claims numbers from `numberFor` until one doesn't belong to another name. `numberFor` gets the next number that
   * seems free. Sequential per list.
   */
  protected claimed(
    list: NumberedList,
    name: string,
    known: number,
    numberFor: (next: number, turn: number) => number | Promise<number>,
  ): Promise<number | undefined> {
    const key = keyOf(list);
    return this.#queued(key, async () => {
      let last = Math.max(known, this.#last.get(key) ?? 0);
      for (let turn = 0; turn < TURNS_MAX; turn++) {
        const number = await numberFor(last + 1, turn);
        if (number > this.#numbers_max) return undefined;
        const holder = await this.#notes.claim(list.owner, this.#note(list, number), name, this.#ttl_ms);
        if (number > (this.#last.get(key) ?? 0)) remember(this.#last, key, number, LISTS_MAX);
        if (holder === name) return number;
        last = await this.lastOf(list, number);
      }
      return undefined;
    });
  }

  /** `key`: of the list. */
  async #queued<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#queues.get(key);
    const working = before !== undefined ? before.catch(() => {}).then(work) : work();
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
