import type { EventSourceMessage } from 'eventsource-parser';
import { failureStatusOf, type ProviderError, providerErrorIn } from '../../../interrupts/provider-error.ts';
import { isObject, parseJson } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import {
  dataOf,
  isUnreadableText,
  MALFORMED,
  SIGNS_OF_LIFE,
  strayValue,
  unparsedEvent,
} from '../common/event-data.ts';
import type { WireEvent, WireReader } from '../common/wire.ts';
import { endOf } from './ending.ts';
import {
  CALL_EVENTS,
  type Json,
  LIFECYCLE,
  type ResponsesData,
  type ResponsesEvent,
  TERMINAL,
  TEXT_EVENTS,
  textIn,
} from './event.ts';
import { impliedItem, sealedIn, TrackedItem } from './items.ts';
import { ResponsesProviderTools } from './provider-tools.ts';

export type ResponsesReading = WireEvent<ResponsesEvent>;

const NO_DELTAS: readonly Delta[] = [];
const ABOUT_NO_ITEM: ReadonlySet<string> = new Set([...LIFECYCLE, ...TERMINAL, ...SIGNS_OF_LIFE]);

/** Reads the events of one attempt on `/v1/responses`. */
export class ResponsesReader implements WireReader<ResponsesEvent> {
  readonly #nextCall: () => number;
  readonly #background: 'client' | 'operator' | undefined;
  readonly #items = new Map<unknown, TrackedItem>();
  readonly #providerTools = new ResponsesProviderTools();
  /** Complete encrypted thoughts from before the answer. */
  readonly sealed: Json[] = [];
  /** Something other than thoughts has begun. */
  #answers: boolean = false;
  #hasCalls = false;
  #id: string | undefined;
  /** The sequence number of the last event. */
  #number: number | undefined;
  #isOver: boolean = false;
  #isEnded: boolean = false;

  /**
   * `nextCall` assigns the run's indices for calls. `background`: the provider continues without a connection, at the
   * request of the client or of the operator.
   */
  constructor(nextCall: () => number, background?: 'client' | 'operator') {
    this.#nextCall = nextCall;
    this.#background = background;
  }

  get answer_id(): string | undefined {
    return this.#id;
  }

  get resume_path(): string | undefined {
    if (!this.#background || this.#isOver || this.#id === undefined || this.#number === undefined)
      return undefined;
    return `/responses/${encodeURIComponent(this.#id)}?stream=true&starting_after=${this.#number}`;
  }

  get cancel_path(): string | undefined {
    const isOver = this.#isOver || this.#isEnded;
    if (this.#background !== 'operator' || isOver || this.#id === undefined) return undefined;
    return `/responses/${encodeURIComponent(this.#id)}/cancel`;
  }

  read(message: EventSourceMessage): ResponsesReading {
    const event = this.#read(message);
    // A failed answer can't be resumed.
    if (event.kind === 'error_event' || event.kind === 'bad_finish') this.#isOver = true;
    return event;
  }

  #read(message: EventSourceMessage): ResponsesReading {
    const payload = dataOf(message);
    if (payload.trim() === '[DONE]') return { kind: 'done' };
    let parsed: unknown;
    try {
      parsed = parseJson(payload);
    } catch {
      return unparsedEvent(payload, message.event);
    }
    const error = errorIn(parsed, message.event);
    if (error) return failed(error);
    if (!isObject(parsed)) return strayValue(parsed);
    const { response, sequence_number } = parsed;
    const type = textIn(parsed.type) || (message.event ?? '');
    if (SPOKEN.has(type) && !isSpoken(parsed)) return MALFORMED;
    if (isObject(response) && typeof response.id === 'string') this.#id = response.id;
    if (typeof sequence_number === 'number') this.#number = sequence_number;
    // Avoids a copy, because events nearly always contain their type.
    const data = (type === parsed.type ? parsed : { ...parsed, type }) as ResponsesData;
    if (this.#background !== 'operator' || !isObject(response)) return this.#readData(data, payload);
    const shown = inForeground(data, response);
    return this.#readData(shown, JSON.stringify(shown));
  }

  #readData(data: ResponsesData, payload: string): ResponsesReading {
    const item = ABOUT_NO_ITEM.has(data.type) ? undefined : this.#itemOf(data);
    if (item) {
      if (item.kind !== 'reasoning') this.#answers = true;
      const thoughts = this.#answers ? undefined : sealedIn(data);
      if (thoughts) this.sealed.push(thoughts);
      const works = item.kind === 'reasoning' || item.kind === 'other';
      return {
        kind: 'answer',
        payload,
        data,
        item,
        deltas: this.#deltasOf(data, item),
        manyChoices: false,
        works,
        ...(item.kind === 'other' && { aside: true }),
      };
    }
    const event = { kind: 'answer', payload, data, deltas: NO_DELTAS, manyChoices: false } as const;
    if (TERMINAL.has(data.type)) return this.#readEnd(event);
    return SIGNS_OF_LIFE.has(data.type) ? { ...event, ping: true } : event;
  }

  #readEnd(event: ResponsesEvent): ResponsesReading {
    this.#isEnded = true;
    const { type, response } = event.data;
    const deltas = endOf(type, isObject(response) ? response : {}, this.#hasCalls);
    const [{ reason }] = deltas;
    const status = failureStatusOf(reason);
    return status === undefined ? { ...event, deltas, last: true } : { kind: 'bad_finish', reason, status };
  }

  /** Tolerates servers that change an item's id midway or omit the index. */
  #itemOf(data: ResponsesData): TrackedItem | undefined {
    const { type, output_index, item_id, item } = data;
    const announced = isObject(item) ? item : undefined;
    const key = output_index ?? item_id ?? announced?.id;
    if (key === undefined) return undefined;
    const known = this.#items.get(key);
    if (known && type !== 'response.output_item.added') return known;
    const tracked = new TrackedItem(announced ?? impliedItem(data), this.#nextCall);
    this.#items.set(key, tracked);
    return tracked;
  }

  #deltasOf(data: ResponsesData, item: TrackedItem): readonly Delta[] {
    const told = TEXT_EVENTS.get(data.type);
    if (!told) return item.isCall ? this.#callDeltas(data, item) : this.#providerTools.read(data);
    const { kind, list, field, isWhole } = told;
    const place = list === 'content' ? String(data.content_index ?? 0) : `summary ${data.summary_index ?? 0}`;
    return isWhole
      ? item.sayRest(kind, place, textIn(data[field]))
      : item.say(kind, place, textIn(data.delta));
  }

