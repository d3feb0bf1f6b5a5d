import { dirname, normalize } from 'node:path/posix';

/** A source file; `path` begins at the repository's root, with slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** An import of one source file by another. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

/** Biome's format puts every statement at the beginning of a line, and quotes specifiers singly. */
const STATEMENT = /^(?:import|export)\s(?:[^;'"`]*\sfrom\s)?'(\.[^']+)'/gm;
/** Modules loaded on demand, and types named in place; comments have no such calls. */
const EXPRESSION = /\bimport\('(\.[^']+)'\)/g;

/**
 * Every import between the given files, types included, each pair once.
 * Throws if a relative specifier leads to none of them.
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

/** How many files import each file; files that none imports are absent. */
export function importerCounts(imports: readonly Import[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { to } of imports) counts.set(to, (counts.get(to) ?? 0) + 1);
  return counts;
}
