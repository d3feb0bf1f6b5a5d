import { isObject } from '../../json.ts';
import { cancelDelta } from '../../plans/cancelled-call.ts';
import type { Delta, Usage } from '../../plans/delta.ts';
import { normalisedArguments } from '../../plans/tool-proof.ts';
import type { Advisory } from '../advisory.ts';
import { ShownCalls, type ShownFragment } from '../shown-calls.ts';
import {
  argumentsOf,
  callClosing,
  callCut,
  callOf,
  itemClosing,
  partAdded,
  partClosing,
  placeOf,
  type Unnumbered,
} from './responses-closing.ts';
import {
  type AttemptItem,
  type Json,
  KEEPALIVE,
  LIFECYCLE,
  type ResponsesData,
  type ResponsesEvent,
  textIn,
} from './responses-data.ts';
import { isCustom, isFunction, kindOf } from './responses-items.ts';
import { announced, Place } from './responses-place.ts';
import { EMPTY_PARTS, type PartList, partsOf, type ShownItem, ShownResponse } from './responses-shown.ts';
import { endTypeOf, failedResponse, responseInProgress, wholeResponse } from './responses-whole.ts';
import type { AnswerWriter, AnswerWriterOptions, Ending, ShownAnswer } from './wire.ts';

type Prose = Extract<Delta, { kind: 'text' | 'refusal' | 'reasoning' }>;
type Close = Extract<Delta, { kind: 'tool_close' }>;
type ToolDelta = Extract<Delta, { kind: 'tool_start' | 'tool_arguments' | 'tool_close' }>;

/** A call that is proven closed, with the events in which its attempt told it. */
interface WholeCall {
  readonly item: AttemptItem;
  readonly events: readonly ResponsesEvent[];
  readonly fragment: ShownFragment;
}

/** A message that a continuation goes on with although its own was never announced. */
const MESSAGE: AttemptItem = { kind: 'message', added: { type: 'message' }, lengthOf: () => 0 };
const REASONING: AttemptItem = { kind: 'reasoning', added: { type: 'reasoning' }, lengthOf: () => 0 };

/**
 * Writes one answer as the events of one response. Those of the first attempt pass as they came; those of a later one
 * become part of the response that the client has, in which one item follows the other.
 *
 * Held back are, besides calls, events that say nothing yet, until something is said: of an attempt that is cut they are
 * then forgotten, so that its items neither begin nor end for nothing.
 */
export class ResponsesAnswerWriter implements AnswerWriter<ResponsesEvent> {
  readonly #options: AnswerWriterOptions;
  readonly #shown = new ShownResponse();
  readonly #calls: ShownCalls;
  /** The calls that another replica was about to show, with their arguments. */
  readonly #restored = new Map<ShownItem, string>();
  /** The attempt goes on with an answer that another one has begun. */
  #continues: boolean = false;
  /** The client was sent what the provider sent, and all of it. */
  #isFaithful: boolean = true;
  /** Of the current attempt. */
  #places = new Map<AttemptItem, Place>();
  #pending: ResponsesEvent[] = [];
  #held = new Map<AttemptItem, ResponsesEvent[]>();
  #dropped = new Set<AttemptItem>();
  #itemOfCall = new Map<number, AttemptItem>();
  /** Calls that are closed: what came after them may have closed them before their own end came. */
  readonly #closed = new Set<number>();
  /** Calls that are whole and wait for the message before them to end. */
  #waiting: WholeCall[] = [];
  #last: ResponsesEvent | undefined;
  #advisories: Advisory[] = [];

  constructor(options: AnswerWriterOptions) {
    this.#options = options;
    this.#calls = new ShownCalls({ live: options.events !== 'none', legacy: false });
  }

  get begun(): boolean {
    return this.#shown.events > 0;
  }

  get id(): string | undefined {
    const id = this.#shown.response?.id;
    return typeof id === 'string' ? id : undefined;
  }

  restore({ events, calls }: ShownAnswer): void {
    for (const { payload, deltas } of events) {
      if (payload === undefined) this.#shown.say(deltas);
      else this.#shown.take(JSON.parse(payload) as ResponsesData);
    }
    for (const shown of this.#shown.openItems) {
      const call = callOf(shown, calls);
      if (call) this.#restored.set(shown, call.arguments);
    }
    this.#calls.restore(calls);
    this.#isFaithful = false;
  }

