import { speakable } from '../../lib/text.ts';
import { Head, type Joint, type Verdict } from './joint.ts';
import { beginsAgain, continuesText, preambleOf } from './plausibility.ts';
import { meantRepetitions, repeatedWord, singleRepetition } from './repetition.ts';

/** Minimum length: unlikely to occur by chance, and short enough for a model to repeat faithfully. */
const ANCHOR_CHARACTERS = 24;
/** Maximum length: a model that is asked to repeat more than this starts to paraphrase. */
const ANCHOR_CHARACTERS_MAX = 600;
/** How far back an anchor may be extended to start at a line or sentence or, failing that, at a word. */
const LINE_REACH_CHARACTERS = 80;
const WORD_REACH_CHARACTERS = 24;

const LINE_OR_SENTENCE_END = /[\n.!?。！？]\s*$/u;

/**
 * The end of the delivered text, which a nudge asks the model to repeat. If possible, it occurs only once in that text,
 * so that finding it again proves where the continuation joins, and it starts at a line, sentence or word. It includes
 * trailing white space, because nothing else tells the model how much of that was delivered.
 */
export function anchorOf(delivered: string): string {
  const text = speakable(delivered);
  const first = text.length - text.trimStart().length;
  const end = text.trimEnd().length;
  const latest = Math.max(first, end - ANCHOR_CHARACTERS);
  const earliest = Math.max(first, end - ANCHOR_CHARACTERS_MAX);
  return text.slice(niceStart(text, uniqueStart(text, earliest, latest), earliest));
}

/** The latest start up to `latest` from which the rest of `text` occurs only once; `earliest` if there is none. */
function uniqueStart(text: string, earliest: number, latest: number): number {
  // Every start before a unique one is unique too, which allows a binary search.
  let [from, to] = [earliest, latest];
  while (from < to) {
    const middle = (from + to + 1) >> 1;
    if (text.indexOf(text.slice(middle)) === middle) from = middle;
    else to = middle - 1;
  }
  return from;
}

/**
 * The nearest position up to `start` at which a line or sentence starts, or else a word, or else any character that
 * isn't blank. If there is none, the first such character after `start`.
 */
function niceStart(text: string, start: number, earliest: number): number {
  const isBlank = (place: number) => text.charAt(place).trim() === '';
  const isLine = (place: number) => LINE_OR_SENTENCE_END.test(text.slice(Math.max(0, place - 8), place));
  const isWord = (place: number) => isBlank(place - 1);
  const search = (reach: number, fits: (place: number) => boolean): number | undefined => {
    for (let place = start; place >= earliest && place >= start - reach; place--)
      if (!isBlank(place) && (place === 0 || fits(place))) return place;
    return undefined;
  };
  const isWhole = (place: number) => !/^[\udc00-\udfff]/.test(text.charAt(place));
  const later = () => text.length - text.slice(start).trimStart().length;
  return (
    search(LINE_REACH_CHARACTERS, isLine) ??
    search(WORD_REACH_CHARACTERS, isWord) ??
    search(start, isWhole) ??
    later()
  );
}

/**
 * For answers to a nudge, which should begin with the anchor: removes the anchor once. If a model repeats more than it
 * was asked to, the join is at the shortest repetition that ends with the anchor.
 *
 * An answer that lacks the anchor but repeats something else is rejected as ambiguous, so that the next nudge can
 * insist. The `lastResort` joins it as well as it can.
 */
export class AnchorJoint implements Joint {
  readonly #delivered: string;
  /** What the model can repeat: the delivered text without white space at its end. */
  readonly #visible: string;
  /** What was delivered after {@link #visible}. */
  readonly #shown: string;
  readonly #anchor_characters: number;
  readonly #lastResort: boolean;
  /** Replaced by a new one after a lead-in. */
  #head: Head;
  /** Where the lead-in ends, if there is one. */
  #preamble = 0;

  constructor(delivered: string, lastResort: boolean) {
    this.#delivered = delivered;
    this.#visible = speakable(delivered).trimEnd();
    this.#shown = delivered.slice(this.#visible.length);
    this.#anchor_characters = anchorOf(delivered).trimEnd().length;
    this.#lastResort = lastResort;
    this.#head = new Head(this.#visible);
  }

  push(character: string): Verdict | undefined {
    this.#head.push(character);
    return this.#anchored() ?? this.#decided();
  }

  end(callsFollow: boolean): Verdict {
    const verdict = this.#skipPreamble(callsFollow);
    if (verdict) return verdict;
    const { text, begin, answer } = this.#head;
    // Without any text, the rest is tool calls, or the answer was already complete.
    if (answer === '' && begin === this.#preamble) return { kind: 'exact', taken: text.length, shown: '' };
    const isOnlyPreamble = !callsFollow && answer !== '' && preambleOf(answer, true) === answer;
    return isOnlyPreamble ? { rejected: 'no_continuation' } : this.#unanchored(true);
  }

  #anchored(): Verdict | undefined {
    const { text, answer, repetition } = this.#head;
    const length = repetition.alignments.at(-1) ?? 0;
    if (length < this.#anchor_characters || length !== answer.length) return undefined;
    return { kind: 'anchored', taken: text.length, shown: this.#shown };
  }

  #decided(): Verdict | undefined {
    if (this.#head.isUndecided) return undefined;
    const before = this.#head.begin;
    const verdict = this.#skipPreamble(false);
    return verdict ?? (this.#head.begin === before ? this.#unanchored(false) : undefined);
  }

  /** Restarts the comparison after the lead-in, if there is one. */
  #skipPreamble(callsFollow: boolean): Verdict | undefined {
    const { text, begin, answer } = this.#head;
    const preamble = preambleOf(answer, callsFollow);
    if (preamble === '') return undefined;
    this.#preamble = begin + preamble.length;
    this.#head = new Head(this.#visible, text.slice(0, this.#preamble));
    for (const character of answer.slice(preamble.length).split('')) {
      const verdict = this.push(character);
      if (verdict) return verdict;
    }
    return undefined;
  }

  #unanchored(ended: boolean): Verdict {
    const { text, begin, repetition } = this.#head;
    const answer = text.slice(this.#preamble);
    if (beginsAgain(repetition.beginning, this.#visible, !this.#lastResort))
      return { rejected: ended ? 'ended_early' : 'diverged' };
    if (!continuesText(this.#delivered, answer)) return { rejected: 'no_continuation' };
    const word = repeatedWord(this.#delivered, answer);
    const isRepeated = word > 0 || this.#preamble > 0 || meantRepetitions(repetition).length > 0;
    if (isRepeated && !this.#lastResort) return { rejected: 'ambiguous' };
    if (word > 0) return { kind: 'aligned', taken: this.#preamble + word, shown: this.#shown };
    const length = singleRepetition(repetition, this.#visible);
    if (length !== undefined) return { kind: 'aligned', taken: begin + length, shown: this.#shown };
    const half = this.#delivered.slice(speakable(this.#delivered).length);
    return { kind: 'unanchored', taken: this.#preamble, shown: half };
  }
}
