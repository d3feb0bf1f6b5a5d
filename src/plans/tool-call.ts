import { type Schema, Validator } from '@cfworker/json-schema';
import { isObject, parsedJson } from '../lib/json.ts';
import type { Delta, Proof } from './delta.ts';
import type { Transcript } from './transcript.ts';

export interface NamedCall {
  readonly id: string;
  readonly name: string;
}

/** A settled tool call. Always complete, because it is finished work. */
export interface SettledCall extends NamedCall {
  readonly arguments: string;
}

/** A tool call as far as it has arrived. */
export interface ToolCall extends NamedCall {
  readonly index: number;
  readonly arguments: string;
  /** `cancelled`: cut by an interruption, and kept so that a later prompt can mention it. */
  readonly state: 'open' | 'closed' | 'cancelled';
  /** What followed it, if anything. */
  readonly followed: 'text' | 'call' | undefined;
}

/**
 * Calls that had begun but were still held when this was noted. They can't be in the journal: each of its entries
 * stands for events that the client has, and older readers treat an entry without events as damage.
 */
export interface HeldCalls {
  readonly calls: readonly NamedCall[];
  /** How many calls the journal contained then. Later ones may be these, settled since. */
  readonly settled: number;
}

/** Numbers that may lose digits when parsed, so that two different ones become equal. */
const INEXACT = /[\d.]{16}|\d[eE][+-]?\d{2}/;

/**
 * Whether a call duplicates a settled one: the same name, and arguments that are equal once parsed. Dropping a call
 * that isn't a duplicate loses work, so arguments with inexact numbers must match verbatim.
 */
export function isRepeated(call: ToolCall, settled: readonly ToolCall[]): boolean {
  let said: string | undefined;
  return settled.some(({ name, arguments: text }) => {
    if (name !== call.name) return false;
    said ??= comparable(call.arguments);
    return text === call.arguments || comparable(text) === said;
  });
}

function comparable(text: string): string {
  const whole = normalisedArguments(text);
  return INEXACT.test(whole) ? whole : comparableJson(whole);
}

/** Returns the same text for all JSON documents with the same parsed value, and anything else unchanged. */
export function comparableJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (_, value: unknown) => (isObject(value) ? sorted(value) : value));
  } catch {
    return text;
  }
}

const sorted = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1)));

/**
 * The JSON Schema of each tool's parameters, by tool name. A tool declared without one has `{}`: it takes no arguments.
 */
export type ToolSchemas = ReadonlyMap<string, unknown>;

/**
 * The proof that an open call is complete, based on its arguments and on what followed it.
 *
 * A complete JSON object is never a proper prefix of a longer valid text. But `{}` is often a placeholder sent before
 * the real arguments, and scalars, arrays and concatenated objects prove nothing. After text, no more arguments arrive;
 * after another call they still may, because providers interleave parallel calls.
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

type Close = Extract<Delta, { kind: 'tool_close' }>;

const NONE: readonly Close[] = [];

/**
 * Calls proven complete because something else begins after them, in their original order: a call waits for earlier
 * ones. Providers may interleave the fragments of several calls, so complete arguments are required too.
 */
export function closedBefore(
  next: Delta,
  transcript: Transcript,
  schemas: ToolSchemas,
  tool_proof: Proof,
): readonly Close[] {
  const followed = next.kind === 'text' ? 'text' : next.kind === 'tool_start' ? 'call' : undefined;
  if (!followed || !transcript.hasOpenCalls || tool_proof > 2) return NONE;
  const proven = transcript.firstOpenCalls((call) => {
    const content = transcript.contentOf(call);
    if (content === 'partial') return false;
    if (followed === 'text') return true;
    // A provider may start all calls before it sends any arguments, even if those are only `{}`.
    return content === 'filled' || (content === 'empty' && takesNoArguments(schemas.get(call.name)));
  });
  return proven.map(({ index }) => ({ kind: 'tool_close', index, proof: 2 }));
}

/**
 * The finish reason closes every call, except `broken` ones: their arguments don't parse. `unannounced`: the tools'
 * schemas, if the reason doesn't mention calls. Some gateways end a cut answer with such a reason, so a call without
 * its required arguments is broken as well.
 */
export function closedByFinish(
  transcript: Transcript,
  unannounced?: ToolSchemas,
): {
  readonly closed: readonly Close[];
  readonly broken: readonly ToolCall[];
} {
  const broken = transcript.openCalls.filter(
    (call) =>
      !parses(normalisedArguments(call.arguments)) || (unannounced && hasOnlyBegun(call, unannounced)),
  );
  const closed = transcript.openCalls
    .filter((call) => !broken.includes(call))
    .map(({ index }): Close => ({ kind: 'tool_close', index, proof: 3 }));
  return { closed, broken };
}

const hasOnlyBegun = (call: ToolCall, schemas: ToolSchemas): boolean =>
  call.arguments.trim() === '' && requiresArguments(schemas.get(call.name));

/** Several providers send empty arguments for "none"; clients expect a JSON document. */
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

const requiresArguments = (schema: unknown): boolean =>
  isObject(schema) && Array.isArray(schema.required) && schema.required.length > 0;

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
 * A client's regular expression must not run on the shared event loop. A property that is merely named "pattern", as in
 * search tools, has an object as its value and doesn't match.
 */
function hasPattern(schema: object): boolean {
  return /"pattern":"|"patternProperties":/.test(JSON.stringify(schema));
}
