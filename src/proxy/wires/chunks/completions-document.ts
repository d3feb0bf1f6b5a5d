import { type OpenFields, overlay } from '../common/document.ts';
import type { ChatChoice } from './chat-chunk.ts';
import { type ChoiceFold, chunkDocument, isFinished } from './chunk-document.ts';

class CompletionChoiceFold implements ChoiceFold {
  extra_characters = 0;
  #text = '';
  /** What else is in the choice. */
  readonly #fields: OpenFields = {};

  add({ text, ...fields }: ChatChoice): void {
    if (typeof text === 'string') this.#text += text;
    this.extra_characters += overlay(this.#fields, fields);
  }

  document(): object | undefined {
    return isFinished(this.#fields) ? { text: this.#text, ...this.#fields } : undefined;
  }
}

/** Documents of `/v1/completions`. */
export const completionsDocument = chunkDocument('text_completion', 'text', () => new CompletionChoiceFold());
