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
 * The same text for every way to write a JSON document that leaves its numbers as they are: the order of fields, white
 * space and escapes say nothing, and of fields that come twice the last one counts. Digits are kept: parsing would make
 * `9007199254740993` and `9007199254740992` the same.
 *
 * `text` is JSON. `omitted`: names of fields of the outermost object that are left out.
 */
export function canonicalJson(text: string, omitted: ReadonlySet<string> = NO_FIELDS): string {
  const tokens = new Tokens(text);
  // A stack of its own: documents may be nested deeper than calls can be.
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

/** Texts are put together with `+`, which copies nothing: a document of many levels is not copied at each of them. */
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
  /** As it is written, once it has come. */
  #name: string | undefined;

  constructor(omitted: ReadonlySet<string>) {
    this.#omitted = omitted;
  }

  get text(): string {
    // Fields of one name stay in the order in which they came.
    const sorted = this.#fields.length > 1 ? this.#fields.sort(byName) : this.#fields;
    let text = '';
    for (const [index, { name, value }] of sorted.entries()) {
      if (sorted[index + 1]?.name === name) continue;
      text += text === '' ? `${name}:${value}` : `,${name}:${value}`;
    }
    return `{${text}}`;
  }

  /** Names and values in turn. */
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
/** Stands between tokens, and says nothing that their order does not. */
const isBetween = (code: number): boolean => code === COMMA || code === COLON || isSpace(code);
const endsScalar = (code: number): boolean =>
  code === COMMA || code === CLOSING_BRACE || code === CLOSING_BRACKET || isSpace(code);

/**
 * What `JSON.stringify` may write otherwise: all else that it writes as an escape, it writes in one way. The text is UTF-8, so
 * no half of a surrogate pair stands in it unescaped.
 */
const OTHER_ESCAPE = /\\[u/]/;

/** Brackets, strings in the one way in which `JSON.stringify` writes them, and everything else as it stands. */
class Tokens {
  readonly #text: string;
  #position = 0;
  /** Of the next backslash: most strings have none, and are not to be searched one by one to the end of the document. */
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
