import { isObject } from '../../../lib/json.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { partAdded, partClosing } from './ending.ts';
import {
  type AttemptItem,
  type Json,
  type PartList,
  type ResponsesData,
  type ResponsesEvent,
  TEXT_EVENTS,
  textIn,
  textPart,
} from './event.ts';
import type { ResponsesSender } from './sender.ts';

/**
 * Item types whose ids are replaced: the provider might look them up together with reasoning that the client has not
 * seen, and refuse them without it.
 */
const RENAMED: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call']);
/** Providers refuse longer ids. */
const ID_TAIL_CHARACTERS = 48;

/** The place of an attempt's item in the client's response. */
export class Place {
  readonly item: AttemptItem;
  readonly shown: ShownItem;
  /** It continues an item of another attempt. */
  readonly isJoined: boolean;
  /** The client's version differs from the attempt's. */
  isRebuilt: boolean;
  readonly #isFirst: boolean;
  readonly #parts = new Map<string, number>();

  /** `isFirst`: belongs to the first attempt of the answer. */
  constructor(item: AttemptItem, shown: ShownItem, { isFirst = false, isJoined = false }) {
    this.item = item;
    this.shown = shown;
    this.isJoined = isJoined;
    this.isRebuilt = isJoined;
    this.#isFirst = isFirst;
  }

  /** The client's index for a part of the attempt's item. */
  partAt(list: PartList, index: number): number | undefined {
    return this.#parts.get(`${list} ${index}`);
  }

  putPart(list: PartList, index: number, place: number): void {
    this.#parts.set(`${list} ${index}`, place);
  }

  /** Whether a part of the attempt's item is at that index. */
  holds(list: PartList, place: number): boolean {
    return [...this.#parts].some(([key, held]) => key.startsWith(list) && held === place);
  }

  /** The changes needed to make an event of the attempt's item one for the client; undefined if none. */
  changesTo(data: ResponsesData): Json | undefined {
    const { shown } = this;
    const isInPlace = data.output_index === undefined || data.output_index === shown.index;
    // The fast path for nearly every event.
    if (this.#isFirst && isInPlace) return undefined;
    const changes: Record<string, unknown> = {};
    const put = (field: string, value: unknown) => {
      if (data[field] !== undefined && data[field] !== value) changes[field] = value;
    };
    put('output_index', shown.index);
    if (this.#isFirst) return changes;
    put('item_id', shown.item.id);
    const content = this.#mapped('content', data.content_index);
    const summary = this.#mapped('summary', data.summary_index);
    if (content !== undefined) put('content_index', content);
    if (summary !== undefined) put('summary_index', summary);
    if (data.type === 'response.output_text.annotation.added')
      Object.assign(changes, this.#annotation(data, content ?? 0));
    if (!this.isRebuilt) return this.#renamed(data, changes);
    const list = summary === undefined ? 'content' : 'summary';
    const part = partsOf(shown, list)[summary ?? content ?? 0];
    if (data.type.endsWith('.done') && part) {
      put('text', part.text);
      put('refusal', part.refusal);
      if (isObject(data.part)) changes.part = { ...data.part, ...part };
    }
    if (data.type === 'response.output_item.done') changes.item = this.#whole(data.item);
    return changes;
  }

  /** Replaces the id of an item that only this attempt sent, if necessary. */
  #renamed({ item }: ResponsesData, changes: Record<string, unknown>): Json {
    const { id } = this.shown.item;
    if (isObject(item) && item.id !== undefined && item.id !== id) changes.item = { ...item, id };
    return changes;
  }

  /** The item as the client has seen it. Encrypted content is valid only with its original id. */
  #whole(item: unknown): Json {
    const own = this.shown.item;
    if (!isObject(item)) return own;
    const { status, encrypted_content } = item;
    const ending = status !== undefined && { status };
    if (own.type !== 'reasoning') return { ...item, ...own, ...ending };
    const secret = own.id === item.id && encrypted_content !== undefined && { encrypted_content };
    return { ...own, ...secret, ...ending };
  }

  #mapped(list: PartList, index: unknown): number | undefined {
    return typeof index === 'number' ? (this.partAt(list, index) ?? index) : undefined;
  }

  /** Shifts positions to count from the beginning of the client's text. */
  #annotation({ annotation, content_index }: ResponsesData, part: number): Json {
    if (!this.isRebuilt || !isObject(annotation)) return {};
    const { text, annotations } = partsOf(this.shown, 'content')[part] ?? {};
    const told = this.item.lengthOf(typeof content_index === 'number' ? content_index : 0);
    const shift = textIn(text).length - told;
    const moved: Record<string, unknown> = { ...annotation };
    for (const field of ['start_index', 'end_index', 'index']) {
      const place = annotation[field];
      if (typeof place === 'number') moved[field] = Math.max(0, place + shift);
    }
    return { annotation: moved, annotation_index: Array.isArray(annotations) ? annotations.length : 0 };
  }
}

