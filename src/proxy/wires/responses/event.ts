import { isObject } from '../../../lib/json.ts';
import type { AnswerEvent } from '../common/wire.ts';

/** A JSON object of the wire, of which any field may be missing and more may be there. */
export type Json = Readonly<Record<string, unknown>>;

/** An event as providers send it: `type` names it. */
export interface ResponsesData {
  readonly type: string;
  readonly sequence_number?: unknown;
  readonly response?: unknown;
  readonly output_index?: unknown;
  readonly item_id?: unknown;
  readonly item?: unknown;
  readonly part?: unknown;
  readonly content_index?: unknown;
  readonly summary_index?: unknown;
  readonly delta?: unknown;
  readonly [field: string]: unknown;
}

/**
 * An output item as one attempt sends it. `call`: something that the client is to carry out, which is shown when it is
 * whole. `other`: something that the provider does itself, or that is not known.
 */
export interface AttemptItem {
  readonly kind: 'message' | 'reasoning' | 'call' | 'other';
  /** As it was announced. */
  readonly added: Json;
  /** Characters of the text at this `content_index` that the attempt has sent so far. */
  lengthOf(content_index: number): number;
}

export interface ResponsesEvent extends AnswerEvent {
  /** As it came, on one line. */
  readonly payload: string;
  readonly data: ResponsesData;
  /** What it is about, if it is about an item. */
  readonly item?: AttemptItem;
}

/** Events about the answer as a whole. */
export const LIFECYCLE: ReadonlySet<string> = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
]);

/** What ends an answer as a whole one. */
export const TERMINAL: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.cancelled',
]);

export const KEEPALIVE = 'keepalive';

/** Where an event that names no type is found to have none. */
export const typeOf = (data: Json): string => (typeof data.type === 'string' ? data.type : '');

export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What a payload parses to; nothing where that is no object. */
export const dataIn = (payload: string): Json => {
  const data: unknown = JSON.parse(payload);
  return isObject(data) ? data : {};
};

/** The name of an event, which nearly all servers put first. */
export function eventTypeOf(payload: string): string {
  const [, type] = /^\{"type":\s?"([^"\\]+)"/.exec(payload) ?? [];
  return type ?? textIn(dataIn(payload).type);
}

/** Where an item has its parts. */
export type PartList = 'content' | 'summary';

/** How the text of a part is sent, by the type of the part. */
interface TextPart {
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
