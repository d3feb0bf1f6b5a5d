import { CONFIGURATION_SCHEMA } from './schema.ts';
import type { Schema } from './schema-terms.ts';

export type KeyPath = readonly (string | number)[];

/** `routes[0].targets[1].upstream` */
export const formatPath = (path: KeyPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');

/** The schema of the value at `path`, if the configuration has such a key. */
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

/** Text from a flag, the environment or an expanded file value, as the type the key has. */
export function typedValue(path: KeyPath, text: string): string | number | boolean {
  const type = schemaAt(path)?.type;
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text);
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** Every key that holds one value and is not inside a map or a list. */
export function scalarPaths(schema: Schema = CONFIGURATION_SCHEMA, path: readonly string[] = []): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, child]) => {
    if (child.type === 'object') return scalarPaths(child, [...path, key]);
    return child.type === 'array' ? [] : [[...path, key]];
  });
}

/** Keys whose values, or those in their list or map, must never be printed. */
export const isSecretKey = (key: string | number): boolean =>
  key === 'secret' || key === 'api_key' || key === 'sealing_keys' || key === 'headers';

/** What stands before the host of a URL: of the store it may be a password. */
const USER_INFORMATION = /^([\w+]+:\/\/).*@/;

/** The store as it may be printed. */
export const redactedStore = (url: string): string => url.replace(USER_INFORMATION, '$1[redacted]@');
