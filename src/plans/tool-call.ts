import { type Schema, Validator } from '@cfworker/json-schema';
import { isObject, parsedJson } from '../lib/json.ts';
import type { Delta, Proof } from './delta.ts';
import type { Transcript } from './transcript.ts';

/** A call, for a model that has made it. */
export interface NamedCall {
  readonly id: string;
  readonly name: string;
}

/** A settled tool call. Never cut short: it is work that was done. */
export interface SettledCall extends NamedCall {
  readonly arguments: string;
}

/** A tool call as far as the model has made it. */
export interface ToolCall extends NamedCall {
  readonly index: number;
  readonly arguments: string;
  /** `cancelled` calls were cut by an interruption; they are kept to tell the model about. */
  readonly state: 'open' | 'closed' | 'cancelled';
  /** What began after it, if anything. */
  readonly followed: 'text' | 'call' | undefined;
}

/**
 * Calls that had begun and were held when they were noted. A journal has nothing of a call that is held: each of its
 * entries stands for events that the client has, and readers of older versions take one without any for damage.
 */
export interface HeldCalls {
  readonly calls: readonly NamedCall[];
  /** How many calls the journal had by then. Those after them may be these, settled since. */
  readonly settled: number;
}

/** Digits that a number may lose when it is parsed, so that two numbers come out as one. */
const INEXACT = /[\d.]{16}|\d[eE][+-]?\d{2}/;

/**
 * Whether a call says the same as one that is settled: the same name, and arguments that are equal once they are parsed.
 * Dropping a call that is none loses work, so what parsing could make equal has to be equal as it stands.
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

/** The same text for every JSON document that parses to the same value; text that is none is itself. */
export function comparableJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (_, value: unknown) => (isObject(value) ? sorted(value) : value));
  } catch {
    return text;
  }
}

const sorted = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1)));

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

type Close = Extract<Delta, { kind: 'tool_close' }>;

const NONE: readonly Close[] = [];

/**
 * Calls that are proven closed because something else begins after them, in the order in which they began: a call
 * waits for those before it. Providers may interleave the fragments of several calls, so it takes whole arguments
 * as well.
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
    // All calls may be started before the arguments of the first one come, even if those are only `{}`.
    return content === 'filled' || (content === 'empty' && takesNoArguments(schemas.get(call.name)));
  });
  return proven.map(({ index }) => ({ kind: 'tool_close', index, proof: 2 }));
}

/**
 * The finish reason closes every call, but it cannot make half a document whole: `broken` are the calls whose
 * arguments do not parse. `unannounced`: the schemas of the tools, where the reason does not speak of calls. Some gateways
 * end an answer that was cut with such a reason, so a call that has no arguments then, although its tool requires some,
 * is broken as well.
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
 * A regular expression of the client's must not run on an event loop that it shares with others. A property that is
 * merely called "pattern", as search tools have one, is described by an object.
 */
function hasPattern(schema: object): boolean {
  return /"pattern":"|"patternProperties":/.test(JSON.stringify(schema));
}