  show(deltas: readonly Delta[], event: ResponsesEvent, intact: boolean): void {
    // An event may be named again for what has to be said without one of its own.
    const isNew = event !== this.#last;
    this.#last = event;
    if (isNew && event.item?.kind === 'call') this.#showCall(event.item, event, deltas);
    else if (isNew && intact) this.#showWhole(event);
    else {
      this.#isFaithful = false;
      for (const delta of deltas) this.#showOne(delta, isNew ? event : undefined);
    }
  }

  forward(event: ResponsesEvent): void {
    this.#pass(event);
  }

  restart(): void {
    this.#continues = this.begun;
    if (this.#continues) this.#isFaithful = false;
    this.#places = new Map();
    this.#pending = [];
    this.#held = new Map();
    this.#dropped = new Set();
    this.#itemOfCall = new Map();
  }

  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    for (const index of indexes) {
      const item = this.#itemOfCall.get(index);
      if (item) this.#dropped.add(item);
      if (item) this.#held.delete(item);
      this.#isFaithful = false;
      const cancelled = this.#calls.cancel(index);
      if (!cancelled) continue;
      this.#options.sink.keep(cancelDelta(cancelled.position, reason));
      const shown = this.#openCall(cancelled.id);
      if (shown) this.#emit(callCut(shown));
      this.advise({ type: 'ToolCallCancel', id: cancelled.id, name: cancelled.name, reason, attempt });
    }
  }

  advise(advisory: Advisory): void {
    const { events, sink } = this.#options;
    if (events === 'none') return;
    if (!this.begun) this.#advisories.push(advisory);
    else if (events === 'comments') sink.comment(`holdfast ${JSON.stringify(advisory)}`);
    else this.#emit(this.#inProgress({ holdfast: advisory }));
  }

  breakSilence(): boolean {
    if (!this.begun) return false;
    this.#emit(this.#inProgress());
    return true;
  }

  finish(ending: Ending<ResponsesEvent>): void {
    this.#flush();
    if (!this.#isFaithful || !ending.finish) this.#closeAll();
    this.#end(ending);
  }

  finishRest(): void {}

  finishForwarded(): void {}

  fail(error: object): void {
    const early = this.#pending.find(isOfResponse)?.data.response;
    const first = this.#shown.response ?? (isObject(early) ? early : {});
    this.#emit({ type: 'response.failed', ...failedResponse(first, error) });
  }

  /** The event of an attempt, nothing of which was taken out. */
  #showWhole(event: ResponsesEvent): void {
    const { data, item, deltas } = event;
    const isKeepalive = data.type === KEEPALIVE;
    // Signs of life of another wire's are for us; clients do not know them.
    if (event.ping && !isKeepalive) return;
    if (LIFECYCLE.has(data.type)) {
      if (this.#continues) return;
      if (!this.begun) this.#pending.push(event);
      else this.#pass(event);
      return;
    }
    const isEarly = isKeepalive && !this.begun && !this.#pending.some(isOfResponse);
    if (isEarly || (item && item.kind !== 'other' && deltas.length === 0)) {
      this.#pending.push(event);
      return;
    }
    // A sign of life is to keep the client waiting, who may take none but events for one.
    if (!isKeepalive || !this.#continues) this.#flush();
    if (item) this.#passOfItem(item, event);
    else if (!this.#continues || isKeepalive) this.#pass(event);
  }

  #showOne(delta: Delta, event: ResponsesEvent | undefined): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#flush();
        this.#say(delta, event);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close':
        this.#take(delta);
        return;
      case 'tool_cancel':
        this.cancelCalls([delta.index], 'incomplete', 1);
    }
  }

  /** An event of a call: held until the call is closed, unless the client wants to see it come. */
  #showCall(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[]): void {
    for (const delta of deltas) if (delta.kind === 'tool_start') this.#itemOfCall.set(delta.index, item);
    if (this.#dropped.has(item)) {
      this.#isFaithful = false;
      return;
    }
    if (this.#calls.live) {
      this.#flush();
      this.#showLive(item, event, deltas);
      return;
    }
    if (this.#places.has(item)) {
      this.#passOfItem(item, event, []);
      return;
    }
    const held = this.#held.get(item) ?? [];
    this.#held.set(item, [...held, event]);
    for (const delta of deltas) this.#showOne(delta, undefined);
  }

