import { isObject } from '../lib/json.ts';

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
