const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Scripts and pictures that terminals draw two columns wide. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}])/u;
const PLAIN = /^[ -~]*$/;
const ELLIPSIS = '…';

/** Columns of a terminal. */
export const widthOf = (text: string): number =>
  PLAIN.test(text) ? text.length : charactersOf(text).reduce((sum, one) => sum + columnsOf(one), 0);

/** `text` in at most so many columns; what is left off is marked. */
export function fitted(text: string, columns_max: number): string {
  if (widthOf(text) <= columns_max) return text;
  let kept = '';
  let columns = widthOf(ELLIPSIS);
  for (const character of charactersOf(text)) {
    columns += columnsOf(character);
    if (columns > columns_max) break;
    kept += character;
  }
  return columns_max > 0 ? kept + ELLIPSIS : '';
}

export const padded = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(0, columns - widthOf(text)));

const charactersOf = (text: string): string[] =>
  Array.from(graphemes.segment(text), ({ segment }) => segment);

const columnsOf = (character: string): number => (WIDE.test(character) ? 2 : 1);
