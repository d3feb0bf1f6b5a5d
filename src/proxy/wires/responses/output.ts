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

/** A call that is proven closed, with the events in which its attempt sent it. */
interface WholeCall {
  readonly item: AttemptItem;
  readonly events: readonly ResponsesEvent[];
  readonly fragment: ShownFragment;
}

/** An item that a continuation continues although its own was never announced. */
const UNSEEN = {
  message: { kind: 'message', added: { type: 'message' }, lengthOf: () => 0 },
  reasoning: { kind: 'reasoning', added: { type: 'reasoning' }, lengthOf: () => 0 },
} as const satisfies Record<string, AttemptItem>;

/** The parts that prose is sent in; thoughts as a summary if they were begun as one. */
const PART_TYPES = { text: 'output_text', refusal: 'refusal', reasoning: 'reasoning_text' } as const;

/**
 * The items of one response as its client gets them. Those of the attempt that it began with keep their places and
 * their names; those of a later one continue what was left open, or become new items after it.
 */
export class ResponseOutput {
  readonly #sender: ResponsesSender;
  /** The calls that another replica was about to show, or was showing. */
  readonly #restored = new Map<ShownItem, ToolCall>();
  #continues: boolean = false;
  /** Of the current attempt. */
  #places = new Map<AttemptItem, Place>();
  /** Calls that are whole and wait for the message before them to end. */
  #waiting: WholeCall[] = [];

  constructor(sender: ResponsesSender) {
    this.#sender = sender;
  }

  /** The attempt continues an answer that another one has begun. */
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
   * Thoughts that nothing has come after were cut. No other attempt can continue them: what is encrypted of an item belongs to its
   * id and its summary, and comes with its end.
   */
  leaveThoughts(): void {
    const last = this.#sender.shown.items.at(-1);
    if (!last || last.isDone || kindOf(last.item) !== 'reasoning') return;
    this.#closePart(last);
    this.#sender.emit(cutOff(last));
  }

  /** The client has something of it. */
  has(item: AttemptItem): boolean {
    return this.#places.has(item);
  }

  shownOf(item: AttemptItem): ShownItem | undefined {
    return this.#places.get(item)?.shown;
  }

  /** An event of an attempt's item as one of the client's; some of those of a continuation are none. */
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

  /** Prose that is not all that its event says, or has no event of its own. */
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

  /** Shows a whole call, unless a message is still open and will be continued: it comes after that. */
  showCall(call: WholeCall): void {
    const isWithin =
      this.#continues && this.#sender.shown.openItems.some(({ item }) => kindOf(item) === 'message');
    if (isWithin) this.#waiting.push(call);
    else this.#showCall(call);
  }

  /** Ends whatever was begun. */
  closeAll(): void {
    this.#closeOpen(() => true);
    this.#showWaiting();
    this.#closeOpen(() => true);
  }

  /** More of the arguments of a call that an earlier attempt has begun. */
  continueCall({ item, index }: ShownItem, { arguments: said, deltas }: ShownFragment): void {
    this.#sender.emit(argumentsDelta(item, index, said), deltas);
  }

  /** The events that end a call which was shown, with its arguments. */
  closingOf(shown: ShownItem) {
    return callClosing(shown, this.#argumentsOf(shown));
  }

  close(shown: ShownItem): void {
    this.#closePart(shown);
    const isCall = kindOf(shown.item) === 'call';
    for (const event of isCall ? this.closingOf(shown) : [itemClosing(shown)]) this.#sender.emit(event);
  }

  /** The call of this id that the client has seen begin. */
  openCall(id: string): ShownItem | undefined {
    return this.#sender.shown.openItems.find(({ item }) => item.call_id === id || item.id === id);
  }

  #showWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) this.#showCall(call);
  }

  /** As one attempt sends it from beginning to end. */
  #showCall({ item, events, fragment }: WholeCall): void {
    // The one before it is whole, too, and lacks no more than its end.
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

  /** The end of a call as its attempt sent it is that of the call as it was shown. */
  #mayClose({ item }: ShownItem, { arguments: whole }: ShownFragment): boolean {
    const said = isCustom(item) ? item.input : item.arguments;
    return !this.#continues && said === argumentsOf(item, whole);
  }

  /** What the run has as the arguments of a call that was shown. */
  #argumentsOf(shown: ShownItem): string {
    const { item } = shown;
    const said = isCustom(item) ? JSON.stringify(textIn(item.input)) : textIn(item.arguments);
    const restored = this.#restored.get(shown)?.arguments ?? '';
    return normalisedArguments(restored.length > said.length ? restored : said);
  }

  /** An item that was not announced, or was announced before this attempt was read. */
  #adopt(item: AttemptItem, event: ResponsesEvent): Place | undefined {
    if (!this.#continues)
      return this.#put(new Place(item, this.#sender.shown.itemOf(event.data), { isFirst: true }));
    const { kind } = item;
    // The client already has what was sent of it up to now.
    const open = kind === 'message' || kind === 'reasoning' ? this.#joinable(kind) : undefined;
    if (open) return this.#join(item, open);
    if (event.deltas.length === 0 && kind !== 'other') return undefined;
    const place = this.#begin(item);
    // Of prose, what the attempt sent before this was left out.
    place.isRebuilt = kind !== 'other';
    return place;
  }

  /** Where the client gets prose of this kind. */
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

  /** An item of an earlier attempt that this one has not continued. */
  #joinable(kind: 'message' | 'reasoning'): ShownItem | undefined {
    // Calls that were made before this come before it.
    if (!this.#continues || this.#waiting.length > 0) return undefined;
    const { openItems } = this.#sender.shown;
    return openItems.findLast((shown) => kindOf(shown.item) === kind && !this.#placeOf(shown));
  }

  #join(item: AttemptItem, shown: ShownItem): Place {
    return this.#put(new Place(item, shown, { isJoined: true }));
  }

  /** A new item, after the ones that were left open. */
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

  /** What begins now comes after it: prose is sent in order, and its end may have gone unseen. */
  #isLeft(shown: ShownItem): boolean {
    const kind = kindOf(shown.item);
    return kind === 'message' || kind === 'reasoning' || !(this.#isMadeAgain(shown) || this.#placeOf(shown));
  }

  /** A call that was cut and not cancelled: its attempt is made again, and continues it. */
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
