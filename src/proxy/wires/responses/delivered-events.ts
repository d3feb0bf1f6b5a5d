import type { JournalEvent } from '../../../checkpoint/journal.ts';
import { isObject } from '../../../lib/json.ts';
import { type Delta, partOf } from '../../../plans/delta.ts';
import { Transcript } from '../../../plans/transcript.ts';
import {
  cancelledCallOf,
  type DeliveredEvent,
  type DeliveredEvents,
  type DeliveredReader,
  type Rebuilder,
} from '../common/delivered-events.ts';
import { ResponsesAnswerWriter } from './answer-writer.ts';
import { ClientResponseState } from './client-response-state.ts';
import { endOf } from './ending.ts';
import {
  CALL_EVENTS,
  dataIn,
  eventTypeOf,
  type Json,
  type ResponsesData,
  type ResponsesEvent,
  TERMINAL,
  TEXT_EVENTS,
  textIn,
} from './event.ts';
import { isCustom, isFunction, jsonPiece, kindOf, sealedIn } from './items.ts';
import { ResponsesProviderTools } from './provider-tools.ts';

const isThought = ({ kind }: Delta): boolean => kind === 'reasoning';

const ENCRYPTED = '"encrypted_content"';

/** Delivered events of a response. */
export const responsesDeliveredEvents: DeliveredEvents<ResponsesEvent> = {
  reader: () => new ResponsesDeliveredReader(),

  endOf(payload) {
    const type = eventTypeOf(payload);
    if (TERMINAL.has(type)) return 'done';
    return type === 'response.failed' ? 'error' : undefined;
  },

  announcedError(payload) {
    if (eventTypeOf(payload) !== 'error') return undefined;
    const { error } = dataIn(payload);
    return isObject(error) ? error : undefined;
  },

  hasIdentity: (payload) => responseIn(payload) !== undefined,
  idOf: (payload) => {
    const id = responseIn(payload)?.id;
    return typeof id === 'string' ? id : undefined;
  },

  standIn: () => ({ kind: 'answer', payload: '', data: { type: '' }, deltas: [], manyChoices: false }),
  rebuilder: () => new ResponsesRebuilder(),
  sealed(sent) {
    const answers = sent.findIndex(({ deltas }) =>
      deltas.some((delta) => partOf(delta) && !isThought(delta)),
    );
    return sent.slice(0, answers === -1 ? undefined : answers).flatMap(({ payload }) => {
      const thoughts = payload?.includes(ENCRYPTED) ? sealedIn(dataIn(payload) as ResponsesData) : undefined;
      return thoughts ? [thoughts] : [];
    });
  },
  failure: (error, sent) => failureAfter(sent, error),
  done: [],
  showsCloses: true,
};

const responseIn = (payload: string): Json | undefined => {
  if (!eventTypeOf(payload).startsWith('response.')) return undefined;
  const { response } = dataIn(payload);
  return isObject(response) ? response : undefined;
};

/** The failure events to follow everything sent so far. */
function failureAfter(sent: readonly JournalEvent[], error: object): readonly string[] {
  const failure: string[] = [];
  const writer = new ResponsesAnswerWriter({
    events: 'none',
    sink: {
      send: (payload) => void failure.push(payload),
      comment: () => {},
      keep: () => {},
      storeFirst: () => {},
    },
  });
  const { toolCalls: calls } = Transcript.of(sent.flatMap(({ deltas }) => deltas));
  writer.restore({ first: undefined, content: undefined, calls, events: sent });
  writer.fail(error);
  return failure;
}

class ResponsesRebuilder implements Rebuilder {
  readonly #shown = new ClientResponseState();

  add(payload: string): void {
    this.#shown.add(dataIn(payload) as ResponsesData);
  }

  payloadOf(deltas: readonly Delta[]): string {
    return JSON.stringify(this.#shown.say(deltas));
  }
}

/** A call whose beginning was seen. */
interface SeenCall {
  readonly index: number;
  said: string;
}

class ResponsesDeliveredReader implements DeliveredReader {
  /** By `output_index`. */
  readonly #calls = new Map<unknown, SeenCall>();
  readonly #providerTools = new ResponsesProviderTools();

