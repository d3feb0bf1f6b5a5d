import { isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import { isOfProviderTool } from '../../../plans/transcript.ts';
import { BaseAnswerWriter, type SeenCall, type WriterOptions } from '../common/base-answer-writer.ts';
import type { Advisory, AnswerWriter, Ending, ShownAnswer } from '../common/wire.ts';
import { ResponseCalls } from './calls.ts';
import { cutOff, endTypeOf, failedResponse, responseInProgress, wholeResponse } from './ending.ts';
import {
  type AttemptItem,
  type Json,
  KEEPALIVE,
  LIFECYCLE,
  type ResponsesData,
  type ResponsesEvent,
} from './event.ts';
import { ResponseOutput } from './output.ts';
import { ResponsesSender } from './sender.ts';

/**
 * Writes one answer as the events of one response. Events of the first attempt pass verbatim; those of later attempts
 * become part of the client's response, in which items follow one another.
 *
 * Besides calls, events without content are held until content arrives. If their attempt is cut, they are dropped, so
 * that its items neither begin nor end without content.
 */
export class ResponsesAnswerWriter extends BaseAnswerWriter implements AnswerWriter<ResponsesEvent> {
  readonly #sender: ResponsesSender;
  readonly #output: ResponseOutput;
  /** Undefined before the first call. */
  #calls: ResponseCalls | undefined;
  /** Events of the current attempt without content so far. */
  #pending: ResponsesEvent[] = [];
  #last: ResponsesEvent | undefined;

  constructor(options: WriterOptions) {
    super(options);
    this.#sender = new ResponsesSender(this.sink);
    this.#output = new ResponseOutput(this.#sender);
  }

  /** A mere announcement is no content: another attempt may still answer under it. */
  get begun(): boolean {
    return this.#sender.shown.hasItems;
  }

  get id(): string | undefined {
    const id = this.#sender.shown.response?.id;
    return typeof id === 'string' ? id : undefined;
  }

  get thoughts(): 'whole' | 'cut' | undefined {
    return this.#sender.shown.thoughts;
  }

  restore({ events, calls }: ShownAnswer): void {
    this.#output.restore(events, calls);
    if (calls.length > 0) this.calls.restore(calls);
  }

  show(deltas: readonly Delta[], event: ResponsesEvent, intact: boolean): void {
    // An event may be passed again as the carrier of other deltas.
    const isNew = event !== this.#last;
    this.#last = event;
    if (isNew && event.item?.kind === 'call') {
      // While the call isn't visible, earlier held events need not be either.
      const isSeen = this.isLive || this.#output.has(event.item);
      if (isSeen || deltas.some(({ kind }) => kind === 'tool_close')) this.#flush();
      this.#responseCalls.show(event.item, event, deltas);
    } else if (isNew && intact) this.#showWhole(event);
    else {
      this.#sender.isFaithful = false;
      for (const delta of deltas) this.#showOne(delta, isNew ? event : undefined);
    }
  }

  forward(event: ResponsesEvent): void {
    this.#sender.pass(event);
  }

  restart(): void {
    this.#pending = [];
    this.#output.restart();
    this.#calls?.restart();
  }

  finish({ reason, finish, usage }: Ending<ResponsesEvent>): void {
    // What its provider did not end was cut.
    if (!finish) this.#pending = [];
    this.#flush();
    if (!finish) this.#output.leaveThoughts();
    if (!this.#sender.isFaithful || !finish) this.#output.closeAll();
    const deltas: Delta[] = [{ kind: 'finish', reason }];
    const reported = usage ?? finish?.deltas.find((delta) => delta.kind === 'usage')?.usage;
    if (reported) deltas.push({ kind: 'usage', usage: reported });
    if (finish) this.#sender.pass(finish, this.#endChanges(finish, reason, usage), deltas);
    else this.#sender.emit({ type: endTypeOf(reason), response: this.#whole({}, reason, usage) }, deltas);
  }

  /** Nothing follows the end of a response. */
  finishRest(): void {}

  fail(error: object): void {
    const early = this.#pending.find(isOfResponse)?.data.response;
    const { response, error: shown } = this.#sender.shown;
    const first = response ?? (isObject(early) ? early : {});
    // AI SDK 5 treats `response.failed` as a normal end, while every SDK raises an exception for this event.
    if (!shown) this.#sender.emit({ type: 'error', error });
    // Another replica may have sent the first of the two; both contain the same error.
    this.#sender.emit({ type: 'response.failed', ...failedResponse(first, shown ?? error) });
  }

  /**
   * Clients take the first event for the beginning of the response, so nothing can be sent before the provider has
   * announced it.
   */
  override breakSilence(): boolean {
    if (this.#sender.begun) this.sendEmpty();
    else this.#announce();
    return this.#sender.begun;
  }

  protected override sendEmpty(holdfast?: object): void {
    const response = responseInProgress(this.#sender.shown.response ?? {});
    this.#sender.emitAside({ type: 'response.in_progress', response, ...(holdfast && { holdfast }) });
  }

  protected override dropCall(index: number): SeenCall | undefined {
    return this.#responseCalls.drop(index);
  }

  protected override announceCut(call: SeenCall, cancel: Advisory): void {
    const shown = this.#output.openCall(call.id);
    if (shown) this.#sender.emit(cutOff(shown));
    super.announceCut(call, cancel);
  }

  get #responseCalls(): ResponseCalls {
    this.#calls ??= new ResponseCalls(this.#output, this.#sender, this.calls);
    return this.#calls;
  }

  /** Shows an intact event of an attempt. */
  #showWhole(event: ResponsesEvent): void {
    const { data, item } = event;
    const { continues } = this.#output;
    const isKeepalive = data.type === KEEPALIVE;
    // Pings in the format of other wires are meant for the proxy; clients don't know them.
    if (event.ping && !isKeepalive) return;
    // The response has already begun.
    if (LIFECYCLE.has(data.type) && continues) return;
    if (this.#saysNothingYet(event)) {
      this.#pending.push(event);
      return;
    }
    // Keep-alives must pass for clients that count only events.
    if (!isKeepalive || !continues) this.#flush();
    if (item) this.#output.pass(item, event);
    else if (!continues || isKeepalive) this.#sender.pass(event);
    // Otherwise another replica could run the tool again.
    if (event.aside && event.deltas.some(isOfProviderTool)) this.#sender.storeFirst();
  }

  #saysNothingYet({ data, item, deltas }: ResponsesEvent): boolean {
    if (LIFECYCLE.has(data.type)) return !this.#sender.begun;
    if (data.type === KEEPALIVE) return !this.#sender.begun && !this.#pending.some(isOfResponse);
    if (item === undefined || item.kind === 'other' || deltas.length > 0) return false;
    // The end of reasoning contains what the provider accepts back, and nothing can continue it.
    return !(endsThoughts(data, item) && this.#output.has(item));
  }

  #showOne(delta: Delta, event: ResponsesEvent | undefined): void {
    this.#flush();
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#output.say(delta, event);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close':
        this.#responseCalls.add(delta);
    }
  }

  /** Shows the held events, which have become part of the answer. */
  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const event of pending) {
      if (event.item) this.#output.pass(event.item, event);
      else this.#sender.pass(event);
    }
    if (!this.begun) return;
    for (const advisory of this.drainAdvisories()) this.advise(advisory);
  }

  /** Sends held events about the response as a whole. */
  #announce(): void {
    const announced = this.#pending.filter(isOfResponse);
    this.#pending = this.#pending.filter((event) => !isOfResponse(event));
    for (const event of announced) this.#sender.pass(event);
  }

  #endChanges({ data }: ResponsesEvent, reason: string, usage: Usage | undefined): Json {
    if (this.#sender.isFaithful && !usage) return {};
    const last = isObject(data.response) ? data.response : {};
    return { response: this.#whole(last, reason, usage) };
  }

  #whole(last: Json, reason: string, usage: Usage | undefined): Json {
    const { response: first = last, output } = this.#sender.shown;
    return wholeResponse({ first, last, output, reason, usage });
  }
}

const endsThoughts = ({ type }: ResponsesData, { kind }: AttemptItem): boolean =>
  kind === 'reasoning' && type === 'response.output_item.done';

const isOfResponse = ({ data }: ResponsesEvent): boolean => isObject(data.response);
