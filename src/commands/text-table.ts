import { fitted, padded, widthOf } from './text-width.ts';

export interface Column {
  readonly title: string;
  /** May be cut down to so many columns of the terminal; without it, it is never cut. */
  readonly width_min?: number;
  /** Left out where there is no room, the highest first; without it, it always stays. */
  readonly expendable?: number;
  readonly align?: 'right';
}

const GAP = 2;

/**
 * Lines of a table, no wider than `width` as far as its columns allow. The first line has the titles. Cells must be
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

/** Without the columns that there is no room for even when the others are cut. */
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

/** Takes what is too much from the widest column that can be cut, one by one. */
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
  return align === 'right' ? ' '.repeat(Math.max(0, width - widthOf(short))) + short : padded(short, width);
}
