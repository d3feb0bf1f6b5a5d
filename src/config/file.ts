import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { Sources } from './assignment.ts';
import { ConfigurationError, type Problem } from './configuration-error.ts';
import { expand } from './expansion.ts';
import { formatPath, type KeyPath, typedValue } from './key-path.ts';

/** More than any sensible file refers to an anchor; fewer than it takes to exhaust the memory with them. */
const ALIASES_MAX = 100;

export interface ConfigurationFile {
  /** The document as it is, variables expanded, not yet validated. */
  readonly tree: unknown;
  /** `file:line:column` of every key. */
  readonly sources: Sources;
  /** Environment variables the file refers to. */
  readonly variables: ReadonlySet<string>;
}

/** Throws a {@link ConfigurationError} for a file that cannot be read, is not YAML, or has unset variables. */
export function readConfigurationFile(path: string, environment: NodeJS.ProcessEnv): ConfigurationFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([{ path: '', source: path, message: `cannot be read (${code}).` }]);
  }
  return parseConfiguration(text, path, environment);
}

export function parseConfiguration(
  text: string,
  file: string,
  environment: NodeJS.ProcessEnv,
): ConfigurationFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    throw new ConfigurationError(
      document.errors.map(({ message, pos }) => ({ path: '', source: position(pos[0]), message })),
    );
  }

  const sources: Sources = new Map();
  const variables = new Set<string>();
  const problems: Problem[] = [];

  const visit = (node: unknown, path: KeyPath): void => {
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        const childPath = [...path, String(isScalar(key) ? key.value : key)];
        sources.set(formatPath(childPath), position((key as Node).range?.[0] ?? 0));
        visit(value, childPath);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        sources.set(formatPath([...path, index]), position((item as Node).range?.[0] ?? 0));
        visit(item, [...path, index]);
      }
    } else if (isScalar(node) && typeof node.value === 'string' && node.value.includes('${')) {
      const { text: expanded, names, faults } = expand(node.value, environment);
      for (const name of names) variables.add(name);
      const source = sources.get(formatPath(path)) ?? file;
      for (const message of faults) problems.push({ path: formatPath(path), source, message });
      node.value = typedValue(path, expanded);
    }
  };
  visit(document.contents, []);
  if (problems.length > 0) throw new ConfigurationError(problems);

  try {
    return { tree: document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {}, sources, variables };
  } catch (error) {
    throw new ConfigurationError([{ path: '', source: file, message: (error as Error).message }]);
  }
}
