/**
 * Documents that nest deeper are refused unread: `JSON.stringify`, revivers and schema validators recurse once per
 * level, and throw a `RangeError` at a depth that depends on the stack they are called on.
 */
export const NESTING_MAX = 512;

/** A valid document needs an opening and a closing bracket for each level. */
const NESTING_CHARACTERS_MIN = 2 * NESTING_MAX;

/** Documents of more values are refused unread: a few megabytes of `{},{},…` take a second and half a gigabyte to parse. */
export const VALUES_MAX = 500_000;

/** Documents of more fields are refused unread: where each has a name of its own, 500,000 take half a second to parse. */
export const FIELDS_MAX = 100_000;

/** True for what a JSON object is parsed to: neither an array nor `null`. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `undefined` for what is no JSON, and for what has too much of anything: see {@link excessIn}. */
export function parsedJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Throws a `SyntaxError` for what is no JSON, and for what has too much of anything: see {@link excessIn}. */
export function parseJson(text: string): unknown {
  const excess = excessIn(text);
  if (excess !== undefined) throw new SyntaxError(`JSON ${excess}`);
  return JSON.parse(text);
}

/**
 * What a document has too much of to be parsed: `nests deeper than 512 levels`. Counts what is outside of strings, without
 * recursion. Text that is no JSON is left to the parser to refuse.
 */
export function excessIn(text: string): string | undefined {
  // Of values and fields, what is as short has fewer still.
  if (text.length < NESTING_CHARACTERS_MIN) return undefined;
  let depth = 0;
  let values = 0;
  let fields = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(text, index);
    } else if (code === COMMA || code === OPENING_BRACE || code === OPENING_BRACKET) {
      // Each of them precedes one value at most, besides the first of all.
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

/** Index of the quote that ends the string which begins at `start`; the end of the text where none does. */
export function endOfString(text: string, start: number): number {
  const quote = text.indexOf('"', start + 1);
  if (quote === -1) return text.length;
  if (!isEscaped(text, quote)) return quote;
  // Few strings have a quote in them, but one that does may have millions: to look back from each costs ten times as much.
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

/** True for a value whose absence loses nothing. */
export const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);

/** In every version of Node that this runs on, but not among the types of the language's last edition. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(source: string): unknown;
}

const exact = JSON as unknown as ExactJson;

/**
 * JSON as `JSON.parse` has it, but for numbers that would come out of `JSON.stringify` in other digits than they went in:
 * those stand for themselves there. What a model is sent back of its own calls is to be what it has said.
 */
export const parsedExactly = (text: string): unknown =>
  exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? exact.rawJSON(source)
      : value,
  );
