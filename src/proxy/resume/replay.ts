import { epochNameAt } from '../../checkpoint/epoch.ts';
import type { JournalEvent, JournalRecord } from '../../checkpoint/journal.ts';
import type { Takeover } from '../../checkpoint/store.ts';
import { eventFrame, eventId } from '../downstream/event-frame.ts';
import type { Rebuilder } from '../wires/common/delivered-events.ts';
import type { Advisory, EventsMode, Wire } from '../wires/common/wire.ts';
import { WIRES } from '../wires/registry.ts';
import { replacedFrom } from './reachable.ts';
import type { Position } from './reader.ts';

/** Size of the pieces written: the most memory that a run takes for a slow client, besides the socket's buffer. */
const PIECE_CHARACTERS = 65_536;
/** The reason for a call cancelled before the client returned: the journal doesn't record its cause. */
const CANCELLED_BEFORE = 'interrupted';

interface ReplayOptions extends Pick<Position, 'run' | 'cursor' | 'epoch'> {
  /** Events have ids. */
  readonly resumable: boolean;
}

/**
 * Turns stored events back into what the client receives. Payloads are stored byte for byte; for plain text only the
 * text is stored, and a chunk of the same answer is rebuilt around it.
 */
export class Replay {
  readonly #options: ReplayOptions;
  readonly #frameOf: typeof eventFrame;
  readonly #calls = new Map<number, { readonly id: string; readonly name: string }>();
  /** Comments to send before the next event, by the id of the call that they cancel. */
  readonly #comments = new Map<string, string>();
  #events: EventsMode = 'none';
  #wire: Wire = WIRES.chat_completions;
  #rebuilder: Rebuilder = WIRES.chat_completions.delivered.rebuilder();
  /** Events processed so far. */
  #seen = 0;
  #sent: number;
  #last: string | undefined;

  /** `frameOf`: the client's own format, if it has one. */
  constructor(options: ReplayOptions, frameOf: typeof eventFrame = eventFrame) {
    this.#options = options;
    this.#frameOf = frameOf;
    this.#sent = options.cursor;
  }

  /** The number of events that the client has. */
  get seq(): number {
    return this.#sent;
  }

  /** The number of events processed; smaller than {@link seq} while the log is behind the client. */
  get seen(): number {
    return this.#seen;
  }

  /** Whether and how the last processed event ends the stream. */
  get ended(): 'done' | 'error' | undefined {
    return this.#last === undefined ? undefined : this.#wire.delivered.endOf(this.#last);
  }

  /**
   * Frames for the events that the client doesn't have yet, in pieces. `records` must start at the beginning of the
   * run, and each later call must continue or overlap with the previous one. `takeovers`: all of the run.
   */
  *pieces(records: readonly JournalRecord[], takeovers: readonly Takeover[]): Generator<string> {
    let piece = '';
    for (const { seq: last, events, header } of records) {
      // Only once: after the first event, a new rebuilder would not know the answer's envelope.
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

  /**
   * Comments to send before the next event if that is not in the log. `brought`: the client's events beyond the log.
   */
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
   * Comments aren't events and aren't stored, but without this one a cancelled call would look open. A client may lack
   * it even for an event that it has, if that came from a lost replica that didn't cancel the call.
   */
  #comment({ deltas }: JournalEvent, seq: number, takeovers: readonly Takeover[]): void {
    const isKnown = seq <= this.#sent;
    for (const delta of deltas) {
      if (delta.kind === 'tool_start') {
        this.#calls.set(delta.index, delta);
        // The id is in use again, so the comment would cancel the new call.
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