  #showLive(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[]): void {
    const close = deltas.find(
      (delta) => delta.kind === 'tool_close' && this.#itemOfCall.get(delta.index) === item,
    ) as Close | undefined;
    const isBare = close !== undefined && this.#places.get(item)?.shown.item.arguments === '';
    // Arguments that are spelled as nothing are told in full, and so is the end of the call.
    if (isBare && event.data.arguments === '') this.#closeLive(close);
    else this.#passOfItem(item, event, this.#liveDeltas(item, deltas));
    const shown = this.#places.get(item)?.shown;
    // While a seam holds text back, events that say nothing do not come this far.
    if (close && this.#continues && shown && !shown.isDone) this.#close(shown);
  }

  /** What the journal is told of a call that is shown as it comes. */
  #liveDeltas(item: AttemptItem, deltas: readonly Delta[]): readonly Delta[] {
    return deltas.flatMap((delta): readonly Delta[] => {
      switch (delta.kind) {
        case 'tool_start':
        case 'tool_arguments':
          return this.#calls.take(delta)?.deltas ?? [];
        case 'tool_close':
          // What begins now may close another call.
          if (this.#closed.has(delta.index)) return [];
          if (this.#itemOfCall.get(delta.index) !== item) {
            this.#closeLive(delta);
            return [];
          }
          this.#closed.add(delta.index);
          return [this.#calls.positioned(delta)];
        case 'tool_cancel': {
          const { position: index } = this.#calls.cancel(delta.index) ?? {};
          return index === undefined ? [] : [{ kind: 'tool_cancel', index }];
        }
        default:
          return [];
      }
    });
  }

  #take(delta: ToolDelta): void {
    if (this.#calls.live) {
      if (delta.kind === 'tool_close') this.#closeLive(delta);
      return;
    }
    if (this.#closed.has(delta.index)) return;
    const fragment = this.#calls.take(delta);
    const item = this.#itemOfCall.get(delta.index);
    if (!fragment || !item) return;
    const events = this.#held.get(item) ?? [];
    this.#closed.add(delta.index);
    this.#held.delete(item);
    this.#flush();
    this.#waiting.push({ item, events, fragment });
    // Text that is still held back at a seam belongs to that message.
    if (!this.#isMessageOpen) this.#showWaiting();
  }

  /** A call that is shown as it comes is closed by what came after it. */
  #closeLive(delta: Close): void {
    if (this.#closed.has(delta.index)) return;
    this.#closed.add(delta.index);
    const closed = this.#calls.positioned(delta);
    const rest = this.#calls.take(delta)?.deltas ?? [];
    const { id } = this.#calls.cancel(delta.index) ?? {};
    const shown = id === undefined ? undefined : this.#openCall(id);
    if (!shown) return;
    const events = callClosing(shown, this.#argumentsOf(shown));
    for (const event of events.slice(0, -1)) this.#emit(event);
    for (const event of events.slice(-1)) this.#emit(event, [...rest, closed]);
  }

  /** What the run has as the arguments of a call that was shown. */
  #argumentsOf(shown: ShownItem): string {
    const { item } = shown;
    const said = isCustom(item) ? JSON.stringify(textIn(item.input)) : textIn(item.arguments);
    const restored = this.#restored.get(shown) ?? '';
    return normalisedArguments(restored.length > said.length ? restored : said);
  }

  /** The message that was cut is still to be gone on with. */
  get #isMessageOpen(): boolean {
    return this.#continues && this.#shown.openItems.some(({ item }) => item.type === 'message');
  }

  #showWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) this.#showClosed(call);
  }

