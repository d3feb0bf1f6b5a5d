import { isDeepStrictEqual } from 'node:util';
import { readFrames } from './frames.ts';
import { emptyReading, type StreamReading, settleCalls } from './reading.ts';

type Json = Record<string, unknown>;

interface Event extends Json {
  readonly type: string;
  readonly sequence_number?: number;
  readonly output_index?: number;
  readonly item_id?: string;
  readonly content_index?: number;
  readonly summary_index?: number;
  readonly delta?: string;
  readonly text?: string;
  readonly refusal?: string;
  readonly arguments?: string;
  readonly item?: Json & { readonly id?: string; readonly type?: string };
  readonly part?: Json;
  readonly response?: Json;
  readonly error?: Json;
  readonly holdfast?: Json;
}

interface Item {
  readonly id: string;
  readonly type: string;
  readonly parts: Record<'content' | 'summary', Part[]>;
  readonly call?: { id: string; name: string; arguments: string };
  done?: Json;
}

interface Part {
  readonly type: string;
  text: string;
  isOver: boolean;
}

/**
 * Reads a body of `/v1/responses` as strictly as the strictest SDK. `live`: fragments of tool calls may be cancelled.
 */
export function readResponses(body: string, { live = false } = {}): StreamReading {
  return new ResponsesStream(live).read(body);
}

class ResponsesStream {
  readonly #live: boolean;
  readonly #reading = emptyReading();
  readonly #items: Item[] = [];
  readonly #cancelled = new Set<object>();
  #response: Json | undefined;
  #next = 0;
  #hasFailed = false;

  constructor(live: boolean) {
    this.#live = live;
  }

