import { dirname, normalize } from 'node:path/posix';

/** `path` is relative to the repository, with slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly from: string;
  readonly to: string;
}

/** Relies on Biome's format: statements start a line, and specifiers have single quotes. */
const STATEMENT = /^(?:import|export)\s(?:[^;'"`]*\sfrom\s)?'(\.[^']+)'/gm;
/** Modules loaded on demand and inline types of imports; comments contain no such calls. */
const EXPRESSION = /\bimport\('(\.[^']+)'\)/g;

/**
 * All imports between the files, including types, each pair once. Throws if a relative specifier matches none of them.
 */
export function importsOf(files: readonly SourceFile[]): Import[] {
  const paths = new Set(files.map(({ path }) => path));
  return files.flatMap(({ path, text }) => {
    const specifiers = [STATEMENT, EXPRESSION].flatMap((pattern) =>
      [...text.matchAll(pattern)].map(([, specifier = '']) => specifier),
    );
    return [...new Set(specifiers)].map((specifier) => {
      const to = normalize(`${dirname(path)}/${specifier}`);
      if (!paths.has(to)) throw new Error(`${path} imports ${specifier}, which is no source file`);
      return { from: path, to };
    });
  });
}

/** How many files import each file; files without importers are absent. */
export function importerCounts(imports: readonly Import[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { to } of imports) counts.set(to, (counts.get(to) ?? 0) + 1);
  return counts;
}