  /** A call that is whole, as one attempt tells it from beginning to end. */
  #showClosed({ item, events, fragment }: WholeCall): void {
    // The one before it is whole, too, and lacks no more than its end.
    for (const shown of this.#shown.openItems) if (kindOf(shown.item) === 'call') this.#close(shown);
    const [first, ...rest] = events;
    const isAnnounced = first?.data.type === 'response.output_item.added';
    const place = this.#begin(item, isAnnounced ? first : undefined, fragment.deltas);
    this.#options.sink.storeFirst();
    const { shown } = place;
    const whole = argumentsOf(shown.item, fragment.arguments);
    const field = isCustom(shown.item) ? 'input' : 'arguments';
    let isWhole = false;
    for (const event of isAnnounced ? rest : events) {
      const { type } = event.data;
      const closes = type.endsWith(`_${field}.done`) || type === 'response.output_item.done';
      if (closes && isFunction(shown.item) && (this.#continues || shown.item[field] !== whole)) break;
      this.#passOfItem(item, event, []);
      isWhole ||= closes;
    }
    if (!isWhole) for (const event of callClosing(shown, fragment.arguments)) this.#emit(event);
  }

  /** Everything that said nothing until now has become part of the answer. */
  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const event of pending) {
      if (event.item) this.#passOfItem(event.item, event);
      else this.#pass(event);
    }
    if (!this.begun) return;
    const advisories = this.#advisories;
    this.#advisories = [];
    for (const advisory of advisories) this.advise(advisory);
  }

  /** An event of an attempt's item as one of the client's; some of those of a continuation are none. */
  #passOfItem(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[] = event.deltas): void {
    const { data } = event;
    if (data.type === 'response.output_item.added') {
      const open = item.kind === 'message' ? this.#joinable('message') : undefined;
      if (open && partsOf(open, 'content').every(({ text, refusal }) => !text && !refusal))
        this.#join(item, open);
      else this.#begin(item, event, deltas);
      return;
    }
    const place = this.#places.get(item) ?? this.#adopt(item, event);
    if (!place || place.shown.isDone) {
      this.#isFaithful = false;
      return;
    }
    const part = partOfEvent(data);
    if (part && !this.#fitPart(place, part, event)) return;
    if (this.#continues && data.type === 'response.output_item.done')
      for (const closing of partClosing(place.shown)) this.#emit(closing);
    this.#pass(event, place.changesTo(data), deltas);
  }

  /** An item that was not announced, or while nobody listened. */
  #adopt(item: AttemptItem, event: ResponsesEvent): Place | undefined {
    if (!this.#continues) {
      const place = new Place(item, this.#shown.itemOf(event.data), { isFirst: true });
      this.#places.set(item, place);
      return place;
    }
    const isProse = item.kind === 'message' || item.kind === 'reasoning';
    // What was told of it up to now, the client has already.
    const open = isProse ? this.#joinable(item.kind) : undefined;
    if (open) return this.#join(item, open);
    return event.deltas.length > 0 || item.kind === 'other' ? this.#begin(item) : undefined;
  }

  /** Sees to it that the client has the part which the event is about. False if the event says nothing new. */
  #fitPart(place: Place, { list, index, type }: AttemptPart, { data, deltas }: ResponsesEvent): boolean {
    if (!this.#continues) return true;
    const { shown } = place;
    if (data.type.endsWith('_part.added')) {
      const { open } = shown;
      const isSame = open && open.list === list && !place.holds(list, open.index) && isEmptyPart(shown);
      if (!isSame) for (const event of partClosing(shown)) this.#emit(event);
      place.putPart(list, index, isSame ? open.index : partsOf(shown, list).length);
      return !isSame;
    }
    if (place.partAt(list, index) !== undefined) return true;
    if (deltas.length === 0) return false;
    this.#openPart(place, list, type, index);
    return true;
  }

  /** Where the client is told more of this type, in the part that is open or in a new one. */
  #openPart(place: Place, list: PartList, type: string, index?: number): number {
    const { shown } = place;
    const known = index === undefined ? undefined : place.partAt(list, index);
    if (known !== undefined && shown.open?.index === known && shown.open.list === list) return known;
    const { open } = shown;
    const fits = open && open.list === list && partsOf(shown, list)[open.index]?.type === type;
    let part = open?.index ?? 0;
    if (!fits || (index !== undefined && place.holds(list, part))) {
      for (const event of partClosing(shown)) this.#emit(event);
      part = partsOf(shown, list).length;
      this.#emit(partAdded(shown, list, part, { type, ...EMPTY_PARTS[type] }));
    }
    if (index !== undefined) place.putPart(list, index, part);
    return part;
  }