  read(payload: string, calls: number): DeliveredEvent | undefined {
    let data: Json;
    try {
      data = dataIn(payload);
    } catch {
      return undefined;
    }
    if (typeof data.type !== 'string') return undefined;
    const cancelled = cancelledCallOf(data);
    const said = this.#deltasOf(data as ResponsesData, calls);
    const ran = this.#providerTools.read(data as ResponsesData);
    const deltas = ran.length === 0 ? said : [...said, ...ran];
    return { deltas, ...(cancelled !== undefined && { cancelled }) };
  }

  #deltasOf(data: ResponsesData, calls: number): readonly Delta[] {
    const text = TEXT_EVENTS.get(data.type);
    if (text) return text.isWhole ? [] : said(text.kind, textIn(data.delta));
    const call = CALL_EVENTS.get(data.type);
    if (call?.isWhole) return this.#close(data, textIn(data[call.field]), call.type, calls);
    if (call) return this.#argue(data, textIn(data.delta), call.type, calls);
    const item = isObject(data.item) ? data.item : {};
    switch (data.type) {
      case 'response.output_item.added':
        return isFunction(item) ? this.#begin(data, item, calls) : [];
      case 'response.output_item.done':
        return this.#end(data, item, calls);
      default:
        return endDeltas(data);
    }
  }

  #begin(data: ResponsesData, item: Json, index: number): readonly Delta[] {
    this.#calls.set(data.output_index, { index, said: '' });
    const start: Delta = { kind: 'tool_start', index, id: textIn(item.call_id), name: textIn(item.name) };
    return isCustom(item) ? [start, { kind: 'tool_arguments', index, text: '"' }] : [start];
  }

  #argue(data: ResponsesData, piece: string, type: string, calls: number): readonly Delta[] {
    const call = this.#callAt(data, calls);
    call.said += piece;
    const text = isCustom({ type }) ? jsonPiece(piece) : piece;
    return text === '' ? [] : [{ kind: 'tool_arguments', index: call.index, text }];
  }

  #close(data: ResponsesData, whole: string, type: string, calls: number): readonly Delta[] {
    const call = this.#callAt(data, calls);
    const { index, said: before } = call;
    const rest = before !== '' && whole.startsWith(before) ? whole.slice(before.length) : '';
    const text = isCustom({ type }) ? `${jsonPiece(rest)}"` : rest;
    call.said = whole;
    const close: Delta = { kind: 'tool_close', index, proof: 3 };
    return text === '' ? [close] : [{ kind: 'tool_arguments', index, text }, close];
  }

  #end(data: ResponsesData, item: Json, calls: number): readonly Delta[] {
    if (kindOf(item) !== 'call') return [];
    const { index } = this.#callAt(data, calls);
    if (item.status === 'incomplete') return [{ kind: 'tool_cancel', index }];
    if (isFunction(item)) return [{ kind: 'tool_close', index, proof: 3 }];
    const id = textIn(item.call_id ?? item.id);
    return [
      { kind: 'tool_start', index: calls, id, name: textIn(item.type) },
      { kind: 'tool_arguments', index: calls, text: JSON.stringify(item) },
      { kind: 'tool_close', index: calls, proof: 3 },
    ];
  }

  /** A call from before the events being read can only be the last one. */
  #callAt({ output_index }: ResponsesData, calls: number): SeenCall {
    const known = this.#calls.get(output_index);
    if (known) return known;
    const call: SeenCall = { index: calls - 1, said: '' };
    this.#calls.set(output_index, call);
    return call;
  }
}

const said = (kind: 'text' | 'refusal' | 'reasoning', text: string): readonly Delta[] =>
  text === '' ? [] : [{ kind, text }];

function endDeltas({ type, response }: ResponsesData): readonly Delta[] {
  if (!TERMINAL.has(type)) return [];
  const whole: Json = isObject(response) ? response : {};
  const { output } = whole;
  const hasCalls = Array.isArray(output) && output.some((item) => isObject(item) && kindOf(item) === 'call');
  return endOf(type, whole, hasCalls);
}
