import { isObject } from '../../../lib/json.ts';
import type { Delta, ToolDelta, Usage } from '../../../plans/delta.ts';
import { isOfProviderTool } from '../../../plans/transcript.ts';
import { BaseAnswerWriter, type SeenCall, type WriterOptions } from '../common/base-answer-writer.ts';
import type { Advisory, AnswerWriter, Ending, ShownAnswer } from '../common/wire.ts';
import { MessagesBlockWriter } from './block-writer.ts';
import { type MessagesUsage, reportOf, usageOf } from './ending.ts';
import { errorPayload, MESSAGE_STOP, type MessagesEvent, messageDelta, pingPayload } from './event.ts';
import { PendingEvents } from './pending.ts';

/** Writes one answer as a message. */
export class MessagesAnswerWriter extends BaseAnswerWriter implements AnswerWriter<MessagesEvent> {
  readonly #blocks: MessagesBlockWriter;
  readonly #pending = new PendingEvents();

  constructor(options: WriterOptions) {
    super(options);
    this.#blocks = new MessagesBlockWriter(options.sink);
  }

  get begun(): boolean {
    return this.#blocks.message !== undefined;
  }

  get id(): string | undefined {
    const id = this.#blocks.message?.id;
    return typeof id === 'string' ? id : undefined;
  }

  get held_reasoning(): number {
    return this.#pending.reasoning;
  }

  restore(shown: ShownAnswer): void {
    this.#blocks.restore(shown);
    if (shown.calls.length > 0) this.calls.restore(shown.calls);
  }

  show(deltas: readonly Delta[], event: MessagesEvent, intact: boolean): void {
    const isLate = intact && this.#isLate(event);
    const isOfTool = event.aside === true && deltas.some(isOfProviderTool);
    if (deltas.length === 0 || isLate || isOfTool) {
      if (intact) this.#showStructure(event, isLate);
      if (isOfTool && event.type === 'message_start') this.#showPending();
      // Otherwise another replica could run the tool again.
      if (isOfTool) this.sink.storeFirst();
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

  finish({ reason, finish, after, usage, stop_sequence }: Ending<MessagesEvent>): void {
    // Without the provider's finish, pending events belong to something that was cut.
    if (finish) this.#showPending(true);
    else this.#pending.forget();
    this.#blocks.close(finish);
    if (!finish) this.#blocks.answerUses();
    const reports = [finish, ...after].map((event) => event?.parsed.usage).filter(isObject);
    const report = this.#report(usage, reports.at(-1));
    const isAsItCame = finish && finish.parsed.usage === report;
    const event = finish?.parsed ?? messageDelta(reason, stop_sequence);
    const payload = isAsItCame ? finish.payload : JSON.stringify({ ...event, usage: report });
    const told = usageOf(report, this.#blocks.message?.usage);
    this.send(payload, [
      { kind: 'finish', reason },
      ...(told ? [{ kind: 'usage', usage: told } as const] : []),
    ]);
    this.send(MESSAGE_STOP);
  }

  /** The usage report was sent together with the reason. */
  finishRest(): void {
    this.send(MESSAGE_STOP);
  }

  fail(error: object): void {
    this.#blocks.settle();
    this.send(errorPayload(error));
  }

  /** Sends an empty delta if a block is open, for clients that count only content. */
  override breakSilence(): boolean {
    this.send(this.#blocks.emptyDelta ?? pingPayload());
    return true;
  }

  protected override sendEmpty(holdfast?: object): void {
    this.send(pingPayload(holdfast));
  }

  /** Sent before the call's block ends, because a client may act on that end. */
  protected override announceCut(call: SeenCall, cancel: Advisory): void {
    super.announceCut(call, cancel);
    this.#blocks.endCall(call.position);
  }

  #showStructure(event: MessagesEvent, isLate: boolean): void {
    const { type, block, ping } = event;
    const isWaiting = this.#pending.has(event);
    const begins = type === 'message_start' || type === 'content_block_start';
    const isRepeated = type === 'message_start' && (this.begun || isWaiting);
    // The end is sent only once, with a reason.
    if (isRepeated || type === 'message_delta') return;
    if (!begins && this.begun && (block ? !isWaiting : this.#pending.isEmpty)) this.#blocks.pass(event);
    // Before any content, a single ping is enough.
    else if ((begins || !block || isWaiting) && !(ping && isWaiting)) {
      if (this.#pending.add(event, isLate)) this.#showPending();
    }
  }

  /**
   * Reasoning in the middle of the answer. At the beginning it is shown as it arrives, because a restart can repeat it.
   */
  #isLate(event: MessagesEvent): boolean {
    const { type, block } = event;
    if (block?.kind !== 'thinking') return false;
    if (type === 'content_block_start') return this.#blocks.answers || this.#pending.answers;
    return this.#pending.isHeld(block) && this.#pending.has(event);
  }

  /** Shows events that waited for content. `half`: include incomplete ones. */
  #showPending(half = false): void {
    if (this.#pending.isEmpty) return;
    const wasBegun = this.begun;
    const events = this.#pending.drain(half);
    // A partial block is useless to a client that continues on another replica.
    if (events.some(({ block }) => block && this.#pending.isHeld(block))) this.sink.storeFirst();
    for (const event of events) this.#blocks.pass(event);
    if (wasBegun || !this.begun) return;
    for (const advisory of this.drainAdvisories()) this.advise(advisory);
  }

  #showOne(delta: Delta, event: MessagesEvent, isWhole: boolean): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#showPending();
        this.#blocks.say(delta, event, isWhole);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close':
        if (this.calls.live) this.#showLive(delta, event);
        else this.#showHeld(delta, event);
    }
  }

  /** Shows a held call as a whole once it is closed. */
  #showHeld(delta: ToolDelta, event: MessagesEvent): void {
    const shown = this.calls.show(delta);
    if (!shown) return;
    // Drops later events of this call.
    this.calls.cancel(delta.index);
    this.#showPending();
    this.#blocks.call(shown, event);
  }

  #showLive(delta: ToolDelta, event: MessagesEvent): void {
    const shown = this.calls.show(delta);
    if (shown?.start) {
      this.#showPending();
      this.#blocks.beginCall(shown, event);
      return;
    }
    const positioned = this.calls.positioned(delta);
    if (shown) this.#blocks.continueCall(positioned.index, shown);
    if (delta.kind === 'tool_close') this.#blocks.endCall(positioned.index, [positioned]);
  }

  /**
   * The provider's report, unless the logical answer differs from it. Never empty, because clients rely on a report.
   */
  #report(usage: Usage | undefined, reported: MessagesUsage | undefined): MessagesUsage {
    if (!usage && reported) return reported;
    const report = reportOf(usage, this.#blocks.message?.usage, reported);
    return reported && JSON.stringify(report) === JSON.stringify(reported) ? reported : report;
  }
}
