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
