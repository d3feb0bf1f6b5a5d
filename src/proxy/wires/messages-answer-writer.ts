import { isObject } from '../../json.ts';
import { cancelDelta } from '../../plans/cancelled-call.ts';
import type { Delta, Usage } from '../../plans/delta.ts';
import { normalisedArguments } from '../../plans/tool-proof.ts';
import type { Advisory } from '../advisory.ts';
import { ShownCalls } from '../shown-calls.ts';
import { type ShownBlock, ShownBlocks } from './messages-blocks.ts';
import type { MessagesEvent, MessagesPayload } from './messages-event.ts';
import {
  blankBlock,
  blockDelta,
  blockStart,
  blockStop,
  errorPayload,
  isPlainText,
  MESSAGE_STOP,
  pingPayload,
  textDelta,
} from './messages-payloads.ts';
import { PendingEvents } from './messages-pending.ts';
import { stopReasonOf } from './messages-reasons.ts';
import { type MessagesUsage, reportOf, usageOf } from './messages-usage.ts';
import type { AnswerWriter, AnswerWriterOptions, Ending, ShownAnswer } from './wire.ts';

export type MessagesWriterOptions = Pick<AnswerWriterOptions, 'events' | 'sink'>;
type Prose = Extract<Delta, { kind: 'text' | 'refusal' | 'reasoning' }>;
type ToolDelta = Extract<Delta, { kind: 'tool_start' | 'tool_arguments' | 'tool_close' }>;

/**
 * Writes one answer as a message: blocks one after the other, numbered without gaps. A block that an interruption has
 * cut stays open, and what goes on with it goes on in it.
 */
export class MessagesAnswerWriter implements AnswerWriter<MessagesEvent> {
  readonly #options: MessagesWriterOptions;
  readonly #calls: ShownCalls;
  readonly #blocks = new ShownBlocks();
  readonly #pending: PendingEvents;
  #advisories: Advisory[] = [];
  /** The block that is open, unless it is that of a call which is shown while it comes. */
  #open: ShownBlock | undefined;
  /** The last event that was shown in it. */
  #source: MessagesEvent | undefined;
  /** What is missing of a call that another replica has shown the beginning of. */
  #rest = '';

  constructor(options: MessagesWriterOptions) {
    this.#options = options;
    const live = options.events !== 'none';
    this.#calls = new ShownCalls({ live, legacy: false });
    this.#pending = new PendingEvents(live);
  }

  get begun(): boolean {
    return this.#blocks.start !== undefined;
  }

  get id(): string | undefined {
    const message = this.#blocks.start?.message;
    return isObject(message) && typeof message.id === 'string' ? message.id : undefined;
  }

  restore({ calls, events }: ShownAnswer): void {
    for (const { payload } of events) if (payload !== undefined) this.#blocks.take(payload);
    this.#calls.restore(calls);
    const { latest } = this.#blocks;
    const call = latest && calls[this.#blocks.callOf(latest)];
    if (call?.state === 'open') return;
    this.#open = latest;
    if (latest && call?.state === 'closed')
      this.#rest = normalisedArguments(call.arguments).slice(latest.arguments.length);
  }

  show(deltas: readonly Delta[], event: MessagesEvent, intact: boolean): void {
    const isLate = intact && this.#isLate(event);
    if (deltas.length === 0 || isLate) {
      if (intact) this.#showStructure(event, isLate);
      return;
    }
    const isWhole = intact && deltas.length === 1;
    for (const delta of deltas) this.#showOne(delta, event, isWhole);
  }

  forward(event: MessagesEvent): void {
    this.show(event.deltas, event, true);
  }

  restart(): void {
    this.#pending.forget();
  }

  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    for (const index of indexes) {
      const cancelled = this.#calls.cancel(index);
      if (!cancelled) continue;
      const { position, id, name } = cancelled;
      this.#options.sink.keep(cancelDelta(position, reason));
      this.advise({ type: 'ToolCallCancel', id, name, reason, attempt });
      const block = this.#blocks.ofCall(position);
      if (block) this.#end(block);
    }
  }

  advise(advisory: Advisory): void {
    const { events, sink } = this.#options;
    if (events === 'none') return;
    if (!this.begun) this.#advisories.push(advisory);
    else if (events === 'comments') sink.comment(`holdfast ${JSON.stringify(advisory)}`);
    else this.#send(pingPayload(advisory));
  }

  breakSilence(): boolean {
    if (!this.begun) return false;
    this.#send(pingPayload());
    return true;
  }

