import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { formatPath, type KeyPath, scalarPaths, schemaAt } from './key-path.ts';
import { type Problem, suggestion } from './problem.ts';
import { isSecretKey } from './redaction.ts';
import { CONFIGURATION_SCHEMA } from './schema.ts';
import type { Schema } from './schema-terms.ts';

const SHOWN_CHARACTERS_MAX = 60;

const validate = new Ajv2020({
  allErrors: true,
  useDefaults: true,
  verbose: true,
  allowUnionTypes: true,
  // Every start waits for this. The tests check the schema itself.
  validateSchema: false,
  meta: false,
  code: { optimize: false },
}).compile(CONFIGURATION_SCHEMA);

/** Fills defaults into `tree` in place and returns its problems. */
export function validateTree(tree: unknown): Problem[] {
  if (validate(tree)) return [];
  // An invalid name in a map is reported twice, once by the pattern and once by the map.
  return (validate.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames').map(problemOf);
}

function problemOf(error: ErrorObject): Problem {
  const path = pathOf(error.instancePath);
  const { keyword, params } = error;
  if (keyword === 'additionalProperties') {
    const key = String(params.additionalProperty);
    return { path: formatPath([...path, key]), message: `unknown key.${suggestedKey(path, key)}` };
  }
  if (keyword === 'required') {
    const missing = [...path, String(params.missingProperty)];
    return { path: formatPath(missing), message: `is required. ${schemaAt(missing)?.description ?? ''}` };
  }
  if (error.propertyName !== undefined) {
    const message = `is not a usable name: it ${NAME_EXPECTATION}.`;
    return { path: formatPath([...path, error.propertyName]), message };
  }
  return {
    path: formatPath(path),
    message: `${expectation(error)}${shown(path, error.data)}${suggestedValue(error)}`,
  };
}

const NUMBER_OR_AUTO = 'a whole number, or auto';
const NAME_EXPECTATION = 'must start with a letter and have letters, digits, "-" and "_" only';

function expectation({ keyword, params, parentSchema }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return `must be ${TYPES[String(params.type)]}`;
    case 'enum':
      return `must be one of ${allowedValues(params).join(', ')}`;
    case 'minimum':
      return `must be at least ${params.limit}`;
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'minLength':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} characters`;
    case 'pattern':
      // Otherwise it is a name in a map.
      return Array.isArray(parentSchema?.type) ? `must be ${NUMBER_OR_AUTO}` : NAME_EXPECTATION;
    case 'minItems':
      return `must have at least ${params.limit} entry`;
    case 'maxItems':
      return `must have at most ${params.limit} entries`;
    default:
      return 'must not have the same entry twice';
  }
}

const allowedValues = (params: ErrorObject['params']) => (params.allowedValues as unknown[]).map(String);

const suggestedValue = ({ keyword, params, data }: ErrorObject): string =>
  keyword === 'enum' ? suggestion(String(data), allowedValues(params)) : '';

const TYPES: Readonly<Record<string, string>> = {
  'integer,string': NUMBER_OR_AUTO,
  object: 'a section with keys',
  array: 'a list',
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
} satisfies Record<Extract<Schema['type'], string> | 'integer,string', string>;

/** For example, `, not "eighty"`; never for a secret or for the store, whose URL may contain one. */
function shown(path: KeyPath, data: unknown): string {
  if (path.some(isSecretKey) || path.at(-1) === 'store' || data === '') return '.';
  const text = JSON.stringify(data);
  return text.length > SHOWN_CHARACTERS_MAX ? '.' : `, not ${text}.`;
}

/** Suggests a key that is valid there, or else another place where this key exists. */
function suggestedKey(parent: KeyPath, key: string): string {
  const near = suggestion(key, Object.keys(schemaAt(parent)?.properties ?? {}));
  if (near !== '') return near;
  const elsewhere = scalarPaths().find((path) => path.at(-1) === key);
  return elsewhere ? ` Did you mean "${formatPath(elsewhere)}"?` : '';
}

/** Parses AJV's JSON pointer. Numbers are list positions, because names in maps start with a letter. */
const pathOf = (pointer: string): KeyPath =>
  pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key));
