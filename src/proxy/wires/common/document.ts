import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';

/** How a wire answers a request without a stream: with one document. */
export interface WireDocument {
  /**
   * Fields that turn the request into one for a stream with the document's full content; `undefined` if that isn't
   * possible.
   */
  streamFields(fields: Fields): Fields | undefined;
  fold(): DocumentFold;
  /** Whether this is the document of an answer that ended properly. */
  isAnswer(body: Fields): boolean;
}

/** Assembles the events of an answer into the document that its provider would have sent. */
export interface DocumentFold {
  /** Bytes kept in addition to text and calls, because providers add arbitrary fields to events. */
  readonly extra_bytes: number;
  /** Adds the payload of the next event, as sent in a stream. */
  add(payload: string): void;
  /** The document after the last event; `undefined` if the answer is incomplete. */
  document(): object | undefined;
}

/** The fields of an unfinished document. */
export type OpenFields = Record<string, unknown>;

/** Overlays `fields` on the known ones; empty values replace nothing. Returns the added bytes. */
export function overlay(known: OpenFields, fields: Readonly<Record<string, unknown>>): number {
  let added = 0;
  for (const [name, value] of Object.entries(fields)) {
    const before = known[name];
    if (value === before) continue;
    if (value === null || value === '') known[name] ??= value;
    else {
      known[name] = isObject(before) && isObject(value) ? { ...before, ...value } : value;
      added += bytesOf(known[name]) - bytesOf(before);
    }
  }
  return added;
}

/** Like {@link overlay}, for fields that arrive in pieces: appends to known texts and lists. */
export function append(known: OpenFields, pieces: Readonly<Record<string, unknown>>): number {
  let added = 0;
  for (const [name, piece] of Object.entries(pieces)) {
    const before = known[name];
    if (typeof before === 'string' && typeof piece === 'string') known[name] = before + piece;
    else if (Array.isArray(before) && Array.isArray(piece))
      for (const item of piece) appendItem(before, item);
    else {
      added += overlay(known, { [name]: Array.isArray(piece) ? [...(piece as unknown[])] : piece });
      continue;
    }
    added += bytesOf(piece);
  }
  return added;
}

/** For thoughts that arrive in pieces: the field with the text, by type. */
const THOUGHTS: Readonly<Record<string, string>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
};

/** OpenRouter splits a thought into items with the same type and index; all other items are separate. */
function appendItem(list: unknown[], item: unknown): void {
  const last = list.at(-1);
  const field = isObject(item) ? THOUGHTS[String(item.type)] : undefined;
  const isSame = isObject(last) && isObject(item) && last.type === item.type && last.index === item.index;
  if (!isSame || field === undefined || typeof last[field] !== 'string') {
    list.push(item);
    return;
  }
  const { [field]: piece, ...rest } = item;
  list[list.length - 1] = { ...last, [field]: last[field] + (typeof piece === 'string' ? piece : '') };
  overlay(list.at(-1) as OpenFields, rest);
}

function bytesOf(value: unknown): number {
  if (value === undefined) return 0;
  return Buffer.byteLength(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}
