import { basename } from 'node:path/posix';
import type { Circle, FolderPair } from './circles.ts';
import { type Import, importerCounts, type SourceFile } from './imports.ts';
import { filesBeyond, filesOf, type LiveFigures, type ResetCalls, withoutFunctions } from './live-figures.ts';
import { linesOf } from './sizes.ts';
import { type Figure, isMet, rangeText, TARGETS } from './targets.ts';

/** Imports listed for each pair of folders in a circle. It's easiest to break at a pair with few. */
const IMPORTS_SHOWN = 3;
const LARGEST_SHOWN = 10;
/** A file with one importer and at most this many lines may belong in that importer. */
const SMALL_FILE_LINES = 45;

/** The input for the listing. */
export interface Material {
  readonly live: LiveFigures;
  readonly files: readonly SourceFile[];
  readonly imports: readonly Import[];
  readonly pairs: readonly FolderPair[];
}

/** One line for each figure: name, measured value, target, `met` or `missed`. */
export function figureTable(measured: Readonly<Record<Figure, number>>): string {
  const rows = (Object.keys(TARGETS) as Figure[]).map((figure) => {
    const target = TARGETS[figure];
    const verdict = isMet(target, measured[figure]) ? 'met' : 'missed';
    return [target.name, String(measured[figure]), rangeText(target), verdict];
  });
  return columns([['figure', 'measured', 'target', ''], ...rows]);
}

/** Figures without a target that put those with one into perspective. */
export function surroundings({ event, prefill, nudge }: LiveFigures, files: readonly SourceFile[]): string {
  const lines = files.map(linesOf);
  const sum = (key: 'all' | 'comment' | 'blank') => lines.reduce((total, counts) => total + counts[key], 0);
  const code = sum('all') - sum('comment') - sum('blank');
  const reset = ({ before, after }: ResetCalls) => {
    const further = withoutFunctions(after, before);
    const added = filesBeyond(after, event).length;
    return `${added} files in addition; ${further.length} functions in ${filesOf(further).size} files that the run had not called before`;
  };
  return section('Without a target', [
    `functions that one healthy event calls: ${event.length}`,
    `TCP reset, continued by a prefill: ${reset(prefill)}`,
    `TCP reset, continued by a nudge: ${reset(nudge)}`,
    `lines: ${code} code + ${sum('comment')} comment + ${sum('blank')} blank; comment : code = ${(sum('comment') / code).toFixed(2)}`,
    `largest files: ${largest(files)}`,
  ]);
}

/** A circle with its pairs of folders, and the first imports of each pair. */
export function circleText({ folders, pairs }: Circle, shown = IMPORTS_SHOWN): string {
  return section(
    `Circle of ${folders.length} folders: ${folders.join(', ')}`,
    pairs.flatMap((pair) => pairLines(pair, shown)),
  );
}

/** The details behind the figures. */
export function listing({ live, files, imports, pairs }: Material): string {
  const counts = importerCounts(imports);
  const lengths = new Map(files.map((file) => [file.path, linesOf(file).all]));
  const small = imports.filter(
    ({ to }) => counts.get(to) === 1 && (lengths.get(to) ?? 0) <= SMALL_FILE_LINES,
  );
  const popular = [...counts].sort(([, one], [, other]) => other - one);
  return [
    section(
      'Calls of one healthy event',
      live.event.map(({ file, name, count }) => `${count} × ${file} ${name || '(anonymous)'}`),
    ),
    section('Files in addition for a TCP reset', filesBeyond(live.prefill.after, live.event)),
    section(
      'Objects that one open run holds',
      Object.entries(live.run).map(([name, count]) => `${count} × ${name}`),
    ),
    section(
      `Files of at most ${SMALL_FILE_LINES} lines with one importer`,
      small.map(({ from, to }) => `${to} (${lengths.get(to)} lines) ← ${from}`),
    ),
    section(
      'Importers of each file',
      popular.map(([path, count]) => `${count} × ${path}`),
    ),
    section(
      'Imports between folders',
      pairs.flatMap((pair) => pairLines(pair, pair.imports.length)),
    ),
  ].join('\n');
}

function pairLines({ from, to, imports }: FolderPair, shown: number): string[] {
  const rest = imports.length - shown;
  return [
    `${from} → ${to}: ${imports.length}`,
    ...imports.slice(0, shown).map((each) => `    ${basename(each.from)} → ${basename(each.to)}`),
    ...(rest > 0 ? [`    and ${rest} more, with --list`] : []),
  ];
}

function largest(files: readonly SourceFile[]): string {
  return files
    .map((file) => ({ path: file.path, lines: linesOf(file).all }))
    .sort((one, other) => other.lines - one.lines)
    .slice(0, LARGEST_SHOWN)
    .map(({ path, lines }) => `${path} ${lines}`)
    .join(', ');
}

const section = (title: string, lines: readonly string[]): string =>
  [`\n${title}`, ...lines.map((line) => `  ${line}`)].join('\n');

/** Columns as wide as their widest cell; the second one holds numbers. */
function columns(rows: readonly (readonly string[])[]): string {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 1 ? cell.padStart(widthOf(1)) : cell.padEnd(widthOf(column))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
