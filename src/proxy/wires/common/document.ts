import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';

/** How a wire answers a request that does not ask for a stream: with one document. */
export interface WireDocument {
  /** The fields that make the request one for a stream which says all that the document would; `undefined` if none does. */
  streamFields(fields: Fields): Fields | undefined;
  fold(): DocumentFold;
  /** Whether this is the document of an answer that ended as it should. */
  isAnswer(body: Fields): boolean;
}

/** Puts the events of an answer together to the document that its provider would have answered with. */
export interface DocumentFold {
  /** Bytes kept besides text and calls: providers add to their events what they like. */
  readonly extra_bytes: number;
  /** The payload of the next event, as the client of a stream is sent it. */
  add(payload: string): void;
  /** After the last one. `undefined` if they are no whole answer. */
  document(): object | undefined;
}

/** Fields of a document that is being put together. */
export type OpenFields = Record<string, unknown>;

/**
 * Lays `fields` over those that are known; what says nothing takes the place of nothing. Returns how many bytes
 * more there are.
 */
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

/** The same for fields that come in pieces: what comes is appended to texts and lists that are known. */
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

/** If a thought comes in pieces, the field of each that has its text. */
const THOUGHTS: Readonly<Record<string, string>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
};

/** OpenRouter sends one thought as many of its kind and place; everything else is an item of its own. */
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
