import { failureStatusOf } from '../../../interrupts/provider-error.ts';
import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import { type DocumentFold, type OpenFields, overlay, type WireDocument } from '../common/document.ts';
import type { ChatChoice, ChatChunk } from './chat-chunk.ts';

/** Puts one choice of an answer together. */
export interface ChoiceFold {
  readonly extra_characters: number;
  add(choice: ChatChoice): void;
  /** But for its index; `undefined` if it is not whole. */
  document(): object | undefined;
}

/**
 * Documents of a wire that streams in chunks with choices. `object`: what they are. `said`: the field of a choice that
 * has what was said.
 */
export const chunkDocument = (
  object: string,
  said: 'message' | 'text',
  choiceOf: () => ChoiceFold,
): WireDocument => ({
  streamFields({ stream_options }) {
    // What is wrong with them is for the provider to say.
    if (!isObject(stream_options ?? {})) return undefined;
    return { stream: true, stream_options: { ...(stream_options as object | null), include_usage: true } };
  },
  fold: () => new ChunkFold(object, choiceOf),
  isAnswer: ({ choices }) => Array.isArray(choices) && choices.length > 0 && choices.every(hasEnded(said)),
});

const hasEnded =
  (said: string) =>
  (choice: unknown): boolean =>
    isObject(choice) &&
    choice[said] !== undefined &&
    !(typeof choice.finish_reason === 'string' && failureStatusOf(choice.finish_reason));

class ChunkFold implements DocumentFold {
  readonly #object: string;
  readonly #choiceOf: () => ChoiceFold;
  readonly #choices = new Map<number, ChoiceFold>();
  /** What is at the top of the chunks. */
  readonly #fields: OpenFields = {};
  #extra_characters = 0;

  constructor(object: string, choiceOf: () => ChoiceFold) {
    this.#object = object;
    this.#choiceOf = choiceOf;
  }

  get extra_characters(): number {
    let extra = this.#extra_characters;
    for (const choice of this.#choices.values()) extra += choice.extra_characters;
    return extra;
  }

  add(payload: string): void {
    if (payload === '[DONE]') return;
    const { choices, obfuscation: _, ...fields } = JSON.parse(payload) as ChatChunk;
    this.#extra_characters += overlay(this.#fields, fields);
    if (Array.isArray(choices)) for (const choice of choices) if (isObject(choice)) this.#takeChoice(choice);
  }

  document(): object | undefined {
    const places = [...this.#choices].sort(([one], [other]) => one - other);
    const choices = places.flatMap(([index, choice]) => {
      const whole = choice.document();
      return whole ? [{ index, ...whole }] : [];
    });
    if (choices.length === 0 || choices.length < places.length) return undefined;
    const { id, created, model, usage, object: _, ...more } = this.#fields;
    return { id, object: this.#object, created, model, choices, ...(isObject(usage) && { usage }), ...more };
  }

  #takeChoice({ index, usage, ...choice }: ChatChoice): void {
    const place = typeof index === 'number' ? index : 0;
    const known = this.#choices.get(place) ?? this.#choiceOf();
    this.#choices.set(place, known);
    known.add(choice);
    // Kimi reports within the choice.
    if (isObject(usage)) overlay(this.#fields, { usage });
  }
}

/** Whether these fields of a choice say that it has ended. */
export const isFinished = ({ finish_reason }: Fields): boolean =>
  typeof finish_reason === 'string' && finish_reason !== '';
