import { isObject } from '../../../lib/json.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { partAdded, partClosing } from './closing.ts';
import type { ResponsesData, ResponsesEvent } from './data.ts';
import type { Place } from './place.ts';
import type { ResponsesSender } from './sender.ts';
import { type PartList, TEXT_EVENTS, textPart } from './streamed-fields.ts';

/** The part of an item that an event is about, as its attempt counts. */
export interface AttemptPart {
  readonly list: PartList;
  readonly index: number;
  /** Of the part, as far as the event says. */
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

/** Where a continuation adds content of this type: in the part that is open, or in a new one. */
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

export type OpenedPart = Omit<AttemptPart, 'index'> & { readonly index?: number };

function beginPart(shown: ShownItem, list: PartList, type: string, sender: ResponsesSender): number {
  for (const event of partClosing(shown)) sender.emit(event);
  const part = partsOf(shown, list).length;
  sender.emit(partAdded(shown, list, part, { type, ...textPart(type)?.empty }));
  return part;
}

/** Sees to it that the client has the part that a continuation speaks of. False if the event says nothing new. */
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

/** A part that is announced is the one that is open, if nothing was said in that yet. */
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
