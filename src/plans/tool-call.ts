import { isObject } from '../lib/json.ts';
import { normalisedArguments } from './tool-proof.ts';

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