  #callDeltas(data: ResponsesData, item: TrackedItem): readonly Delta[] {
    const told = CALL_EVENTS.get(data.type);
    if (told) return told.isWhole ? item.close(textIn(data[told.field])) : item.argue(textIn(data.delta));
    switch (data.type) {
      case 'response.output_item.added':
        this.#hasCalls = true;
        this.#providerTools.read(data);
        return item.begin();
      case 'response.output_item.done':
        this.#hasCalls = true;
        return isObject(data.item) ? item.finish(data.item) : NO_DELTAS;
      default:
        return NO_DELTAS;
    }
  }
}

/** The event for a client that did not ask for `background`, whose response is never queued. */
function inForeground(data: ResponsesData, response: Json): ResponsesData {
  const { background, status } = response;
  return {
    ...data,
    type: data.type === 'response.queued' ? 'response.in_progress' : data.type,
    response: {
      ...response,
      ...(background === true && { background: false }),
      ...(status === 'queued' && { status: 'in_progress' }),
    },
  };
}

/** Events with a piece of the answer. */
const SPOKEN: ReadonlySet<string> = new Set([
  'response.output_text.delta',
  'response.refusal.delta',
  'response.function_call_arguments.delta',
  'response.custom_tool_call_input.delta',
]);

/** Whether its piece is text and belongs to an item, or is empty. */
const isSpoken = ({ delta, output_index, item_id }: Json): boolean =>
  !isUnreadableText(delta) && (textIn(delta) === '' || (output_index ?? item_id) !== undefined);

const failed = (error: ProviderError): ResponsesReading => ({ kind: 'error_event', error });

/** Finds an error: as an event of its own, in a failed response, or added to any event by a gateway. */
function errorIn(parsed: unknown, name: string | undefined): ProviderError | undefined {
  if (!isObject(parsed)) return providerErrorIn(parsed);
  const { type, response, error } = parsed;
  const told = isObject(response) ? response.error : undefined;
  if (type === 'response.failed' || (TERMINAL.has(textIn(type)) && isObject(told)))
    return providerErrorIn({ error: told }) ?? { words: [], message: '' };
  if (type === 'error' && !error) {
    const { type: _, ...flat } = parsed;
    return providerErrorIn({ error: flat });
  }
  if (error || type === 'error' || name === 'error' || typeof type !== 'string')
    return (
      providerErrorIn(parsed) ??
      (name === 'error' ? { words: [], message: JSON.stringify(parsed) } : undefined)
    );
  return undefined;
}
