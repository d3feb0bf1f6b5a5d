import { readFileSync } from 'node:fs';
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { formatPath, type KeyPath, type Sources, typedValue } from './key-path.ts';
import { ConfigurationError, type Problem } from './problem.ts';

/** More aliases than any sensible file has, but too few to exhaust the memory. */
const ALIASES_MAX = 100;

export interface ConfigurationFile {
  /** The parsed document with variables expanded, not validated yet. */
  readonly tree: unknown;
  /** `file:line:column` of every key. */
  readonly sources: Sources;
  /** Environment variables that the file refers to. */
  readonly variables: ReadonlySet<string>;
  /** Unset variables and other failed expansions. */
  readonly problems: readonly Problem[];
}

/** Throws a {@link ConfigurationError} if the file can't be read or isn't YAML. */
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

function parseConfiguration(text: string, file: string, environment: NodeJS.ProcessEnv): ConfigurationFile {
  const lines = new LineCounter();
  const { masked, unmask } = maskReferences(text);
  const document = parseDocument(masked, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0) {
    throw new ConfigurationError(
      document.errors.map(({ message, pos }) => ({ path: '', source: place(pos[0]), message })),
    );
  }
  const expansions = expandDocument(document.contents, place, unmask, environment);
  try {
    return { tree: document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {}, ...expansions };
  } catch (error) {
    throw new ConfigurationError([{ path: '', source: file, message: (error as Error).message }]);
  }
}

/**
 * Walks a parsed document once, recording the position of every key and expanding variables in its values in place.
 * `place`: formats an offset in the file. `unmask`: restores the references in a value.
 */
function expandDocument(
  contents: unknown,
  place: (offset: number) => string,
  unmask: (value: string) => string,
  environment: NodeJS.ProcessEnv,
): Omit<ConfigurationFile, 'tree'> {
  const sources: Sources = new Map();
  const variables = new Set<string>();
  const problems: Problem[] = [];

  /** Variables aren't expanded in keys, so masked references are restored as written. */
  const keyOf = (key: unknown): string => {
    if (!isScalar(key)) return String(key);
    if (typeof key.value === 'string') key.value = unmask(key.value);
    return String(key.value);
  };
  const expanded = (value: string, path: KeyPath): string | number | boolean => {
    if (!value.includes('${')) return value;
    const { text, names, faults } = expand(value, environment);
    for (const name of names) variables.add(name);
    const key = formatPath(path);
    const source = sources.get(key);
    for (const message of faults)
      problems.push({ path: key, message, ...(source !== undefined && { source }) });
    return typedValue(path, text);
  };
  const visitChild = (located: unknown, value: unknown, path: KeyPath): void => {
    const [offset = 0] = (isNode(located) && located.range) || [];
    sources.set(formatPath(path), place(offset));
    visit(value, path);
  };
  const visit = (node: unknown, path: KeyPath): void => {
    if (isMap(node)) {
      for (const { key, value } of node.items) visitChild(key, value, [...path, keyOf(key)]);
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) visitChild(item, item, [...path, index]);
    } else if (isScalar(node) && typeof node.value === 'string') {
      node.value = expanded(unmask(node.value), path);
    }
  };
  visit(contents, []);
  return { sources, variables, problems };
}

/** `$${` is a literal `${`; `${NAME}` and `${NAME:-default}` are replaced; any other `${` is an error. */
const PATTERN = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}\n]*))?\}|\$\{/g;

/** Private-use characters, which YAML treats as plain text and no configuration contains. */
const MASK_FIRST = '\uE000';
const MASK_REST = '\uE001';
const MASK_INDEX = 0xe100;
const MASK_INDEX_MAX = 0xf8ff;
const MASK = /\uE000([\uE100-\uF8FF])\uE001*/g;

/**
 * YAML would interpret the braces in `{ api_key: ${KEY} }`. References are therefore masked with as many neutral
 * characters and restored in the parsed values.
 */
function maskReferences(text: string): { masked: string; unmask: (value: string) => string } {
  const references: string[] = [];
  const masked = text.replace(PATTERN, (match, name?: string) => {
    const index = MASK_INDEX + references.length;
    if (name === undefined || index > MASK_INDEX_MAX) return match;
    references.push(match);
    return MASK_FIRST + String.fromCharCode(index) + MASK_REST.repeat(match.length - 2);
  });
  const unmask = (value: string) =>
    value.replace(MASK, (mask, index: string) => references[index.charCodeAt(0) - MASK_INDEX] ?? mask);
  return { masked, unmask };
}

interface Expansion {
  readonly text: string;
  /** Variables that the text refers to, set or not. */
  readonly names: readonly string[];
  /** Failed expansions, each with its remedy. */
  readonly faults: readonly string[];
}

/** As in a shell, the default also replaces an empty variable. */
function expand(text: string, environment: NodeJS.ProcessEnv): Expansion {
  const names: string[] = [];
  const faults: string[] = [];
  const expanded = text.replace(PATTERN, (match, name?: string, preset?: string) => {
    if (match === '$${') return '${';
    if (name === undefined) {
      faults.push(`"\${" without a variable name and "}"; write "$\${" for a literal one.`);
      return match;
    }
    names.push(name);
    const value = environment[name];
    if (preset !== undefined) return value || preset;
    if (value === undefined) {
      faults.push(`the environment variable ${name} is not set; set it or write \${${name}:-default}.`);
    }
    return value ?? '';
  });
  return { text: expanded, names, faults };
}
