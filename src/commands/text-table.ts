const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Characters that terminals draw two columns wide. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}])/u;
const PLAIN = /^[ -~]*$/;
const ELLIPSIS = '…';

export interface Column {
  readonly title: string;
  /** The column may be cut to this many terminal columns; if absent, it is never cut. */
  readonly width_min?: number;
  /** Columns with the highest value are omitted first if space runs out; if absent, the column always stays. */
  readonly expendable?: number;
  readonly align?: 'right';
}

const GAP = 2;

/**
 * Formats a table, no wider than `width` if its columns allow it. The first line contains the titles. Cells must be
 * printable.
 */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string[] {
  const shown = chosen(columns, rows, width);
  const widths = shrunk(shown, natural(shown, columns, rows), width);
  const lines = [columns.map(({ title }) => title), ...rows];
  return lines.map((cells) =>
    shown
      .map((column, place) => cell(cells[columns.indexOf(column)] ?? '', widths[place] ?? 0, column))
      .join(' '.repeat(GAP))
      .trimEnd(),
  );
}

/** Omits columns until the rest fits when cut to its minimum widths. */
function chosen(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): Column[] {
  const shown = [...columns];
  const least = () =>
    natural(shown, columns, rows).reduce(
      (sum, wanted, place) => sum + Math.min(wanted, shown[place]?.width_min ?? wanted) + GAP,
      -GAP,
    );
  const leave = columns
    .filter(({ expendable }) => expendable !== undefined)
    .sort((one, other) => (other.expendable ?? 0) - (one.expendable ?? 0));
  for (const column of leave) {
    if (least() <= width) break;
    shown.splice(shown.indexOf(column), 1);
  }
  return shown;
}

const natural = (
  shown: readonly Column[],
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): number[] =>
  shown.map((column) => {
    const place = columns.indexOf(column);
    return rows.reduce((most, cells) => Math.max(most, widthOf(cells[place] ?? '')), widthOf(column.title));
  });

/** Removes the excess from the widest columns that can be cut. */
function shrunk(shown: readonly Column[], widths: number[], width: number): number[] {
  let excess = widths.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [place, each] of widths.entries()) {
      const isCuttable = each > (shown[place]?.width_min ?? each);
      if (isCuttable && each > (widths[widest] ?? 0)) widest = place;
    }
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess--;
  }
  return widths;
}

function cell(text: string, width: number, { align }: Column): string {
  const short = fitted(text, width);
  const space = ' '.repeat(Math.max(0, width - widthOf(short)));
  return align === 'right' ? space + short : short + space;
}

/** The number of terminal columns that the text takes. */
export const widthOf = (text: string): number =>
  PLAIN.test(text) ? text.length : charactersOf(text).reduce((sum, one) => sum + columnsOf(one), 0);

/** Cuts the text to at most `columns_max` columns and marks the cut. */
function fitted(text: string, columns_max: number): string {
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

const charactersOf = (text: string): string[] =>
  Array.from(graphemes.segment(text), ({ segment }) => segment);

const columnsOf = (character: string): number => (WIDE.test(character) ? 2 : 1);
