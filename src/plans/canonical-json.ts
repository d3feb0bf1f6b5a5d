import {
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COMMA,
  endOfString,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
} from '../lib/json.ts';

const NO_FIELDS: ReadonlySet<string> = new Set();

/**
 * Returns the same text for all JSON documents that differ only in field order, white space and escapes. The last of
 * several fields with one name counts. Numbers keep their digits: parsing would make `9007199254740993` and
 * `9007199254740992` the same.
 *
 * `text` must be JSON. `omitted`: fields of the outermost object to leave out.
 */
export function canonicalJson(text: string, omitted: ReadonlySet<string> = NO_FIELDS): string {
  const tokens = new Tokens(text);
  // An explicit stack, because documents may nest deeper than the call stack allows.
  const open: Container[] = [];
  for (let token = tokens.next(); token !== undefined; token = tokens.next()) {
    let value = token;
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new ObjectText(open.length === 0 ? omitted : NO_FIELDS) : new ListText());
      continue;
    }
    if (token === '}' || token === ']') value = open.pop()?.text ?? token;
    const container = open.at(-1);
    if (!container) return value;
    container.add(value);
  }
  return text;
}

interface Container {
  readonly text: string;
  add(value: string): void;
}

/** Concatenates with `+`, which V8 does lazily, so deep documents aren't copied at every level. */
class ListText implements Container {
  #items = '';

  get text(): string {
    return `[${this.#items}]`;
  }

  add(value: string): void {
    this.#items = this.#items === '' ? value : `${this.#items},${value}`;
  }
}

interface Field {
  readonly name: string;
  readonly value: string;
}

class ObjectText implements Container {
  readonly #omitted: ReadonlySet<string>;
  readonly #fields: Field[] = [];
  /** The name as written, once it has arrived. */
  #name: string | undefined;

  constructor(omitted: ReadonlySet<string>) {
    this.#omitted = omitted;
  }

  get text(): string {
    // The sort is stable: fields with the same name keep their order.
    const sorted = this.#fields.length > 1 ? this.#fields.sort(byName) : this.#fields;
    let text = '';
    for (const [index, { name, value }] of sorted.entries()) {
      if (sorted[index + 1]?.name === name) continue;
      text += text === '' ? `${name}:${value}` : `,${name}:${value}`;
    }
    return `{${text}}`;
  }

  /** Receives names and values alternately. */
  add(value: string): void {
    if (this.#name === undefined) {
      this.#name = value;
      return;
    }
    if (!this.#omitted.has(this.#name.slice(1, -1))) this.#fields.push({ name: this.#name, value });
    this.#name = undefined;
  }
}

const byName = (one: Field, other: Field): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : 0;

const COLON = 0x3a;

const isSpace = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d);
/** Separators carry no information beyond the order of tokens. */
const isBetween = (code: number): boolean => code === COMMA || code === COLON || isSpace(code);
const endsScalar = (code: number): boolean =>
  code === COMMA || code === CLOSING_BRACE || code === CLOSING_BRACKET || isSpace(code);

/**
 * The only escapes that `JSON.stringify` may write differently. The text is UTF-8, so it contains no unescaped lone
 * surrogates.
 */
const OTHER_ESCAPE = /\\[u/]/;

/** Brackets, strings as `JSON.stringify` writes them, and everything else verbatim. */
class Tokens {
  readonly #text: string;
  #position = 0;
  /**
   * Position of the next backslash. Caching it avoids a search to the end of the document for every string without one.
   */
  #escape = -1;

  constructor(text: string) {
    this.#text = text;
  }

  next(): string | undefined {
    const text = this.#text;
    while (isBetween(text.charCodeAt(this.#position))) this.#position++;
    if (this.#position >= text.length) return undefined;
    switch (text.charCodeAt(this.#position)) {
      case OPENING_BRACE:
      case CLOSING_BRACE:
      case OPENING_BRACKET:
      case CLOSING_BRACKET:
        return text[this.#position++];
      case QUOTE:
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #scalar(): string {
    const start = this.#position;
    while (this.#position < this.#text.length && !endsScalar(this.#text.charCodeAt(this.#position)))
      this.#position++;
    return this.#text.slice(start, this.#position);
  }

  #string(): string {
    const text = this.#text;
    const start = this.#position;
    const end = endOfString(text, start);
    this.#position = end + 1;
    const string = text.slice(start, end + 1);
    if (this.#escape < start) {
      const found = text.indexOf('\\', start);
      this.#escape = found === -1 ? text.length : found;
    }
    return this.#escape < end && OTHER_ESCAPE.test(string) ? JSON.stringify(JSON.parse(string)) : string;
  }
}
