import type { Chunking } from './script.ts';

const LONG_WORD = 8;
const ARGUMENT_FRAGMENT = 5;

/** Splits as a tokenizer might: a word includes the space before it, and a long word comes in halves. */
export function textPieces(text: string, chunk: Chunking = 'token'): string[] {
  if (chunk === 'part') return text === '' ? [] : [text];
  if (typeof chunk === 'number') return slices(text, chunk);
  return (text.match(/ ?\S+|\s/gu) ?? []).flatMap(halves);
}

export const argumentPieces = (json: string): string[] => slices(json, ARGUMENT_FRAGMENT);

function halves(word: string): string[] {
  const characters = [...word];
  if (characters.length <= LONG_WORD) return [word];
  const middle = characters.length >> 1;
  return [...halves(characters.slice(0, middle).join('')), ...halves(characters.slice(middle).join(''))];
}

/** By code points, because JSON can't carry half of a surrogate pair through UTF-8. */
function slices(text: string, size: number): string[] {
  const characters = [...text];
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += size) {
    pieces.push(characters.slice(start, start + size).join(''));
  }
  return pieces;
}
