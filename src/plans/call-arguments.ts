import {
  BACKSLASH,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  isObject,
  OPENING_BRACE,
  OPENING_BRACKET,
  parsedJson,
  QUOTE,
} from '../lib/json.ts';

/**
 * `blank`: nothing yet. `partial`: not a complete object. `empty`: an object without fields. `filled`: one with fields.
 */
export type ArgumentsContent = 'blank' | 'partial' | 'empty' | 'filled';

/**
 * Classifies the arguments of one call as they arrive. Counting brackets per piece means the text is parsed once, when
 * the last bracket closes. Parsing on every sign of completeness would parse megabytes again for every word that
 * follows a half call.
 */
export class CallArguments {
  #depth = 0;
  #isInString: boolean = false;
  #isEscaped: boolean = false;
  #state: 'blank' | 'open' | 'closed' | 'spoilt' = 'blank';
  /** Cached result for closed arguments. */
  #parsed: ArgumentsContent | undefined;

  add(piece: string): void {
    if (this.#state === 'spoilt' || (this.#state === 'blank' && piece.trim() === '')) return;
    for (let index = 0; index < piece.length; index++) {
      const character = piece.charCodeAt(index);
      if (this.#isInString) this.#takeInString(character);
      else if (!WHITE_SPACE.has(character)) this.#takeOutside(character);
    }
  }

  /** `text`: everything added so far. */
  contentOf(text: string): ArgumentsContent {
    if (this.#state === 'blank') return 'blank';
    if (this.#state !== 'closed') return 'partial';
    this.#parsed ??= parsedContent(text);
    return this.#parsed;
  }

  #takeInString(character: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === BACKSLASH) this.#isEscaped = true;
    else if (character === QUOTE) this.#isInString = false;
  }

  #takeOutside(character: number): void {
    const isOpening = character === OPENING_BRACE || character === OPENING_BRACKET;
    // Arguments are a single object; anything before or after it spoils them.
    const isTooMuch = this.#state === 'closed' || this.#state === 'spoilt';
    if (isTooMuch || (this.#state === 'blank' && character !== OPENING_BRACE)) {
      this.#state = 'spoilt';
    } else if (isOpening) {
      this.#state = 'open';
      this.#depth++;
    } else if (character === CLOSING_BRACE || character === CLOSING_BRACKET) {
      this.#depth--;
      if (this.#depth === 0) this.#state = 'closed';
    } else if (character === QUOTE) {
      this.#isInString = true;
    }
  }
}

/** JSON white space. */
const WHITE_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

function parsedContent(text: string): ArgumentsContent {
  const value = parsedJson(text);
  if (!isObject(value)) return 'partial';
  return Object.keys(value).length === 0 ? 'empty' : 'filled';
}
