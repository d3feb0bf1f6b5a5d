import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import {
  CALL_EVENTS,
  type Json,
  type PartList,
  type ResponsesData,
  TEXT_EVENTS,
  textIn,
  textPart,
  typeOf,
} from './event.ts';
import { impliedItem, kindOf } from './items.ts';

/** An output item as the client has seen it. */
export interface ShownItem {
  /** Its `output_index`. */
  readonly index: number;
  /** With all content so far. */
  item: Json;
  isDone: boolean;
  /** The arguments of the call were sent completely. */
  isWhole: boolean;
  /** The open part. */
  open: PartPlace | undefined;
}

interface PartPlace {
  readonly list: PartList;
  readonly index: number;
}

type Part = Record<string, unknown>;

/** Fields of a plain text event. Includes the obfuscation padding, which later readers don't need. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'sequence_number',
  'item_id',
  'output_index',
  'content_index',
  'delta',
  'obfuscation',
]);

/**
 * The response as the client has seen it: the fold of its events. Any replica or attempt can continue the answer from
 * this state, and end it as if a single attempt had produced it.
 */
export class ClientResponseState {
  /** The announced response, which defines the answer's identity. */
  response: Json | undefined;
  /** The `sequence_number` of the next event. */
  next_sequence = 0;
  /** The number of events sent. */
  events = 0;
  /** The error before the end of a failed answer. */
  error: Json | undefined;
  /** By `output_index`; servers may leave gaps. */
  readonly #items = new Map<number, ShownItem>();
  /** The item of the last event. */
  #latest: ShownItem | undefined;

  get hasItems(): boolean {
    return this.#items.size > 0;
  }

