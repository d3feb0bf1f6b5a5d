import { epochNameAt } from '../../checkpoint/epoch.ts';
import type { JournalEvent, JournalRecord } from '../../checkpoint/journal.ts';
import type { Takeover } from '../../checkpoint/store.ts';
import { eventFrame, eventId } from '../downstream/event-frame.ts';
import type { Rebuilder } from '../wires/common/delivered-events.ts';
import type { Advisory, EventsMode, Wire } from '../wires/common/wire.ts';
import { WIRES } from '../wires/registry.ts';
import { replacedFrom } from './reachable.ts';
import type { Position } from './reader.ts';

/** What is put together before it is written: a slow client holds no more of a run in memory than this, and a socket's buffer. */
const PIECE_CHARACTERS = 65_536;
/** The reason for a call that was cancelled before the client came back: the journal does not say what cut it. */
const CANCELLED_BEFORE = 'interrupted';

interface ReplayOptions extends Pick<Position, 'run' | 'cursor' | 'epoch'> {
  /** Events carry their ids. */
  readonly resumable: boolean;
}

/**
 * Stored events as the client is sent them. Payloads are the bytes that were delivered; plain text, of which only the
 * text is stored, is put into a chunk of the same answer again.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #frameOf: typeof eventFrame;
  readonly #calls = new Map<number, { readonly id: string; readonly name: string }>();
  /** Those that come before the next event, by the id of the call that they cancel. */
  readonly #comments = new Map<string, string>();
  #events: EventsMode = 'none';
  #wire: Wire = WIRES.chat_completions;
  #rebuilder: Rebuilder = WIRES.chat_completions.delivered.rebuilder();
  /** Events looked at, in order. */
  #seen = 0;
  #sent: number;
  #last: string | undefined;

  /** `frameOf`: where the client has one of its own. */
  constructor(options: ReplayOptions, frameOf: typeof eventFrame = eventFrame) {
    this.#options = options;
    this.#frameOf = frameOf;
    this.#sent = options.cursor;
  }

  /** How many events the client has. */
  get seq(): number {
    return this.#sent;
  }

  /** How many events were looked at; fewer than the client has while the log is behind it. */
  get seen(): number {
    return this.#seen;
  }

  /** Whether the last event that was looked at ends the stream, and how. */
  get ended(): 'done' | 'error' | undefined {
    return this.#last === undefined ? undefined : this.#wire.delivered.endOf(this.#last);
  }

  /**
   * Frames of the events that the client has not got, in pieces. `records` must begin where the last ones ended, or
   * overlap with them; the first ones must begin with the run. `takeovers`: of the run.
   */
  *pieces(records: readonly JournalRecord[], takeovers: readonly Takeover[]): Generator<string> {
    let piece = '';
    for (const { seq: last, events, header } of records) {
      // Of what was seen already, the rebuilder knows the first event, which is not given to it again.
      if (header && this.#seen === 0) {
        this.#wire = WIRES[header.wire];
        this.#rebuilder = this.#wire.delivered.rebuilder();
        this.#events = header.events;
      }
      let seq = last - events.length;
      for (const event of events) {
        if (++seq <= this.#seen) continue;
        if (seq > this.#seen + 1) throw new Error(`events ${this.#seen + 1} to ${seq - 1} are missing`);
        piece += this.#frame(event, seq, takeovers);
        this.#seen = seq;
        if (piece.length < PIECE_CHARACTERS) continue;
        yield piece;
        piece = '';
      }
    }
    if (piece !== '') yield piece;
  }

  #frame(event: JournalEvent, seq: number, takeovers: readonly Takeover[]): string {
    const { run, resumable } = this.#options;
    this.#last = event.payload;
    const payload = this.#payload(event);
    if (this.#events === 'comments') this.#comment(event, seq, takeovers);
    if (seq <= this.#sent) return '';
    this.#sent = seq;
    const id = resumable ? eventId(run, epochNameAt(seq, takeovers), seq) : undefined;
    return this.#takeComments() + this.#frameOf(payload, this.#wire, id);
  }

  /** Comments that come before the next event, where that is not in the log. `brought`: what the client has beyond the log. */
  commentsBehind(brought: readonly string[]): string {
    const reader = this.#wire.delivered.reader();
    const said = brought.flatMap((payload) => reader.read(payload, this.#calls.size)?.deltas ?? []);
    for (const delta of said) if (delta.kind === 'tool_start') this.#comments.delete(delta.id);
    return this.#takeComments();
  }

  #takeComments(): string {
    const comments = [...this.#comments.values()].join('');
    this.#comments.clear();
    return comments;
  }

  #payload({ payload, deltas }: JournalEvent): string {
    if (payload === undefined) return this.#rebuilder.payloadOf(deltas);
    this.#rebuilder.add(payload);
    return payload;
  }

  /**
   * Comments are no events and were not stored, but without this one a cancelled call would look like an open one. A client
   * may lack it of an event that it has: the event may be from a replica that was lost, which did not cancel the call.
   */
  #comment({ deltas }: JournalEvent, seq: number, takeovers: readonly Takeover[]): void {
    const isKnown = seq <= this.#sent;
    for (const delta of deltas) {
      if (delta.kind === 'tool_start') {
        this.#calls.set(delta.index, delta);
        // A comment that came now would cancel this one.
        if (isKnown) this.#comments.delete(delta.id);
      }
      if (delta.kind !== 'tool_cancel' || (isKnown && !this.#mayBeReplaced(seq, takeovers))) continue;
      const call = this.#calls.get(delta.index);
      if (!call) continue;
      const { id, name } = call;
      const reason = delta.reason ?? CANCELLED_BEFORE;
      const advisory: Advisory = { type: 'ToolCallCancel', id, name, reason, attempt: 1 };
      this.#comments.set(id, `: holdfast ${JSON.stringify(advisory)}\n`);
    }
  }

  #mayBeReplaced(seq: number, takeovers: readonly Takeover[]): boolean {
    return seq > replacedFrom(takeovers, this.#options.epoch);
  }
}
