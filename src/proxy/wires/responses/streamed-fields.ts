import type { Json } from './data.ts';

/** Where an item has its parts. */
export type PartList = 'content' | 'summary';

/** How the text of a part is sent, by the type of the part. */
export interface TextPart {
  /** What the text is to a run. */
  readonly kind: 'text' | 'refusal' | 'reasoning';
  readonly list: PartList;
  /** The field of the part, and of the event that ends the text, which has all of it. */
  readonly field: 'text' | 'refusal';
  /** What the names of its events begin with: `.delta` brings a piece, `.done` all of it. */
  readonly event: string;
  /** The part before anything is said in it. */
  readonly empty: Json;
}

export const TEXT_PARTS = {
  output_text: {
    kind: 'text',
    list: 'content',
    field: 'text',
    event: 'response.output_text',
    empty: { annotations: [], logprobs: [], text: '' },
  },
  refusal: {
    kind: 'refusal',
    list: 'content',
    field: 'refusal',
    event: 'response.refusal',
    empty: { refusal: '' },
  },
  reasoning_text: {
    kind: 'reasoning',
    list: 'content',
    field: 'text',
    event: 'response.reasoning_text',
    empty: { text: '' },
  },
  summary_text: {
    kind: 'reasoning',
    list: 'summary',
    field: 'text',
    event: 'response.reasoning_summary_text',
    empty: { text: '' },
  },
} as const satisfies Record<string, TextPart>;

type TextType = keyof typeof TEXT_PARTS;

/** `undefined` for a part that is not text. */
export const textPart = (type: string): TextPart | undefined =>
  Object.hasOwn(TEXT_PARTS, type) ? TEXT_PARTS[type as TextType] : undefined;

/** How the arguments of a call are sent, by the type of the call. */
export const CALLS = {
  function_call: { field: 'arguments', event: 'response.function_call_arguments' },
  custom_tool_call: { field: 'input', event: 'response.custom_tool_call_input' },
} as const;

/** What an event brings, by its name: a piece, or all of it (`isWhole`). */
const eventsOf = <Field extends { readonly event: string }>(fields: Readonly<Record<string, Field>>) =>
  new Map(
    Object.entries(fields).flatMap(([type, each]) => [
      [`${each.event}.delta`, { ...each, type, isWhole: false }],
      [`${each.event}.done`, { ...each, type, isWhole: true }],
    ]),
  );

export const TEXT_EVENTS = eventsOf<TextPart>(TEXT_PARTS);
export const CALL_EVENTS = eventsOf<(typeof CALLS)[keyof typeof CALLS]>(CALLS);
