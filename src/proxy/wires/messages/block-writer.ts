import { isObject } from '../../../lib/json.ts';
import type { Delta, Prose } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import { normalisedArguments } from '../../../plans/tool-call.ts';
import type { AnswerSink, ShownAnswer } from '../common/wire.ts';
import { type ShownBlock, ShownBlocks } from './blocks.ts';
import {
  blankBlock,
  blockDelta,
  blockStart,
  blockStop,
  inputDelta,
  isPlainText,
  type MessagesEvent,
  textDelta,
} from './event.ts';
import { isProviderUse, unknownResultOf } from './provider-tools.ts';

/**
 * Writes the blocks of one message in sequence, numbered without gaps. A block cut by an interruption stays open for
 * its continuation. The end of text and reasoning waits for the next event: if that is a held call, only an open block
 * can carry empty deltas.
 */
export class MessagesBlockWriter {
  readonly #sink: AnswerSink;
  readonly #blocks = new ShownBlocks();
  /** The open block, except for a call that is shown live. */
  #open: ShownBlock | undefined;
  /** The last event shown in it. */
  #source: MessagesEvent | undefined;
  /** The pending event that ends it, if any. */
  #stop: { readonly payload: string; readonly deltas: readonly Delta[] } | undefined;
  /** The missing arguments of a call that another replica began to show. */
  #rest = '';

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** The message as it began; undefined before. */
  get message(): Readonly<Record<string, unknown>> | undefined {
    const message = this.#blocks.start?.message;
    return isObject(message) ? message : undefined;
  }

  /** Whether there is content besides reasoning. */
  get answers(): boolean {
    return this.#blocks.answers;
  }

