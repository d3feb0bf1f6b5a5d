import { endOfString } from '../lib/json.ts';

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

class ObjectText implements Container {
  readonly #omitted: ReadonlySet<string>;
  readonly #fields = new Map<string, string>();
  /** As it is written, once it has come. */
  #name: string | undefined;

  constructor(omitted: ReadonlySet<string>) {
    this.#omitted = omitted;
  }

  get text(): string {
    const sorted = [...this.#fields].sort(([one], [other]) => (one < other ? -1 : 1));
    let fields = '';
    for (const [name, value] of sorted) {
      const field = `${name}:${value}`;
      fields = fields === '' ? field : `${fields},${field}`;
    }
    return `{${fields}}`;
  }

  /** Names and values in turn. */
  add(value: string): void {
    if (this.#name === undefined) {
      this.#name = value;
      return;
    }
    if (!this.#omitted.has(this.#name.slice(1, -1))) this.#fields.set(this.#name, value);
    this.#name = undefined;
  }
}

const SCALAR = /[^\s,\]}]+/y;
/** What stands between tokens and says nothing that their order does not. */
const BETWEEN = /[\s,:]*/y;

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
    BETWEEN.lastIndex = this.#position;
    BETWEEN.test(this.#text);
    this.#position = BETWEEN.lastIndex;
    const first = this.#text[this.#position];
    switch (first) {
      case undefined:
        return undefined;
      case '{':
      case '}':
      case '[':
      case ']':
        this.#position++;
        return first;
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #scalar(): string {
    SCALAR.lastIndex = this.#position;
    const [scalar = ''] = SCALAR.exec(this.#text) ?? [];
    this.#position += scalar.length;
    return scalar;
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
    return this.#escape < end ? JSON.stringify(JSON.parse(string)) : string;
  }
}
