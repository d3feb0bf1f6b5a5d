import { type Schema, Validator } from '@cfworker/json-schema';
import { isObject, parsedJson } from '../lib/json.ts';
import type { Proof } from './delta.ts';
import type { ToolCall } from './transcript.ts';

/** The JSON Schema of each tool's parameters, by tool name. A tool declared without one has `{}`: it takes none. */
export type ToolSchemas = ReadonlyMap<string, unknown>;

/**
 * How well it is proven that an open call is complete, by its arguments and by what came after it.
 *
 * A finished JSON object is never a proper prefix of a longer valid text, but `{}` is often a placeholder that is
 * sent before the real arguments, and scalars, arrays and glued objects prove nothing at all. Once text follows, no
 * arguments will come any more; once another call follows they still may, for providers interleave parallel calls.
 */
export function proofOf(call: ToolCall, schemas: ToolSchemas): Proof | undefined {
  const schema = schemas.get(call.name);
  const isEmpty = call.arguments.trim() === '';
  const value = isEmpty ? {} : parsedObject(call.arguments);
  if (!value) return undefined;
  if (call.followed === 'text') return 2;
  if (Object.keys(value).length === 0 && !takesNoArguments(schema)) return undefined;
  if (call.followed === 'call') return 2;
  return !isEmpty && satisfies(value, schema) ? 1 : undefined;
}

/** Empty arguments are how several providers spell "none"; clients expect a JSON document. */
export function normalisedArguments(text: string): string {
  return text.trim() === '' ? '{}' : text;
}

export const parses = (text: string): boolean => parsedJson(text) !== undefined;

function parsedObject(text: string): object | undefined {
  const value = parsedJson(text);
  return isObject(value) ? value : undefined;
}

function takesNoArguments(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { properties, required, additionalProperties } = schema;
  const declaresNone =
    properties === undefined || (isObject(properties) && Object.keys(properties).length === 0);
  const requiresNone = required === undefined || (Array.isArray(required) && required.length === 0);
  return declaresNone && requiresNone && !isObject(additionalProperties);
}

function satisfies(value: object, schema: unknown): boolean {
  if (!isObject(schema) || hasPattern(schema)) return false;
  try {
    return new Validator(schema as Schema, '2020-12', true).validate(value).valid;
  } catch {
    // An unresolvable reference or a malformed schema proves nothing about the arguments.
    return false;
  }
}

/**
 * A regular expression of the client's must not run on an event loop that it shares with others. A property that is
 * merely called "pattern", as search tools have one, is described by an object.
 */
function hasPattern(schema: object): boolean {
  return /"pattern":"|"patternProperties":/.test(JSON.stringify(schema));
}
