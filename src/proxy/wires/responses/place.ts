import { isObject } from '../../../lib/json.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import { type AttemptItem, type Json, type ResponsesData, textIn } from './data.ts';
import type { PartList } from './streamed-fields.ts';

/** Ids that a provider may look up beside those of reasoning the client was not shown; without it they are refused. */
const RENAMED: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call']);
/** Longer ids are refused. */
const ID_TAIL_CHARACTERS = 48;

/** Where an item of an attempt is in the client's response. */
export class Place {
  readonly item: AttemptItem;
  readonly shown: ShownItem;
  /** It continues what another attempt began. */
  readonly isJoined: boolean;
  /** The client got something else of it than the attempt sent. */
  isRebuilt: boolean;
  readonly #isFirst: boolean;
  readonly #parts = new Map<string, number>();

  /** `isFirst`: of the attempt that the answer began with. */
  constructor(item: AttemptItem, shown: ShownItem, { isFirst = false, isJoined = false }) {
    this.item = item;
    this.shown = shown;
    this.isJoined = isJoined;
    this.isRebuilt = isJoined;
    this.#isFirst = isFirst;
  }

  /** Where the client has this part of the attempt's item. */
  partAt(list: PartList, index: number): number | undefined {
    return this.#parts.get(`${list} ${index}`);
  }

  putPart(list: PartList, index: number, place: number): void {
    this.#parts.set(`${list} ${index}`, place);
  }

  /** Some part of the attempt's item is there. */
  holds(list: PartList, place: number): boolean {
    return [...this.#parts].some(([key, held]) => key.startsWith(list) && held === place);
  }

  /** What has to be changed of an event of the attempt's item before it is one of the client's, if anything. */
  changesTo(data: ResponsesData): Json | undefined {
    const { shown } = this;
    const isInPlace = data.output_index === undefined || data.output_index === shown.index;
    // Nearly every event is one of these.
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

  /** An item that only this attempt sent may have another id. */
  #renamed({ item }: ResponsesData, changes: Record<string, unknown>): Json {
    const { id } = this.shown.item;
    if (isObject(item) && item.id !== undefined && item.id !== id) changes.item = { ...item, id };
    return changes;
  }

  /** As the client has it. What was encrypted belongs to the id under which it came. */
  #whole(item: unknown): Json {
    const own = this.shown.item;
    if (!isObject(item)) return own;
    if (own.type === 'reasoning')
      return { ...own, ...(item.status !== undefined && { status: item.status }) };
    return { ...item, ...own, ...(item.status !== undefined && { status: item.status }) };
  }

  #mapped(list: PartList, index: unknown): number | undefined {
    return typeof index === 'number' ? (this.partAt(list, index) ?? index) : undefined;
  }

  /** Counted from the beginning of the text that the client has. */
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

/** As it is announced where a continuation brings it: empty, and under an id that goes with nothing unseen. */
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
