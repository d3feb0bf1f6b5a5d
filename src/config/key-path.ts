import { isObject } from '../lib/json.ts';
import { CONFIGURATION_SCHEMA } from './schema.ts';
import type { Schema } from './schema-terms.ts';

export type KeyPath = readonly (string | number)[];

/** For example, `routes[0].targets[1].upstream`. */
export const formatPath = (path: KeyPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');

/** The schema of the value at `path`; undefined if there is no such key. */
export function schemaAt(path: KeyPath): Schema | undefined {
  let schema: Schema | undefined = CONFIGURATION_SCHEMA;
  for (const key of path) schema = schema && childSchema(schema, key);
  return schema;
}

function childSchema(schema: Schema, key: string | number): Schema | undefined {
  if (typeof key === 'number') return schema.items;
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return schema.additionalProperties === false ? undefined : schema.additionalProperties;
}

/** Converts text from a flag, the environment or an expanded file value to the key's type. */
export function typedValue(path: KeyPath, text: string): string | number | boolean {
  const type = schemaAt(path)?.type;
  if ((type === 'integer' || Array.isArray(type)) && /^-?\d+$/.test(text)) return Number(text);
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** Every single-valued key outside maps and lists. */
export function scalarPaths(schema: Schema = CONFIGURATION_SCHEMA, path: readonly string[] = []): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, child]) => {
    if (child.type === 'object') return scalarPaths(child, [...path, key]);
    return child.type === 'array' ? [] : [[...path, key]];
  });
}

/** A value for one key from outside the file. */
export interface Assignment {
  readonly path: readonly string[];
  readonly text: string;
  /** `HOLDFAST_PORT` or `--port`. */
  readonly source: string;
}

/** The origin of each key's value. */
export type Sources = Map<string, string>;

/** Returns `tree` with the assigned value, or unchanged if the path leads through something that isn't a section. */
export function assign(tree: unknown, path: readonly string[], text: string, parents: KeyPath = []): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return typedValue(parents, text);
  if (!isObject(tree ?? {})) return tree;
  const section = (tree ?? {}) as Record<string, unknown>;
  const child = Object.hasOwn(section, key) ? section[key] : undefined;
  return { ...section, [key]: assign(child, rest, text, [...parents, key]) };
}