  read(body: string): StreamReading {
    const reading = this.#reading;
    reading.events = readFrames(body, {
      take: (event, name) => this.#take(event as Event, name),
      advise: (advisory) => this.#advise(advisory),
      complain: (what) => this.#complain(what),
    });
    if (!this.#live && this.#cancelled.size > 0) this.#complain('a call that was shown and cut');
    settleCalls(reading, this.#cancelled, this.#live);
    return reading;
  }

  #take(event: Event, name: string | undefined): void {
    const { type, sequence_number: number } = event;
    const reading = this.#reading;
    if (name !== type) this.#complain(`a ${type} with the name ${name}`);
    if (number !== this.#next) this.#complain(`${type} has the number ${number} in place of ${this.#next}`);
    this.#next = (number ?? this.#next) + 1;
    if (reading.done) this.#complain(`${type} after the end`);
    if (this.#hasFailed) this.#complain(`${type} after the failure`);
    if (type === 'keepalive') return;
    if (type === 'error') {
      for (const field of ['type', 'code', 'message'])
        if (typeof event.error?.[field] !== 'string') this.#complain(`an error without ${field}`);
      reading.error = event.error ?? {};
      return;
    }
    if (reading.error && type !== 'response.failed') this.#complain(`${type} after the error`);
    if (event.response) this.#takeResponse(event, event.response);
    else if (!this.#response) this.#complain(`${type} before the response`);
    else this.#takeOfItem(event);
  }

  #takeResponse({ type, error, holdfast }: Event, response: Json): void {
    if (!this.#response && type !== 'response.created' && type !== 'response.failed')
      this.#complain(`${type} before the response`);
    if (this.#response && type === 'response.created') this.#complain('a second response');
    this.#response ??= response;
    for (const field of ['id', 'created_at', 'model', 'object']) {
      const isMissing = type === 'response.failed' && response[field] === undefined;
      if (response[field] !== this.#response[field] && !isMissing)
        this.#complain(`${field} changed from ${this.#response[field]} to ${response[field]}`);
    }
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        if (holdfast) this.#advise(holdfast);
        return;
      case 'response.completed':
      case 'response.incomplete':
        this.#finish(type, response);
        return;
      case 'response.failed': {
        this.#hasFailed = true;
        if (!isDeepStrictEqual(this.#reading.error, error))
          this.#complain('a failure without the error that AI SDK 5 needs before it');
        const told = response.error as Json | undefined;
        if (typeof told?.code !== 'string' || typeof told.message !== 'string')
          this.#complain('a failure without a reason');
        if (typeof error?.message !== 'string')
          this.#complain('a failure that some clients take for a response');
        this.#reading.error = error ?? {};
        return;
      }
      default:
        this.#complain(`an event of a type that nobody knows: ${type}`);
    }
  }

  #finish(type: string, response: Json): void {
    const reading = this.#reading;
    const open = this.#items.filter(({ done }) => !done);
    if (open.length > 0) this.#complain(`an end with open items: ${open.map(({ id }) => id)}`);
    const whole = this.#items.flatMap(({ done }) => (done && !isCut(done) ? [done] : []));
    if (!isDeepStrictEqual(response.output, whole))
      this.#complain(`the end has ${JSON.stringify(response.output)} in place of ${JSON.stringify(whole)}`);
    const { reason } = (response.incomplete_details ?? {}) as Json;
    if ((reason !== undefined) !== (type === 'response.incomplete')) this.#complain('an end of two minds');
    if (response.status !== type.slice('response.'.length)) this.#complain(`${type} is ${response.status}`);
    const complete = whole.some((item) => item.type === 'function_call') ? 'tool_calls' : 'stop';
    reading.finish =
      reason === undefined ? complete : reason === 'max_output_tokens' ? 'length' : String(reason);
    reading.usage = response.usage as Json;
    if (typeof reading.usage?.output_tokens !== 'number') this.#complain('an end without a report');
    reading.kept_reasoning = this.#items
      .filter((item) => item.done && !isCut(item.done))
      .flatMap(({ type, parts }) => (type === 'reasoning' ? [...parts.summary, ...parts.content] : []))
      .map(({ text }) => text)
      .join('');
    reading.done = true;
  }

  #takeOfItem(event: Event): void {
    const { type, output_index = -1 } = event;
    if (type === 'response.output_item.added') {
      this.#begin(event);
      return;
    }
    const item = this.#items[output_index];
    if (!item || item.done) {
      this.#complain(`${type} of item ${output_index}, which is not open`);
      return;
    }
    if (type === 'response.output_item.done') {
      this.#end(item, event.item ?? {});
      return;
    }
    if (event.item_id !== item.id) this.#complain(`${type} of ${event.item_id} in place of ${item.id}`);
    const [, of = '', what = ''] = /^response\.([a-z_]+)\.([a-z]+)$/.exec(type) ?? [];
    if (of === 'content_part' || of === 'reasoning_summary_part') this.#takePart(item, what, event);
    else if (of === 'function_call_arguments') this.#takeArguments(item, what, event);
    else if (of in TEXTS) this.#takeText(item, of, what, event);
    else if (!type.startsWith(`response.${item.type}`))
      this.#complain(`an event of a type that nobody knows: ${type}`);
  }

  #begin({ output_index, item }: Event): void {
    const { id = '', type = '', call_id, name } = item ?? {};
    if (output_index !== this.#items.length) this.#complain(`item ${output_index} is not the next one`);
    if (id === '' || this.#items.some((other) => other.id === id)) this.#complain(`the id ${id} is no id`);
    const open = this.#items.filter(({ done }) => !done);
    const mayBeOpen = this.#live && type === 'function_call' && open.every(({ call }) => call);
    if (open.length > 0 && !mayBeOpen) this.#complain(`${id} begins within ${open.at(-1)?.id}`);
    const call =
      type === 'function_call' ? { id: String(call_id), name: String(name), arguments: '' } : undefined;
    if (call && (!call_id || !name || item?.arguments !== ''))
      this.#complain('a call that does not begin as one');
    if (call) this.#reading.toolCalls.push(call);
    this.#items.push({ id, type, parts: { content: [], summary: [] }, ...(call && { call }) });
  }

  #takePart({ parts, type }: Item, what: string, event: Event): void {
    const { list, index } = placeOf(event);
    const { part = {} } = event;
    if (what === 'added') {
      if (index !== parts[list].length) this.#complain(`part ${index} is not the next one`);
      if (parts[list].some(({ isOver }) => !isOver)) this.#complain('a part within a part');
      const isOfMessage = part.type === 'output_text' || part.type === 'refusal';
      if (isOfMessage !== (type === 'message')) this.#complain(`${part.type} in a ${type}`);
      parts[list].push({ type: String(part.type), text: '', isOver: false });
      return;
    }
    const known = parts[list][index];
    if (!known || known.isOver) this.#complain(`part ${index} is not open`);
    else {
      known.isOver = true;
      if (textOf(part) !== known.text)
        this.#complain(`a part ends as ${textOf(part)} in place of ${known.text}`);
    }
  }

  #takeText({ parts }: Item, of: string, what: string, event: Event): void {
    const { list, index } = placeOf(event);
    const part = parts[list][index];
    const { type, field } = TEXTS[of] ?? {};
    if (!part || part.isOver || part.type !== type) {
      this.#complain(`${event.type} where there is no ${type}`);
      return;
    }
    if (what === 'done') {
      const whole = event.text ?? event.refusal;
      if (whole !== part.text) this.#complain(`a text ends as ${whole} in place of ${part.text}`);
      return;
    }
    part.text += event.delta;
    if (field) this.#reading[field] += event.delta;
  }

  #takeArguments({ call }: Item, what: string, event: Event): void {
    if (!call) this.#complain('arguments without a call');
    else if (what === 'delta') call.arguments += event.delta;
    else if (event.arguments !== call.arguments)
      this.#complain(`arguments end as ${event.arguments} in place of ${call.arguments}`);
  }

  #end(item: Item, done: Json): void {
    item.done = done;
    const { id, type, parts, call } = item;
    if (done.id !== id || done.type !== type) this.#complain(`${id} ends as ${done.id}`);
    if ([...parts.content, ...parts.summary].some(({ isOver }) => !isOver))
      this.#complain(`${id} has open parts`);
    for (const list of ['content', 'summary'] as const) {
      const whole = ((done[list] ?? []) as Json[]).map(textOf);
      if (
        !isDeepStrictEqual(
          whole,
          parts[list].map(({ text }) => text),
        )
      )
        this.#complain(`${id} ends with ${JSON.stringify(whole)}`);
    }
    // The scripted provider ends encrypted reasoning with the id of its item.
    const { encrypted_content: secret } = done;
    if (secret !== undefined && !String(secret).endsWith(` by ${id}`))
      this.#complain(`${id} has the thoughts of another`);
    if (!call) return;
    if (done.arguments !== call.arguments || done.call_id !== call.id)
      this.#complain(`${id} ends as another call`);
    if (isCut(done)) this.#cancelled.add(call);
  }

  #advise(advisory: Json): void {
    if (!this.#response) this.#complain('an advisory before the response');
    this.#reading.advisories.push(advisory);
  }

  #complain(what: string): void {
    this.#reading.violations.push(what);
  }
}

const TEXTS: Readonly<Record<string, { type: string; field: 'text' | 'refusal' | 'reasoning' }>> = {
  output_text: { type: 'output_text', field: 'text' },
  refusal: { type: 'refusal', field: 'refusal' },
  reasoning_text: { type: 'reasoning_text', field: 'reasoning' },
  reasoning_summary_text: { type: 'summary_text', field: 'reasoning' },
};

const placeOf = ({ content_index, summary_index }: Event) =>
  summary_index === undefined
    ? ({ list: 'content', index: content_index ?? -1 } as const)
    : ({ list: 'summary', index: summary_index } as const);

const textOf = ({ text, refusal }: Json): unknown => text ?? refusal;

/** A call that must not be executed, or reasoning that was interrupted. */
const isCut = ({ type, status }: Json): boolean =>
  (type === 'function_call' || type === 'reasoning') && status === 'incomplete';
