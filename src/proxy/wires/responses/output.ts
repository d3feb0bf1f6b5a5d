import type { JournalEvent } from '../../../checkpoint/journal.ts';
import type { Delta, Prose } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import { normalisedArguments, type ToolCall } from '../../../plans/tool-call.ts';
import { partsOf, type ShownItem } from './client-response-state.ts';
import {
  argumentsDelta,
  argumentsOf,
  callClosing,
  callOf,
  cutOff,
  itemClosing,
  partClosing,
  placeOf,
} from './ending.ts';
import { type AttemptItem, type ResponsesData, type ResponsesEvent, TEXT_PARTS, textIn } from './event.ts';
import { isCustom, isFunction, kindOf } from './items.ts';
import { announced, fitPart, openPart, Place, partOfEvent } from './place.ts';
import type { ResponsesSender } from './sender.ts';

/** A call proven complete, with its attempt's events. */
interface WholeCall {
  readonly item: AttemptItem;
  readonly events: readonly ResponsesEvent[];
  readonly fragment: ShownFragment;
}

/** Items for a continuation whose own item was never announced. */
const UNSEEN = {
  message: { kind: 'message', added: { type: 'message' }, lengthOf: () => 0 },
  reasoning: { kind: 'reasoning', added: { type: 'reasoning' }, lengthOf: () => 0 },
} as const satisfies Record<string, AttemptItem>;

/** Part types for prose; thoughts use a summary if they began as one. */
const PART_TYPES = { text: 'output_text', refusal: 'refusal', reasoning: 'reasoning_text' } as const;

/**
 * The items of one response as sent to its client. Items of the first attempt keep their indices and ids; those of
 * later attempts continue open items, or become new ones.
 */
export class ResponseOutput {
  readonly #sender: ResponsesSender;
  /** Calls that another replica was showing, or about to show. */
  readonly #restored = new Map<ShownItem, ToolCall>();
  #continues: boolean = false;
  /** Per attempt. */
  #places = new Map<AttemptItem, Place>();
  /** Complete calls that wait for the end of the message before them. */
  #waiting: WholeCall[] = [];

  constructor(sender: ResponsesSender) {
    this.#sender = sender;
  }

  /** Whether the attempt continues an earlier one's answer. */
  get continues(): boolean {
    return this.#continues;
  }

  restore(events: readonly JournalEvent[], calls: readonly ToolCall[]): void {
    const { shown } = this.#sender;
    for (const { payload, deltas } of events) {
      if (payload === undefined) shown.say(deltas);
      else shown.add(JSON.parse(payload) as ResponsesData);
    }
    for (const item of shown.openItems) {
      const call = callOf(item, calls);
      if (call) this.#restored.set(item, call);
    }
    this.#sender.isFaithful = false;
  }

