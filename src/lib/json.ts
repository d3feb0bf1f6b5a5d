/**
 * Deeper documents are rejected without parsing. `JSON.stringify`, revivers and schema validators recurse once per
 * level and throw a `RangeError` at a depth that depends on the remaining stack.
 */
export const NESTING_MAX = 512;

/** A valid document needs an opening and a closing bracket for each level. */
const NESTING_CHARACTERS_MIN = 2 * NESTING_MAX;

/**
 * Documents with more values are rejected without parsing: a few megabytes of `{},{},…` take a second and half a
 * gigabyte to parse.
 */
export const VALUES_MAX = 500_000;

/** Documents with more fields are rejected without parsing: 500,000 distinct names take half a second to parse. */
export const FIELDS_MAX = 100_000;

/** True for a JSON object, false for an array or `null`. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `undefined` for invalid JSON and for a document that exceeds a limit; see {@link excessIn}. */
export function parsedJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Throws a `SyntaxError` for invalid JSON and for a document that exceeds a limit; see {@link excessIn}. */
export function parseJson(text: string): unknown {
  const excess = excessIn(text);
  if (excess !== undefined) throw new SyntaxError(`JSON ${excess}`);
  return JSON.parse(text);
}

/**
 * The limit that a document exceeds, such as `nests deeper than 512 levels`. Scans without recursion and skips strings.
 * Invalid JSON is left to the parser.
 */
export function excessIn(text: string): string | undefined {
  // Text this short can't exceed the other limits either.
  if (text.length < NESTING_CHARACTERS_MIN) return undefined;
  let depth = 0;
  let values = 0;
  let fields = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(text, index);
    } else if (code === COMMA || code === OPENING_BRACE || code === OPENING_BRACKET) {
      // Each of these characters precedes at most one value, and only the first value has none before it.
      if (++values > VALUES_MAX) return `has more than ${VALUES_MAX} values`;
      if (code !== COMMA && ++depth > NESTING_MAX) return `nests deeper than ${NESTING_MAX} levels`;
    } else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) {
      depth--;
    } else if (code === COLON && ++fields > FIELDS_MAX) {
      return `has more than ${FIELDS_MAX} fields`;
    }
  }
  return undefined;
}

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPENING_BRACKET = 0x5b;
export const CLOSING_BRACKET = 0x5d;
export const OPENING_BRACE = 0x7b;
export const CLOSING_BRACE = 0x7d;

/** Index of the closing quote of the string that starts at `start`; the text's length if there is none. */
export function endOfString(text: string, start: number): number {
  const quote = text.indexOf('"', start + 1);
  if (quote === -1) return text.length;
  if (!isEscaped(text, quote)) return quote;
  // Escaped quotes are rare, but one string may contain millions of them, and checking backwards from each takes ten
  // times as long.
  for (let index = quote + 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) return index;
    if (code === BACKSLASH) index++;
  }
  return text.length;
}

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(index - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/** Whether a value can be omitted without losing information. */
export const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);

/** Supported by every required Node version, but missing from TypeScript's types. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(source: string): unknown;
}

const exact = JSON as unknown as ExactJson;

/**
 * Like `JSON.parse`, except that numbers which `JSON.stringify` would write with different digits are kept verbatim, so
 * that a model gets its own tool calls back unchanged.
 */
export const parsedExactly = (text: string): unknown =>
  exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? exact.rawJSON(source)
      : value,
  );
