import { dirname } from 'node:path/posix';
import type { Import } from './imports.ts';

/** All imports from files of one folder to files of another. */
export interface FolderPair {
  readonly from: string;
  readonly to: string;
  readonly imports: readonly Import[];
}

/** Folders that all reach each other by imports, so that none can be read or moved without the others. */
export interface Circle {
  readonly folders: readonly string[];
  /** The pairs within it, those with the fewest imports first. */
  readonly pairs: readonly FolderPair[];
}

/** Pairs of different folders; a subfolder counts as a folder of its own. */
export function folderPairs(imports: readonly Import[]): FolderPair[] {
  const crossing = imports.filter(({ from, to }) => dirname(from) !== dirname(to));
  const grouped = Map.groupBy(crossing, ({ from, to }) => `${dirname(from)} → ${dirname(to)}`);
  return [...grouped.values()].flatMap((group) => {
    const [first] = group;
    return first ? [{ from: dirname(first.from), to: dirname(first.to), imports: group }] : [];
  });
}

/** Strongly connected components with more than one folder, the largest first. */
export function circlesOf(pairs: readonly FolderPair[]): Circle[] {
  const reach = reachability(pairs);
  const reaches = (from: string, to: string) => reach.get(from)?.has(to) ?? false;
  const left = new Set([...reach.keys()].filter((folder) => reaches(folder, folder)));
  const circles: Circle[] = [];
  for (const folder of left) {
    const folders = [...left].filter((other) => reaches(folder, other) && reaches(other, folder));
    for (const member of folders) left.delete(member);
    const within = pairs.filter(({ from, to }) => folders.includes(from) && folders.includes(to));
    circles.push({ folders, pairs: within.sort((one, other) => one.imports.length - other.imports.length) });
  }
  return circles.sort((one, other) => other.folders.length - one.folders.length);
}

/** The folders that each folder reaches in one or more steps. */
function reachability(pairs: readonly FolderPair[]): ReadonlyMap<string, ReadonlySet<string>> {
  const next = Map.groupBy(pairs, ({ from }) => from);
  return new Map(
    [...next.keys()].map((start) => {
      const reached = new Set<string>();
      const pending = [start];
      for (const folder of pending) {
        for (const { to } of next.get(folder) ?? []) {
          if (reached.has(to)) continue;
          reached.add(to);
          pending.push(to);
        }
      }
      return [start, reached];
    }),
  );
}