/** The announcement of a continuation's item: empty, and with an id that requires no unseen reasoning. */
export function announced({ added, kind }: AttemptItem, response: Json | undefined, index: number): Json {
  const { type = kind, id } = added;
  const tail = textIn(response?.id)
    .replace(/^resp_/, '')
    .slice(0, ID_TAIL_CHARACTERS);
  const own = RENAMED.has(type) || id === undefined;
  const prefix = /^[a-z]+(?=_)/.exec(textIn(id))?.[0] ?? PREFIXES[String(type)] ?? 'item';
  const empty = kind === 'message' ? { content: [] } : kind === 'reasoning' ? { summary: [] } : {};
  const role = kind === 'message' ? { role: 'assistant', status: 'in_progress' } : {};
  return { ...role, ...added, type, id: own ? `${prefix}_${tail}_${index}` : id, ...empty };
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
};

/** The part that an event is about, in the attempt's numbering. */
interface AttemptPart {
  readonly list: PartList;
  readonly index: number;
  /** The part's type, as far as the event shows. */
  readonly type: string;
}

export function partOfEvent({
  type,
  content_index,
  summary_index,
  part,
}: ResponsesData): AttemptPart | undefined {
  if (typeof summary_index === 'number')
    return { list: 'summary', index: summary_index, type: 'summary_text' };
  if (typeof content_index !== 'number') return undefined;
  const named = isObject(part) && typeof part.type === 'string' ? part.type : undefined;
  return {
    list: 'content',
    index: content_index,
    type: named ?? TEXT_EVENTS.get(type)?.type ?? 'output_text',
  };
}

/** Finds the part for new content of this type: the open one or a new one. */
export function openPart(place: Place, { list, type, index }: OpenedPart, sender: ResponsesSender): number {
  const { shown } = place;
  const { open } = shown;
  const known = index === undefined ? undefined : place.partAt(list, index);
  if (known !== undefined && open?.list === list && open.index === known) return known;
  const fits = open?.list === list && partsOf(shown, list)[open.index]?.type === type;
  const isTaken = index !== undefined && open !== undefined && place.holds(list, open.index);
  const part = fits && !isTaken ? open.index : beginPart(shown, list, type, sender);
  if (index !== undefined) place.putPart(list, index, part);
  return part;
}

type OpenedPart = Omit<AttemptPart, 'index'> & { readonly index?: number };

function beginPart(shown: ShownItem, list: PartList, type: string, sender: ResponsesSender): number {
  for (const event of partClosing(shown)) sender.emit(event);
  const part = partsOf(shown, list).length;
  sender.emit(partAdded(shown, list, part, { type, ...textPart(type)?.empty }));
  return part;
}

/** Makes sure that the client has the part of a continuation's event. False if the event contains nothing new. */
export function fitPart(place: Place, event: ResponsesEvent, sender: ResponsesSender): boolean {
  const { data, deltas } = event;
  const told = partOfEvent(data);
  if (!told) return true;
  const { list, index } = told;
  if (data.type.endsWith('_part.added')) return beginsPart(place, told, sender);
  if (place.partAt(list, index) !== undefined) return true;
  if (deltas.length === 0) return false;
  openPart(place, told, sender);
  return true;
}

/** Maps an announced part to the open one if that is still empty, else to a new one. */
function beginsPart(place: Place, { list, index }: AttemptPart, sender: ResponsesSender): boolean {
  const { shown } = place;
  const { open } = shown;
  const isSame = open?.list === list && !place.holds(list, open.index) && isEmpty(shown);
  if (!isSame) for (const event of partClosing(shown)) sender.emit(event);
  place.putPart(list, index, isSame ? open.index : partsOf(shown, list).length);
  return !isSame;
}

function isEmpty(shown: ShownItem): boolean {
  const part = shown.open && partsOf(shown, shown.open.list)[shown.open.index];
  return !part?.text && !part?.refusal;
}