  /** Prose that is not all that its event says, or has no event of its own. */
  #say(delta: Prose, event: ResponsesEvent | undefined): void {
    const { kind, list, type, name } = PROSE[delta.kind];
    const own = event?.item?.kind === kind ? event : undefined;
    const place = this.#placeFor(kind, own?.item);
    const said = own && partOfEvent(own.data);
    const isSummary = said?.list ?? (kind === 'reasoning' ? place.shown.open?.list : undefined);
    const at = kind === 'reasoning' ? (isSummary ?? list) : list;
    const part = this.#openPart(place, at, at === 'summary' ? 'summary_text' : type, said?.index);
    place.isRebuilt = true;
    const event_type = at === 'summary' ? 'response.reasoning_summary_text.delta' : name;
    const more = delta.kind === 'text' ? { logprobs: [] } : {};
    this.#emit({ type: event_type, ...placeOf(place.shown, at, part), delta: delta.text, ...more }, [delta]);
  }

  /** Where the client is told prose of this kind. */
  #placeFor(kind: 'message' | 'reasoning', item: AttemptItem | undefined): Place {
    const known = item && this.#places.get(item);
    if (known && !known.shown.isDone) return known;
    const open = item
      ? this.#joinable(kind)
      : this.#shown.openItems.findLast((shown) => kindOf(shown.item) === kind);
    if (open) return this.#placeOf(open) ?? this.#join(item ?? { ...ITEMS[kind] }, open);
    return this.#begin(item ?? { ...ITEMS[kind] });
  }

  #placeOf(shown: ShownItem): Place | undefined {
    return [...this.#places.values()].find((place) => place.shown === shown);
  }

  /** An item of an earlier attempt that nothing of this one has gone on with. */
  #joinable(kind: 'message' | 'reasoning'): ShownItem | undefined {
    // Calls that were made before this come before it.
    if (!this.#continues || this.#waiting.length > 0) return undefined;
    return this.#shown.openItems.findLast((shown) => kindOf(shown.item) === kind && !this.#placeOf(shown));
  }

  #join(item: AttemptItem, shown: ShownItem): Place {
    const place = new Place(item, shown, { isJoined: true });
    this.#places.set(item, place);
    return place;
  }

  /** A new item, after the ones that were left open. */
  #begin(item: AttemptItem, event?: ResponsesEvent, deltas: readonly Delta[] = []): Place {
    if (this.#continues)
      for (const shown of this.#shown.openItems) if (this.#isLeft(shown)) this.#close(shown);
    if (item.kind !== 'call') this.#showWaiting();
    const index = this.#isFaithful
      ? (event?.data.output_index ?? this.#shown.next_index)
      : this.#shown.next_index;
    const output_index = typeof index === 'number' ? index : this.#shown.next_index;
    const added = this.#continues ? announced(item, this.#shown.response, output_index) : item.added;
    if (event) {
      const isMoved = event.data.output_index !== undefined && event.data.output_index !== output_index;
      const changes = {
        ...(isMoved && { output_index }),
        ...(this.#continues && { item: added }),
      };
      this.#pass(event, changes, deltas);
    } else this.#emit({ type: 'response.output_item.added', output_index, item: added }, deltas);
    const shown = this.#shown.itemOf({ type: '', output_index });
    const place = new Place(item, shown, { isFirst: !this.#continues });
    this.#places.set(item, place);
    return place;
  }

  /** What begins now comes after it: prose is told in turn, and its end may have gone unseen. */
  #isLeft(shown: ShownItem): boolean {
    const kind = kindOf(shown.item);
    return kind === 'message' || kind === 'reasoning' || !this.#placeOf(shown);
  }

  #closeAll(): void {
    for (const shown of this.#shown.openItems) this.#close(shown);
    this.#showWaiting();
    for (const shown of this.#shown.openItems) this.#close(shown);
  }

  #close(shown: ShownItem): void {
    for (const event of partClosing(shown)) this.#emit(event);
    const isCall = kindOf(shown.item) === 'call';
    const events = isCall ? callClosing(shown, this.#argumentsOf(shown)) : [itemClosing(shown)];
    for (const event of events) this.#emit(event);
  }

  /** The call of this id that the client has seen begin. */
  #openCall(id: string): ShownItem | undefined {
    return this.#shown.openItems.find(({ item }) => item.call_id === id || item.id === id);
  }

  #end({ reason, finish, usage }: Ending<ResponsesEvent>): void {
    const deltas: Delta[] = [{ kind: 'finish', reason }];
    const reported = usage ?? finish?.deltas.find((delta) => delta.kind === 'usage')?.usage;
    if (reported) deltas.push({ kind: 'usage', usage: reported });
    if (finish) this.#pass(finish, this.#endChanges(finish, reason, usage), deltas);
    else this.#emit({ type: endTypeOf(reason), response: this.#whole({}, reason, usage) }, deltas);
  }

  #endChanges({ data }: ResponsesEvent, reason: string, usage: Usage | undefined): Json {
    if (this.#isFaithful && !usage) return {};
    const last = isObject(data.response) ? data.response : {};
    return { response: this.#whole(last, reason, usage) };
  }

  #whole(last: Json, reason: string, usage: Usage | undefined): Json {
    const { response: first = last, output } = this.#shown;
    return wholeResponse({ first, last, output, reason, usage });
  }

  #inProgress(more: object = {}): Unnumbered {
    const response = responseInProgress(this.#shown.response ?? {});
    return { type: 'response.in_progress', response, ...more };
  }

  /** An event of the provider, with what has to be changed of it. */
  #pass(event: ResponsesEvent, changes: Json = {}, deltas: readonly Delta[] = event.deltas): void {
    const { data, payload } = event;
    const { next_sequence: next } = this.#shown;
    const number = data.sequence_number;
    const isFirst = !this.begun && (number === 0 || number === 1);
    const isInStep = typeof number !== 'number' || isFirst || number === next;
    const isChanged = Object.keys(changes).length > 0;
    if (isChanged) this.#isFaithful = false;
    if (isInStep && !isChanged) this.#send(data, payload, deltas);
    else {
      const changed: ResponsesData = { ...data, ...(!isInStep && { sequence_number: next }), ...changes };
      this.#send(changed, JSON.stringify(changed), deltas);
    }
  }

  /** An event of our own. */
  #emit({ type, ...fields }: Unnumbered, deltas: readonly Delta[] = []): void {
    this.#isFaithful = false;
    const data: ResponsesData = { type, sequence_number: this.#shown.next_sequence, ...fields };
    this.#send(data, JSON.stringify(data), deltas);
  }

  #send(data: ResponsesData, payload: string, deltas: readonly Delta[]): void {
    const isRebuilt = deltas.length === 1 && deltas[0]?.kind === 'text' && this.#shown.rebuilds(data);
    this.#shown.take(data);
    this.#options.sink.send(payload, deltas, !isRebuilt);
  }
}