  restore({ calls, events }: ShownAnswer): void {
    for (const { payload } of events) if (payload !== undefined) this.#blocks.add(payload);
    const { latest } = this.#blocks;
    const call = latest && calls[this.#blocks.callOf(latest)];
    if (call?.state === 'open') return;
    this.#open = latest;
    // Signed blocks can't be extended.
    if (latest?.isSigned) this.#stop = { payload: blockStop(latest.index), deltas: [] };
    if (latest && call?.state === 'closed')
      this.#rest = normalisedArguments(call.arguments).slice(latest.arguments.length);
  }

  /** An empty delta for the open block; undefined if there is none, or its type doesn't allow it. */
  get emptyDelta(): string | undefined {
    const open = this.#open ?? this.#blocks.latest;
    const delta = open && EMPTY_DELTAS[open.type];
    return delta && blockDelta(open.index, delta);
  }

  /** Sends the pending end of a block. */
  settle(): void {
    const stop = this.#stop;
    this.#stop = undefined;
    if (stop && this.#open) this.#end(this.#open, stop.payload, stop.deltas);
  }

  /** Shows an event verbatim, at its index in this message. */
  pass(event: MessagesEvent): void {
    const { type, payload, parsed, block, deltas, ping } = event;
    // Clients that count only content ignore pings.
    if (ping && this.#stop) {
      this.#send(this.emptyDelta ?? payload);
      return;
    }
    this.settle();
    if (type === 'message_start') this.#blocks.start = parsed;
    if (type === 'content_block_start') this.#openAs(event);
    else if (!block) this.#send(payload, deltas);
    else if (this.#open && this.#source?.block === block) {
      const { index } = this.#open;
      if (isObject(parsed.delta) && parsed.delta.type === 'signature_delta') this.#open.isSigned = true;
      const placed = parsed.index === index ? payload : JSON.stringify({ ...parsed, index });
      if (type === 'content_block_stop') this.#stopWith(this.#open, placed, deltas);
      else this.#send(placed, deltas);
    }
  }

  /** `isWhole`: the event has no other content. */
  say(delta: Prose, event: MessagesEvent, isWhole: boolean): void {
    this.settle();
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

  /** Writes a whole call. */
  call(call: ShownFragment, event: MessagesEvent): void {
    // A partial call is useless, so the journal has all of it with the first event.
    this.#sink.storeFirst();
    const block = this.beginCall(call, event);
    this.#send(blockDelta(block.index, inputDelta(call.arguments)));
    this.#end(block);
  }

  /** Begins a call that is shown live. */
  beginCall({ start, deltas }: ShownFragment, event: MessagesEvent): ShownBlock {
    this.close(event);
    const { id, name, extra } = start ?? {};
    const use = { type: 'tool_use', id, name, input: {}, ...extra };
    const block = this.#blocks.begin('tool_use', use);
    this.#send(blockStart(block.index, use), deltas);
    return block;
  }

  continueCall(position: number, { arguments: text, deltas }: ShownFragment): void {
    this.settle();
    const block = this.#blocks.ofCall(position);
    if (block) this.#send(blockDelta(block.index, inputDelta(text)), deltas);
  }

  /** Ends a call that was closed by `deltas`, or cancelled. */
  endCall(position: number, deltas: readonly Delta[] = []): void {
    const block = this.#blocks.ofCall(position);
    if (block) this.#end(block, blockStop(block.index), deltas);
  }

  /** Ends the open block because of `event`, if any. */
  close(event: MessagesEvent | undefined): void {
    this.settle();
    const open = this.#open;
    if (!open) return;
    const signature = open.type === 'thinking' && !open.isSigned ? this.#signatureFrom(event) : undefined;
    if (signature !== undefined) this.#send(blockDelta(open.index, { type: 'signature_delta', signature }));
    if (this.#rest !== '') this.#send(blockDelta(open.index, inputDelta(this.#rest)));
    this.#rest = '';
    this.#end(open);
    // A provider tool's call that was too long to be held was cut, and has no result.
    if (isProviderUse(open.type)) this.answerUses();
  }

  /** Adds results for provider tools that were running, stating that their results are unknown. */
  answerUses(): void {
    for (const use of this.#blocks.unansweredUses) {
      const result = unknownResultOf(use);
      const block = this.#blocks.begin(String(result.type), result);
      this.#send(blockStart(block.index, result));
      this.#end(block);
    }
  }

  /** Opens a block like the provider, unless another attempt left one open. */
  #openAs(event: MessagesEvent): void {
    const { payload, parsed, block, deltas } = event;
    const type = block?.type ?? '';
    const isProseBlock = type === 'text' || type === 'thinking';
    const isLeft = isProseBlock && this.#open?.type === type && this.#source?.thoughts !== event.thoughts;
    const prose = deltas.filter(isProse);
    if (!isLeft) {
      this.close(event);
      const start = isObject(parsed.content_block) ? parsed.content_block : {};
      this.#open = this.#blocks.begin(type, start);
      const { index } = this.#open;
      const blank = prose.length > 0 ? { ...start, ...blankBlock(type) } : start;
      const isAsItCame = parsed.index === index && prose.length === 0;
      this.#send(isAsItCame ? payload : blockStart(index, blank));
    }
    this.#source = event;
    for (const delta of prose) if (this.#open) this.#speak(delta, this.#open);
  }

  #openBlank(type: 'text' | 'thinking', event: MessagesEvent): ShownBlock {
    this.close(event);
    const open = this.#blocks.begin(type);
    this.#send(blockStart(open.index, blankBlock(type)));
    this.#open = open;
    return open;
  }

  #speak(delta: Prose, { index }: ShownBlock): void {
    if (delta.kind !== 'reasoning') this.#send(textDelta(index, delta.text), [delta], false);
    else this.#send(blockDelta(index, { type: 'thinking_delta', thinking: delta.text }), [delta]);
  }

  /**
   * Reasoning that was cut and repeated gets the signature of the new reasoning: without one, no provider would accept
   * the message back.
   */
  #signatureFrom(event: MessagesEvent | undefined): string | undefined {
    if (!event || event.thoughts === this.#source?.thoughts) return undefined;
    const thought = event.thoughts.findLast(({ type }) => type === 'thinking');
    return thought?.type === 'thinking' ? thought.signature : undefined;
  }

  #stopWith(block: ShownBlock, payload: string, deltas: readonly Delta[]): void {
    if (block.type in EMPTY_DELTAS) this.#stop = { payload, deltas };
    else this.#end(block, payload, deltas);
  }

  #end(block: ShownBlock, payload = blockStop(block.index), deltas: readonly Delta[] = []): void {
    this.#blocks.end(block);
    this.#send(payload, deltas);
    if (block !== this.#open) return;
    this.#open = undefined;
    this.#source = undefined;
  }

  #send(payload: string, deltas: readonly Delta[] = [], keepPayload = true): void {
    this.#sink.send(payload, deltas, keepPayload);
  }
}

const EMPTY_DELTAS: Readonly<Record<string, object>> = {
  text: { type: 'text_delta', text: '' },
  thinking: { type: 'thinking_delta', thinking: '' },
  tool_use: inputDelta(''),
};

const isProse = (delta: Delta): delta is Prose => 'text' in delta && delta.kind !== 'tool_arguments';
