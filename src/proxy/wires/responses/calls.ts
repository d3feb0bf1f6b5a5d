import type { Delta, ToolDelta } from '../../../plans/delta.ts';
import type { ShownCalls } from '../../../plans/shown-calls.ts';
import type { AttemptItem, ResponsesEvent } from './event.ts';
import type { ResponseOutput } from './output.ts';
import type { ResponsesSender } from './sender.ts';

type Close = Extract<Delta, { kind: 'tool_close' }>;

/** The calls of one response: held until they close, or shown live on request. */
export class ResponseCalls {
  readonly #output: ResponseOutput;
  readonly #sender: ResponsesSender;
  readonly #calls: ShownCalls;
  /** Closed calls: a later event may have closed a call before its own end arrives. */
  readonly #closed = new Set<number>();
  /** Per attempt. */
  #held = new Map<AttemptItem, ResponsesEvent[]>();
  #dropped = new Set<AttemptItem>();
  #itemOf = new Map<number, AttemptItem>();

  constructor(output: ResponseOutput, sender: ResponsesSender, calls: ShownCalls) {
    this.#output = output;
    this.#sender = sender;
    this.#calls = calls;
  }

  restart(): void {
    this.#held = new Map();
    this.#dropped = new Set();
    this.#itemOf = new Map();
  }

  /** Handles an event of a call, and its deltas. */
  show(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[]): void {
    for (const delta of deltas) if (delta.kind === 'tool_start') this.#itemOf.set(delta.index, item);
    if (this.#dropped.has(item)) this.#sender.isFaithful = false;
    else if (this.#calls.live && this.#isMadeAgain(item, deltas)) this.#continue(deltas);
    else if (this.#calls.live) this.#showLive(item, event, deltas);
    else if (this.#output.has(item)) this.#output.pass(item, event, []);
    else {
      const held = this.#held.get(item);
      if (held) held.push(event);
      else this.#held.set(item, [event]);
      for (const delta of deltas) {
        if (delta.kind === 'tool_cancel') this.drop(delta.index);
        else this.add(delta as ToolDelta);
      }
    }
  }

  /** Handles a delta without its own event: a later event closed the call. */
  add(delta: ToolDelta): void {
    if (this.#calls.live) {
      if (delta.kind === 'tool_close') this.#closeLive(delta);
      return;
    }
    if (this.#closed.has(delta.index)) return;
    const fragment = this.#calls.show(delta);
    const item = this.#itemOf.get(delta.index);
    if (!fragment || !item) return;
    const events = this.#held.get(item) ?? [];
    this.#closed.add(delta.index);
    this.#held.delete(item);
    this.#output.showCall({ item, events, fragment });
  }

  /** Gives up the call; returns it if the client has seen part of it. */
  drop(index: number): { readonly position: number; readonly id: string; readonly name: string } | undefined {
    const item = this.#itemOf.get(index);
    if (item) {
      this.#dropped.add(item);
      this.#held.delete(item);
    }
    this.#sender.isFaithful = false;
    return this.#calls.cancel(index);
  }

  /** The client knows this item's call from an earlier attempt. */
  #isMadeAgain(item: AttemptItem, deltas: readonly Delta[]): boolean {
    const isNew = this.#output.has(item) || deltas.some(({ kind }) => kind === 'tool_start');
    return this.#output.continues && !isNew;
  }

  /** Adds the new part of a repeated call to the item that contains its beginning. */
  #continue(deltas: readonly Delta[]): void {
    this.#sender.isFaithful = false;
    for (const delta of deltas) {
      if (delta.kind === 'tool_close') this.#closeLive(delta);
      if (delta.kind !== 'tool_arguments') continue;
      const shown = this.#output.openCall(this.#calls.idOf(delta.index) ?? '');
      const fragment = this.#calls.show(delta);
      if (shown && fragment) this.#output.continueCall(shown, fragment);
    }
  }

  #showLive(item: AttemptItem, event: ResponsesEvent, deltas: readonly Delta[]): void {
    const close = deltas.find(
      (delta) => delta.kind === 'tool_close' && this.#itemOf.get(delta.index) === item,
    ) as Close | undefined;
    // Empty arguments become `{}`, so the end of the call is rebuilt.
    const isBare = close && this.#output.shownOf(item)?.item.arguments === '' && event.data.arguments === '';
    if (isBare) this.#closeLive(close);
    else this.#output.pass(item, event, this.#liveDeltas(item, deltas));
    const shown = this.#output.shownOf(item);
    // While a seam holds text, an end event without deltas doesn't get here.
    if (close && this.#output.continues && shown && !shown.isDone) this.#output.close(shown);
  }

  /** The journal's deltas for a live call. */
  #liveDeltas(item: AttemptItem, deltas: readonly Delta[]): readonly Delta[] {
    return deltas.flatMap((delta): readonly Delta[] => {
      switch (delta.kind) {
        case 'tool_start':
        case 'tool_arguments':
          return this.#calls.show(delta)?.deltas ?? [];
        case 'tool_close': {
          const isOwn = this.#itemOf.get(delta.index) === item && !this.#closed.has(delta.index);
          // A beginning may close another call.
          if (!isOwn) this.#closeLive(delta);
          this.#closed.add(delta.index);
          return isOwn ? [this.#calls.positioned(delta)] : [];
        }
        case 'tool_cancel': {
          const { position: index } = this.#calls.cancel(delta.index) ?? {};
          return index === undefined ? [] : [{ kind: 'tool_cancel', index }];
        }
        default:
          return [];
      }
    });
  }

  /** Closes a live call because of a later event. */
  #closeLive(delta: Close): void {
    if (this.#closed.has(delta.index)) return;
    this.#closed.add(delta.index);
    const closed = this.#calls.positioned(delta);
    const rest = this.#calls.show(delta)?.deltas ?? [];
    const { id } = this.#calls.cancel(delta.index) ?? {};
    const shown = id === undefined ? undefined : this.#output.openCall(id);
    const events = shown ? this.#output.closingOf(shown) : [];
    for (const event of events.slice(0, -1)) this.#sender.emit(event);
    for (const event of events.slice(-1)) this.#sender.emit(event, [...rest, closed]);
  }
}