const isOfResponse = ({ data }: ResponsesEvent): boolean => isObject(data.response);

const ITEMS = { message: MESSAGE, reasoning: REASONING } as const;

const PROSE = {
  text: { kind: 'message', list: 'content', type: 'output_text', name: 'response.output_text.delta' },
  refusal: { kind: 'message', list: 'content', type: 'refusal', name: 'response.refusal.delta' },
  reasoning: {
    kind: 'reasoning',
    list: 'summary',
    type: 'reasoning_text',
    name: 'response.reasoning_text.delta',
  },
} as const;

/** The part of an attempt's item that an event is about. */
interface AttemptPart {
  readonly list: PartList;
  readonly index: number;
  readonly type: string;
}

function partOfEvent({ type, content_index, summary_index, part }: ResponsesData): AttemptPart | undefined {
  if (typeof summary_index === 'number')
    return { list: 'summary', index: summary_index, type: 'summary_text' };
  if (typeof content_index !== 'number') return undefined;
  const named = isObject(part) && typeof part.type === 'string' ? part.type : undefined;
  const implied = type.startsWith('response.refusal.')
    ? 'refusal'
    : type.startsWith('response.reasoning_text.')
      ? 'reasoning_text'
      : 'output_text';
  return { list: 'content', index: content_index, type: named ?? implied };
}

/** Nothing was said yet in the part that is open. */
function isEmptyPart(shown: ShownItem): boolean {
  const { open } = shown;
  const part = open && partsOf(shown, open.list)[open.index];
  return !part?.text && !part?.refusal;
}
