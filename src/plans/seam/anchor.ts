import { speakable } from '../../lib/text.ts';

/** Long enough to be no coincidence, short enough that a model repeats it faithfully. */
const ANCHOR_CHARACTERS = 24;
/** No anchor is longer: a model asked to repeat more than this begins to paraphrase. */
const ANCHOR_CHARACTERS_MAX = 600;
/** How far an anchor may be extended so that it begins where a line or a sentence does, or else a word. */
const LINE_REACH_CHARACTERS = 80;
const WORD_REACH_CHARACTERS = 24;

const LINE_OR_SENTENCE_END = /[\n.!?。！？]\s*$/u;

/**
 * The end of the delivered text that a nudge asks the model to repeat. Where such a place exists within reach it occurs
 * only once in what was delivered, so that finding it again proves where the continuation joins; it begins with a line,
 * a sentence or a word. White space at its end is part of it: only the anchor says how much of that there was.
 */
export function anchorOf(delivered: string): string {
  const text = speakable(delivered);
  const first = text.length - text.trimStart().length;
  const end = text.trimEnd().length;
  const latest = Math.max(first, end - ANCHOR_CHARACTERS);
  const earliest = Math.max(first, end - ANCHOR_CHARACTERS_MAX);
  return text.slice(niceStart(text, uniqueStart(text, earliest, latest), earliest));
}

/** The latest place up to which the end of `text` occurs only once; the earliest one where there is none. */
function uniqueStart(text: string, earliest: number, latest: number): number {
  // What begins before a place that is unique is unique too, so the places can be halved.
  let [from, to] = [earliest, latest];
  while (from < to) {
    const middle = (from + to + 1) >> 1;
    if (text.indexOf(text.slice(middle)) === middle) from = middle;
    else to = middle - 1;
  }
  return from;
}

/**
 * The nearest place before `start` at which a line or sentence begins, or a word, or else any character that is not
 * blank; the first of those behind it where there is none.
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
