import { isObject } from '../lib/json.ts';
import { type KeyPath, typedValue } from './key-path.ts';

/** A value for one key from outside the file. */
export interface Assignment {
  readonly path: readonly string[];
  readonly text: string;
  /** `HOLDFAST_PORT`, `--port` */
  readonly source: string;
}

/** Where each key's value came from. */
export type Sources = Map<string, string>;

/** `tree` with the assigned value; unchanged where the file has something else than a section in the way. */
export function assign(tree: unknown, path: readonly string[], text: string, parents: KeyPath = []): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return typedValue(parents, text);
  if (!isObject(tree ?? {})) return tree;
  const section = (tree ?? {}) as Record<string, unknown>;
  const child = Object.hasOwn(section, key) ? section[key] : undefined;
  return { ...section, [key]: assign(child, rest, text, [...parents, key]) };
}