  restart(): void {
    this.#continues = this.#sender.begun;
    if (this.#continues) this.#sender.isFaithful = false;
    this.#places = new Map();
    this.leaveThoughts();
  }

  /**
   * Thoughts without anything after them were cut. No other attempt can continue them, because the encrypted content
   * belongs to their id and summary, and arrives only at the end.
   */
  leaveThoughts(): void {
    const last = this.#sender.shown.items.at(-1);
    if (!last || last.isDone || kindOf(last.item) !== 'reasoning') return;
    this.#closePart(last);
    this.#sender.emit(cutOff(last));
  }

  /** Whether the client has seen part of the item. */
  has(item: AttemptItem): boolean {
    return this.#places.has(item);
  }

  shownOf(item: AttemptItem): ShownItem | undefined {
    return this.#places.get(item)?.shown;
  }

  /** Converts an event of an attempt's item to one for the client; a continuation's event may have no equivalent. */
  pass(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[] = event.deltas): void {
    const { data } = event;
    if (data.type === 'response.output_item.added') {
      const empty = item.kind === 'message' ? this.#joinable('message') : undefined;
      if (empty && saysNothing(empty)) this.#join(item, empty);
      else this.#begin(item, event, deltas);
      return;
    }
    const place = this.#places.get(item) ?? this.#adopt(item, event);
    if (!place || place.shown.isDone) {
      this.#sender.isFaithful = false;
      return;
    }
    if (this.#continues && !fitPart(place, event, this.#sender)) return;
    if (this.#continues && data.type === 'response.output_item.done') this.#closePart(place.shown);
    this.#sender.pass(event, place.changesTo(data), deltas);
  }

  /** Shows prose that is only part of its event, or has no event of its own. */
  say(delta: Prose, event: ResponsesEvent | undefined): void {
    const kind = delta.kind === 'reasoning' ? 'reasoning' : 'message';
    const own = event?.item?.kind === kind ? event : undefined;
    const place = this.#placeFor(kind, own?.item);
    const told = own && partOfEvent(own.data);
    const list = told?.list ?? place.shown.open?.list ?? (kind === 'reasoning' ? 'summary' : 'content');
    const type = list === 'summary' ? 'summary_text' : PART_TYPES[delta.kind];
    const part = openPart(place, { list, type, ...(told && { index: told.index }) }, this.#sender);
    place.isRebuilt = true;
    const more = delta.kind === 'text' ? { logprobs: [] } : {};
    const said = {
      type: `${TEXT_PARTS[type].event}.delta`,
      ...placeOf(place.shown, list, part),
      delta: delta.text,
      ...more,
    };
    this.#sender.emit(said, [delta]);
  }

  /** Shows a whole call. If an open message will be continued, the call waits for its end. */
  showCall(call: WholeCall): void {
    const isWithin =
      this.#continues && this.#sender.shown.openItems.some(({ item }) => kindOf(item) === 'message');
    if (isWithin) this.#waiting.push(call);
    else this.#showCall(call);
  }

  /** Ends everything that was begun. */
  closeAll(): void {
    this.#closeOpen(() => true);
    this.#showWaiting();
    this.#closeOpen(() => true);
  }

  /** Adds arguments to a call from an earlier attempt. */
  continueCall({ item, index }: ShownItem, { arguments: said, deltas }: ShownFragment): void {
    this.#sender.emit(argumentsDelta(item, index, said), deltas);
  }

  /** The events that end a shown call, with its arguments. */
  closingOf(shown: ShownItem) {
    return callClosing(shown, this.#argumentsOf(shown));
  }

  close(shown: ShownItem): void {
    this.#closePart(shown);
    const isCall = kindOf(shown.item) === 'call';
    for (const event of isCall ? this.closingOf(shown) : [itemClosing(shown)]) this.#sender.emit(event);
  }

  /** The open call with this id that the client has seen. */
  openCall(id: string): ShownItem | undefined {
    return this.#sender.shown.openItems.find(({ item }) => item.call_id === id || item.id === id);
  }

  #showWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) this.#showCall(call);
  }

  /** Sends a call like a single attempt would. */
  #showCall({ item, events, fragment }: WholeCall): void {
    // The previous call is complete too, and lacks only its end.
    this.#closeOpen((shown) => kindOf(shown.item) === 'call');
    const [first, ...rest] = events;
    const isAnnounced = first?.data.type === 'response.output_item.added';
    const { shown } = this.#begin(item, isAnnounced ? first : undefined, fragment.deltas);
    this.#sender.storeFirst();
    let isClosed = false;
    for (const event of isAnnounced ? rest : events) {
      const closes = endsArguments(event);
      if (closes && isFunction(shown.item) && !this.#mayClose(shown, fragment)) break;
      this.pass(item, event, []);
      isClosed ||= closes;
    }
    if (!isClosed) for (const event of callClosing(shown, fragment.arguments)) this.#sender.emit(event);
  }

  /** Whether the attempt's events for the end of the call match what was shown. */
  #mayClose({ item }: ShownItem, { arguments: whole }: ShownFragment): boolean {
    const said = isCustom(item) ? item.input : item.arguments;
    return !this.#continues && said === argumentsOf(item, whole);
  }

  /** The arguments of a shown call in the form of a run. */
  #argumentsOf(shown: ShownItem): string {
    const { item } = shown;
    const said = isCustom(item) ? JSON.stringify(textIn(item.input)) : textIn(item.arguments);
    const restored = this.#restored.get(shown)?.arguments ?? '';
    return normalisedArguments(restored.length > said.length ? restored : said);
  }

  /** Registers an item without an announcement, or one announced before this attempt was read. */
  #adopt(item: AttemptItem, event: ResponsesEvent): Place | undefined {
    if (!this.#continues)
      return this.#put(new Place(item, this.#sender.shown.itemOf(event.data), { isFirst: true }));
    const { kind } = item;
    // The client already has the earlier part.
    const open = kind === 'message' || kind === 'reasoning' ? this.#joinable(kind) : undefined;
    if (open) return this.#join(item, open);
    if (event.deltas.length === 0 && kind !== 'other') return undefined;
    const place = this.#begin(item);
    // For prose, the attempt's earlier part was removed.
    place.isRebuilt = kind !== 'other';
    return place;
  }

  /** Where to put prose of this kind in the client's response. */
  #placeFor(kind: 'message' | 'reasoning', item: AttemptItem | undefined): Place {
    const known = item && this.#places.get(item);
    if (known && !known.shown.isDone) return known;
    const open = item
      ? this.#joinable(kind)
      : this.#sender.shown.openItems.findLast((shown) => kindOf(shown.item) === kind);
    const own = item ?? { ...UNSEEN[kind] };
    if (!open) return this.#begin(own);
    return this.#placeOf(open) ?? this.#join(own, open);
  }

  /** An item of an earlier attempt that this attempt has not continued yet. */
  #joinable(kind: 'message' | 'reasoning'): ShownItem | undefined {
    // Waiting calls must come before new prose.
    if (!this.#continues || this.#waiting.length > 0) return undefined;
    const { openItems } = this.#sender.shown;
    return openItems.findLast((shown) => kindOf(shown.item) === kind && !this.#placeOf(shown));
  }

  #join(item: AttemptItem, shown: ShownItem): Place {
    return this.#put(new Place(item, shown, { isJoined: true }));
  }

  /** Begins a new item after ending the open ones. */
  #begin(item: AttemptItem, event?: ResponsesEvent, deltas: readonly Delta[] = []): Place {
    if (this.#continues) this.#closeOpen((open) => this.#isLeft(open));
    if (item.kind !== 'call') this.#showWaiting();
    const { shown, isFaithful } = this.#sender;
    const own = event?.data.output_index;
    const output_index = isFaithful && typeof own === 'number' ? own : shown.next_index;
    const added = this.#continues ? announced(item, shown.response, output_index) : item.added;
    if (event) {
      const isMoved = own !== undefined && own !== output_index;
      const changes = { ...(isMoved && { output_index }), ...(this.#continues && { item: added }) };
      this.#sender.pass(event, changes, deltas);
    } else this.#sender.emit({ type: 'response.output_item.added', output_index, item: added }, deltas);
    const begun = shown.itemOf({ type: '', output_index });
    return this.#put(new Place(item, begun, { isFirst: !this.#continues }));
  }

  /** Whether a new item ends this one: prose is sequential, and its end may have been held. */
  #isLeft(shown: ShownItem): boolean {
    const kind = kindOf(shown.item);
    return kind === 'message' || kind === 'reasoning' || !(this.#isMadeAgain(shown) || this.#placeOf(shown));
  }

  /** A cut but uncancelled call, which a repeated attempt continues. */
  #isMadeAgain(shown: ShownItem): boolean {
    const isClosed = shown.isWhole || this.#restored.get(shown)?.state === 'closed';
    return kindOf(shown.item) === 'call' && !isClosed;
  }

  #closeOpen(isMeant: (shown: ShownItem) => boolean): void {
    for (const shown of this.#sender.shown.openItems) if (isMeant(shown)) this.close(shown);
  }

  #closePart(shown: ShownItem): void {
    for (const event of partClosing(shown)) this.#sender.emit(event);
  }

  #placeOf(shown: ShownItem): Place | undefined {
    return [...this.#places.values()].find((place) => place.shown === shown);
  }

  #put(place: Place): Place {
    this.#places.set(place.item, place);
    return place;
  }
}

const saysNothing = (shown: ShownItem): boolean =>
  partsOf(shown, 'content').every(({ text, refusal }) => !text && !refusal);

const endsArguments = ({ data: { type } }: ResponsesEvent): boolean =>
  type === 'response.output_item.done' ||
  type === 'response.function_call_arguments.done' ||
  type === 'response.custom_tool_call_input.done';