  get items(): readonly ShownItem[] {
    return [...this.#items.values()].sort((one, other) => one.index - other.index);
  }

  /** The `output_index` of the next item. */
  get next_index(): number {
    return Math.max(-1, ...this.#items.keys()) + 1;
  }

  /** Items that began and have not ended. */
  get openItems(): readonly ShownItem[] {
    return this.items.filter(({ isDone }) => !isDone);
  }

  /** The items for the list at the end of the answer. */
  get output(): readonly Json[] {
    return this.items.map(({ item }) => item).filter((item) => !isCut(item));
  }

  /** The client's thoughts, if any: `whole`, or only ones that were `cut` before anything followed. */
  get thoughts(): 'whole' | 'cut' | undefined {
    const thoughts = this.items.filter(({ item }) => kindOf(item) === 'reasoning');
    if (thoughts.length === 0) return undefined;
    const areCut = thoughts.every(({ item, isDone }) => !isDone || isCut(item));
    return areCut && thoughts.length === this.#items.size ? 'cut' : 'whole';
  }

  /** Adds an event that was sent. */
  add(data: ResponsesData): void {
    this.events++;
    this.next_sequence =
      typeof data.sequence_number === 'number' ? data.sequence_number + 1 : this.next_sequence + 1;
    if (isObject(data.response)) this.response ??= data.response;
    else if (data.output_index !== undefined || data.item_id !== undefined) this.#addToItem(data);
    else if (data.type === 'error' && isObject(data.error)) this.error = data.error;
  }

  /** Adds a sent event of which only the deltas are known: text of the open part. */
  say(deltas: readonly Delta[]): ResponsesData {
    const data = this.textEvent(deltas);
    this.add(data);
    return data;
  }

  /** The event that adds text to the open part. */
  textEvent(deltas: readonly Delta[]): ResponsesData {
    return {
      type: 'response.output_text.delta',
      sequence_number: this.next_sequence,
      item_id: this.#latest?.item.id,
      output_index: this.#latest?.index,
      content_index: this.#latest?.open?.index,
      delta: deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join(''),
      logprobs: [],
    };
  }

  /** Whether {@link textEvent} can rebuild this event. */
  rebuilds(data: ResponsesData): boolean {
    if (data.type !== 'response.output_text.delta' || data.sequence_number !== this.next_sequence)
      return false;
    const { item, index, open } = this.#latest ?? {};
    const isNext =
      open?.list === 'content' &&
      open.index === data.content_index &&
      index === data.output_index &&
      item?.id === data.item_id;
    if (!isNext) return false;
    for (const field in data) {
      if (PLAIN_FIELDS.has(field)) continue;
      if (field !== 'logprobs' || !Array.isArray(data.logprobs) || data.logprobs.length > 0) return false;
    }
    return true;
  }

  /** The item of an event for the client; registers new ones. */
  itemOf(data: ResponsesData): ShownItem {
    const { output_index, item } = data;
    const index = typeof output_index === 'number' ? output_index : Math.max(this.next_index - 1, 0);
    const known = this.#items.get(index);
    if (known) return known;
    const shown: ShownItem = {
      index,
      item: isObject(item) ? { ...item } : impliedItem(data),
      isDone: false,
      isWhole: false,
      open: undefined,
    };
    this.#items.set(index, shown);
    return shown;
  }

  #addToItem(data: ResponsesData): void {
    const shown = this.itemOf(data);
    this.#latest = shown;
    const content = { list: 'content', index: indexIn(data.content_index) } as const;
    const summary = { list: 'summary', index: indexIn(data.summary_index) } as const;
    const text = TEXT_EVENTS.get(data.type);
    if (text) {
      const { list, type, field, isWhole } = text;
      const part = partOf(shown, list === 'content' ? content : summary, type);
      part[field] = isWhole ? textIn(data[field]) : textIn(part[field]) + textIn(data.delta);
      return;
    }
    const call = CALL_EVENTS.get(data.type);
    if (call) {
      const { field, isWhole } = call;
      const said = isWhole ? textIn(data[field]) : textIn(shown.item[field]) + textIn(data.delta);
      shown.item = { ...shown.item, [field]: said };
      shown.isWhole ||= isWhole;
    } else this.#changeItem(shown, data, content, summary);
  }

  #changeItem(shown: ShownItem, data: ResponsesData, content: PartPlace, summary: PartPlace): void {
    switch (data.type) {
      case 'response.output_item.done':
        if (isObject(data.item)) shown.item = data.item;
        shown.isDone = true;
        shown.open = undefined;
        return;
      case 'response.content_part.added':
        putPart(shown, content, data.part);
        return;
      case 'response.reasoning_summary_part.added':
        putPart(shown, summary, data.part);
        return;
      case 'response.content_part.done':
        putPart(shown, content, data.part);
        shown.open = undefined;
        return;
      case 'response.reasoning_summary_part.done':
        putPart(shown, summary, data.part);
        shown.open = undefined;
        return;
      case 'response.output_text.annotation.added':
        annotate(partOf(shown, content, 'output_text'), data.annotation);
    }
  }
}

/** A cut call must not be executed, and cut thoughts without a result can't be sent back. */
const isCut = (item: Json): boolean =>
  item.status === 'incomplete' && (kindOf(item) === 'call' || kindOf(item) === 'reasoning');

/** An item's parts in one of its lists. */
export function partsOf({ item }: Pick<ShownItem, 'item'>, list: PartList): readonly Json[] {
  const parts = item[list];
  return Array.isArray(parts) ? (parts as Json[]) : [];
}

const indexIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Copies, so that later changes don't affect the event. */
function putPart(shown: ShownItem, at: PartPlace, part: unknown): void {
  const parts = [...partsOf(shown, at.list)];
  parts[at.index] = isObject(part) ? { ...part } : {};
  shown.item = { ...shown.item, [at.list]: parts };
  shown.open = at;
}

/** The open part; created if the server did not announce it. */
function partOf(shown: ShownItem, at: PartPlace, type: string): Part {
  const known = partsOf(shown, at.list)[at.index];
  if (!known || typeOf(known) !== type) putPart(shown, at, { type, ...textPart(type)?.empty });
  shown.open ??= at;
  return partsOf(shown, at.list)[at.index] as Part;
}

function annotate(part: Part, annotation: unknown): void {
  part.annotations = [
    ...(Array.isArray(part.annotations) ? (part.annotations as unknown[]) : []),
    annotation,
  ];
}
