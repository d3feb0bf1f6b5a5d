import type { NumberedName } from '../tasks/numbered-names.ts';
import { READ_AT_ONCE } from './run-documents.ts';
import { OPEN_MAX, type SeenNumbers } from './task-position.ts';

/** How many open entries each look reads, in rotation. */
const OPEN_READ_MAX = 8;

/** The observed state of one entry. */
export interface Observed {
  /** Changes whenever there is news; empty if there is nothing to report. */
  readonly token: string;
  /** The document for the client. */
  readonly document: object;
  /** It will not change again. */
  readonly isFinal: boolean;
  readonly isUnderWay: boolean;
}

interface Open<Seen> {
  readonly token: string;
  /** Unknown until the first observation, like `observed`. */
  readonly name?: string;
  readonly observed?: Seen;
}

interface Numbered<Seen> {
  /** Names that are still known, from `first` to `last`. */
  names(first: number, last: number): Promise<readonly NumberedName[]>;
  /** `before`: the previous observation. */
  observe(each: NumberedName, before: Seen | undefined): Promise<Seen>;
}

/**
 * Finds news among numbered entries from a position on. The cost of a look doesn't depend on their number. An
 * interrupted look can be repeated: no client receives the same news twice.
 */
export class NumberedWatch<Seen extends Observed> {
  readonly #numbered: Numbered<Seen>;
  readonly #signal: AbortSignal;
  readonly #open: Map<number, Open<Seen>>;
  #last: number;
  /** The number of the open entry that was read last. */
  #turn = 0;

  /** `signal`: ends a look early. */
  constructor({ last, open }: SeenNumbers, numbered: Numbered<Seen>, signal: AbortSignal) {
    this.#numbered = numbered;
    this.#signal = signal;
    this.#last = last;
    this.#open = new Map([...open].map(([number, token]) => [number, { token }]));
  }

  get position(): SeenNumbers {
    return {
      last: this.#last,
      open: new Map([...this.#open].map(([number, { token }]) => [number, token])),
    };
  }

  /** Whether any entry is in progress, as far as known. */
  get isUnderWay(): boolean {
    return [...this.#open.values()].some(({ observed }) => observed?.isUnderWay ?? true);
  }

  /** `last`: the highest number. Resolves with true if there was news. */
  async look(last: number, tell: (document: object) => Promise<void>): Promise<boolean> {
    const isOldNews = await this.#lookAgain(tell);
    const isNews = await this.#lookOn(last, tell);
    return isOldNews || isNews;
  }

  async #lookAgain(tell: (document: object) => Promise<void>): Promise<boolean> {
    const found = await Promise.all(this.#next().map(([number, open]) => this.#observe(number, open)));
    let isNews = false;
    for (const [number, name, observed] of found) {
      if (observed === undefined) this.#open.delete(number);
      else if (await this.#note({ number, name }, observed, tell)) isNews = true;
    }
    return isNews;
  }

  /** The next entries in rotation, which wraps around. */
  #next(): readonly [number, Open<Seen>][] {
    const all = [...this.#open];
    const behind = all.filter(([number]) => number > this.#turn);
    const next = [...behind, ...all.slice(0, all.length - behind.length)].slice(0, OPEN_READ_MAX);
    this.#turn = next.at(-1)?.[0] ?? 0;
    return next.toSorted(([one], [other]) => one - other);
  }

  /** Returns no observation if the entry is no longer known. */
  async #observe(number: number, { name: known, observed }: Open<Seen>) {
    const name = known ?? (await this.#numbered.names(number, number))[0]?.name;
    if (name === undefined) return [number, ''] as const;
    return [number, name, await this.#numbered.observe({ number, name }, observed)] as const;
  }

  async #lookOn(last: number, tell: (document: object) => Promise<void>): Promise<boolean> {
    let isNews = false;
    while (this.#last < last && !this.#signal.aborted) {
      const end = Math.min(this.#last + READ_AT_ONCE, last);
      const names = await this.#numbered.names(this.#last + 1, end);
      const found = await Promise.all(names.map((each) => this.#numbered.observe(each, undefined)));
      for (const [index, each] of names.entries()) {
        const observed = found[index];
        this.#last = each.number;
        if (observed && (await this.#note(each, observed, tell))) isNews = true;
      }
      this.#last = end;
    }
    return isNews;
  }

  async #note(
    { number, name }: NumberedName,
    observed: Seen,
    tell: (document: object) => Promise<void>,
  ): Promise<boolean> {
    const { token, document, isFinal } = observed;
    const told = this.#open.get(number)?.token ?? '';
    if (isFinal) this.#open.delete(number);
    else this.#open.set(number, { token, name, observed });
    const [first] = this.#open.keys();
    if (this.#open.size > OPEN_MAX && first !== undefined) this.#open.delete(first);
    if (token === told || token === '') return false;
    await tell(document);
    return true;
  }
}
