import { isObject } from '../../../lib/json.ts';
import type { AnswerEvent } from '../common/wire.ts';

/** A JSON object of the wire. Any field may be missing, and others may exist. */
export type Json = Readonly<Record<string, unknown>>;

/** An event from a provider, named by `type`. */
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
 * An output item of one attempt. `call`: for the client to execute, shown once complete. `other`: provider tools and
 * unknown items.
 */
export interface AttemptItem {
  readonly kind: 'message' | 'reasoning' | 'call' | 'other';
  /** The announced item. */
  readonly added: Json;
  /** The length of the text sent so far at this `content_index`. */
  lengthOf(content_index: number): number;
}

export interface ResponsesEvent extends AnswerEvent {
  /** Verbatim, on one line. */
  readonly payload: string;
  readonly data: ResponsesData;
  /** The item that the event is about, if any. */
  readonly item?: AttemptItem;
}

/** Events about the whole answer. */
export const LIFECYCLE: ReadonlySet<string> = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
]);

/** Events that end a complete answer. */
export const TERMINAL: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.cancelled',
]);

export const KEEPALIVE = 'keepalive';

/** The type of an object; empty if it has none. */
export const typeOf = (data: Json): string => (typeof data.type === 'string' ? data.type : '');

export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The parsed payload; an empty object if it isn't one. */
export const dataIn = (payload: string): Json => {
  const data: unknown = JSON.parse(payload);
  return isObject(data) ? data : {};
};

/** The type of an event, which nearly all servers put first. */
export function eventTypeOf(payload: string): string {
  const [, type] = /^\{"type":\s?"([^"\\]+)"/.exec(payload) ?? [];
  return type ?? textIn(dataIn(payload).type);
}

/** The lists in which items have parts. */
export type PartList = 'content' | 'summary';

/** How a part's text is sent, by part type. */
interface TextPart {
  /** The kind of delta for the text. */
  readonly kind: 'text' | 'refusal' | 'reasoning';
  readonly list: PartList;
  /** The field with the whole text, in the part and in the event that ends it. */
  readonly field: 'text' | 'refusal';
  /** Prefix of its event names: `.delta` contains a piece, `.done` the whole. */
  readonly event: string;
  /** The empty part. */
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

/** `undefined` for parts other than text. */
export const textPart = (type: string): TextPart | undefined =>
  Object.hasOwn(TEXT_PARTS, type) ? TEXT_PARTS[type as TextType] : undefined;

/** How a call's arguments are sent, by call type. */
export const CALLS = {
  function_call: { field: 'arguments', event: 'response.function_call_arguments' },
  custom_tool_call: { field: 'input', event: 'response.custom_tool_call_input' },
} as const;

/** Maps event names to their content: a piece, or the whole (`isWhole`). */
const eventsOf = <Field extends { readonly event: string }>(fields: Readonly<Record<string, Field>>) =>
  new Map(
    Object.entries(fields).flatMap(([type, each]) => [
      [`${each.event}.delta`, { ...each, type, isWhole: false }],
      [`${each.event}.done`, { ...each, type, isWhole: true }],
    ]),
  );

export const TEXT_EVENTS = eventsOf<TextPart>(TEXT_PARTS);
export const CALL_EVENTS = eventsOf<(typeof CALLS)[keyof typeof CALLS]>(CALLS);