  finish({ reason, finish, after, usage, stop_sequence }: Ending<MessagesEvent>): void {
    // What only began was cut, where the provider did not come to its end.
    if (finish) this.#showPending(true);
    else this.#pending.forget();
    this.#close(finish);
    const reports = [finish, ...after].map((event) => event?.parsed.usage).filter(isObject);
    const report = this.#report(usage, reports.at(-1));
    const isAsItCame = finish && finish.parsed.usage === report;
    const event = finish?.parsed ?? messageDelta(reason, stop_sequence);
    const payload = isAsItCame ? finish.payload : JSON.stringify({ ...event, usage: report });
    const told = usageOf(report, this.#startUsage);
    this.#send(payload, [
      { kind: 'finish', reason },
      ...(told ? [{ kind: 'usage', usage: told } as const] : []),
    ]);
    this.#send(MESSAGE_STOP);
  }

  /** The report leaves together with the reason. */
  finishRest(): void {
    this.#send(MESSAGE_STOP);
  }

  finishForwarded(): void {
    this.#send(MESSAGE_STOP);
  }

  fail(error: object): void {
    this.#send(errorPayload(error));
  }

  #showStructure(event: MessagesEvent, isLate: boolean): void {
    const { type, block } = event;
    const isWaiting = this.#pending.has(event);
    if (type === 'message_start' && (this.begun || isWaiting)) return;
    const begins = type === 'message_start' || type === 'content_block_start';
    const isShown = this.begun && (block ? !isWaiting : this.#pending.isEmpty);
    // One sign of life before there is any other is as good as many.
    if (event.ping && !isShown && isWaiting) return;
    if (!begins && isShown) this.#pass(event);
    else if (begins || !block || isWaiting) {
      if (this.#pending.add(event, isLate)) this.#showPending();
    }
  }

  /** Thinking in the middle of the answer. At its head it is shown as it comes: whatever cuts it, it is thought again. */
  #isLate(event: MessagesEvent): boolean {
    const { type, block } = event;
    if (block?.kind !== 'thinking') return false;
    if (type === 'content_block_start') return this.#blocks.answers || this.#pending.answers;
    return this.#pending.isHeld(block) && this.#pending.has(event);
  }

  /** Shows what waited for something to be said. `half`: what is not whole, too. */
  #showPending(half = false): void {
    if (this.#pending.isEmpty) return;
    const events = this.#pending.take(half);
    // Half of a block that was held is of as little use to a client that is told it by another replica.
    if (events.some(({ block }) => block && this.#pending.isHeld(block))) this.#options.sink.storeFirst();
    for (const event of events) this.#pass(event);
  }

  /** Shows an event as it came, in the place that it has in this answer. */
  #pass(event: MessagesEvent): void {
    const { type, payload, parsed, block, deltas } = event;
    if (type === 'message_start') this.#begin(event);
    else if (type === 'content_block_start') this.#openAs(event);
    else if (!block) this.#send(payload);
    else if (this.#open && this.#source?.block === block) {
      const { index } = this.#open;
      if (isObject(parsed.delta) && parsed.delta.type === 'signature_delta') this.#open.isSigned = true;
      const placed = parsed.index === index ? payload : JSON.stringify({ ...parsed, index });
      if (type === 'content_block_stop') this.#end(this.#open, placed);
      else this.#send(placed, deltas);
    }
  }

  #begin({ payload, parsed }: MessagesEvent): void {
    this.#blocks.start = parsed;
    this.#send(payload);
    const advisories = this.#advisories;
    this.#advisories = [];
    for (const advisory of advisories) this.advise(advisory);
  }

  #showOne(delta: Delta, event: MessagesEvent, isWhole: boolean): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#say(delta, event, isWhole);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close':
        if (this.#calls.live) this.#showLive(delta, event);
        else this.#showHeld(delta, event);
    }
  }

  #say(delta: Prose, event: MessagesEvent, isWhole: boolean): void {
    this.#showPending();
    const { type, parsed, payload } = event;
    if (type === 'content_block_start' && isWhole) {
      this.#openAs(event);
      return;
    }
    const kind = delta.kind === 'reasoning' ? 'thinking' : 'text';
    const open = this.#open?.type === kind ? this.#open : this.#openBlank(kind, event);
    this.#source = event;
    if (!isWhole || parsed.index !== open.index) this.#speak(delta, open);
    else this.#send(payload, [delta], kind === 'thinking' || !isPlainText(parsed));
  }

  #speak(delta: Prose, { index }: ShownBlock): void {
    if (delta.kind === 'reasoning') this.#send(blockDelta(index, thinkingDelta(delta.text)), [delta]);
    else this.#send(textDelta(index, delta.text), [delta], false);
  }

  /** A call that is held is shown when it is closed, and whole. */
  #showHeld(delta: ToolDelta, event: MessagesEvent): void {
    const shown = this.#calls.take(delta);
    if (!shown?.start) return;
    // What is still said of it concerns nobody any more.
    this.#calls.cancel(delta.index);
    this.#showPending();
    this.#close(event);
    const { id, name, extra } = shown.start;
    const block = this.#blocks.begin('tool_use');
    // The journal has all of it with the first of its events: of a call no part is of use.
    this.#options.sink.storeFirst();
    this.#send(blockStart(block.index, { type: 'tool_use', id, name, input: {}, ...extra }), shown.deltas);
    this.#send(blockDelta(block.index, inputDelta(shown.arguments)));
    this.#end(block);
  }

  #showLive(delta: ToolDelta, event: MessagesEvent): void {
    const shown = this.#calls.take(delta);
    if (shown?.start) {
      this.#showPending();
      this.#close(event);
      const { id, name, extra } = shown.start;
      const { index } = this.#blocks.begin('tool_use');
      this.#send(blockStart(index, { type: 'tool_use', id, name, input: {}, ...extra }), shown.deltas);
      return;
    }
    const positioned = this.#calls.positioned(delta);
    const block = this.#blocks.ofCall(positioned.index);
    if (!block) return;
    if (shown) this.#send(blockDelta(block.index, inputDelta(shown.arguments)), shown.deltas);
    if (delta.kind === 'tool_close') this.#end(block, blockStop(block.index), [positioned]);
  }

  /** Opens a block as the provider does, unless there is one that another attempt has left. */
  #openAs(event: MessagesEvent): void {
    const { payload, parsed, block, deltas } = event;
    const type = block?.type ?? '';
    const isLeft = this.#open?.type === type && this.#source?.thoughts !== event.thoughts;
    const prose = deltas.filter(isProse);
    if (!isLeft) {
      this.#close(event);
      this.#open = this.#blocks.begin(type);
      const { index } = this.#open;
      const start = isObject(parsed.content_block) ? parsed.content_block : {};
      const blank = prose.length > 0 ? { ...start, ...blankBlock(type) } : start;
      const isAsItCame = parsed.index === index && prose.length === 0;
      this.#send(isAsItCame ? payload : blockStart(index, blank));
    }
    this.#source = event;
    for (const delta of prose) if (this.#open) this.#speak(delta, this.#open);
  }

  #openBlank(type: 'text' | 'thinking', event: MessagesEvent): ShownBlock {
    this.#close(event);
    const open = this.#blocks.begin(type);
    this.#send(blockStart(open.index, blankBlock(type)));
    this.#open = open;
    return open;
  }

  /** Ends what is open, because of `event`, if any. */
  #close(event: MessagesEvent | undefined): void {
    const open = this.#open;
    if (!open) return;
    const signature = open.type === 'thinking' && !open.isSigned ? this.#signatureFrom(event) : undefined;
    if (signature !== undefined) this.#send(blockDelta(open.index, { type: 'signature_delta', signature }));
    if (this.#rest !== '') this.#send(blockDelta(open.index, inputDelta(this.#rest)));
    this.#rest = '';
    this.#end(open);
  }

  /**
   * Thinking that was cut and then thought again goes by the signature of what the answer rests on: without any, no
   * provider would take the message back.
   */
  #signatureFrom(event: MessagesEvent | undefined): string | undefined {
    if (!event || event.thoughts === this.#source?.thoughts) return undefined;
    const thought = event.thoughts.findLast(({ type }) => type === 'thinking');
    return thought?.type === 'thinking' ? thought.signature : undefined;
  }

  #end(block: ShownBlock, payload = blockStop(block.index), deltas: readonly Delta[] = []): void {
    this.#blocks.end(block);
    this.#send(payload, deltas);
    if (block !== this.#open) return;
    this.#open = undefined;
    this.#source = undefined;
  }

  get #startUsage(): unknown {
    const message = this.#blocks.start?.message;
    return isObject(message) ? message.usage : undefined;
  }

  /** What the provider reported, unless the answer as a whole is another. Clients rely on there being something. */
  #report(usage: Usage | undefined, reported: MessagesUsage | undefined): MessagesUsage {
    if (!usage && reported) return reported;
    const report = reportOf(usage?.completion_tokens ?? 0, this.#startUsage, reported);
    return reported && JSON.stringify(report) === JSON.stringify(reported) ? reported : report;
  }

  #send(payload: string, deltas: readonly Delta[] = [], keepPayload = true): void {
    this.#options.sink.send(payload, deltas, keepPayload);
  }
}

const isProse = (delta: Delta): delta is Prose => 'text' in delta && delta.kind !== 'tool_arguments';

const messageDelta = (reason: string, stop_sequence?: string): MessagesPayload => ({
  type: 'message_delta',
  delta:
    stop_sequence === undefined
      ? { stop_reason: stopReasonOf(reason), stop_sequence: null }
      : { stop_reason: 'stop_sequence', stop_sequence },
});

const thinkingDelta = (thinking: string) => ({ type: 'thinking_delta', thinking });
const inputDelta = (partial_json: string) => ({ type: 'input_json_delta', partial_json });
