import { CONFIGURATION_SCHEMA, type Schema } from './schema.ts';

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
export function typedValue(path: KeyPath, text: string): string | number {
  return schemaAt(path)?.type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Every key that holds one value and is not inside a map or a list. */
export function scalarPaths(schema: Schema = CONFIGURATION_SCHEMA, path: readonly string[] = []): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, child]) => {
    if (child.type === 'object') return scalarPaths(child, [...path, key]);
    return child.type === 'array' ? [] : [[...path, key]];
  });
}

/** Keys whose values must never be printed. */
export const isSecretKey = (key: string | number | undefined): boolean =>
  key === 'secret' || key === 'api_key';
