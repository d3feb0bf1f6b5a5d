import type { JournalEvent } from '../checkpoint/journal.ts';
import type { Delta, Usage } from '../plans/delta.ts';
import type { Time } from '../time.ts';
import type { Advisory } from './advisory.ts';
import { eventFrame } from './event-frame.ts';
import { FrameWriter } from './frame-writer.ts';
import type { RestoredRun } from './resume/restored-run.ts';
import type { Client, EventsMode } from './run.ts';
import { ShownCalls } from './shown-calls.ts';
import { ChatEnvelope, type ChunkEvent } from './wires/chat-envelope.ts';

export interface DeliveryOptions {
  readonly client: Client;
  readonly time: Time;
  readonly events: EventsMode;
  /** The legacy `functions` interface: a call is delivered as `function_call`, without an id. */
  readonly legacyFunctions: boolean;
  /** Asked for when the response is opened. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Is given every `data:` event, in the order in which they are sent. */
  readonly journal: { record(event: JournalEvent): void; stored(): Promise<void> };
  /** The id of the event with this ordinal, where the client asked for ids. */
  readonly idOf?: (seq: number) => string;
  /** What was delivered before this replica. */
  readonly restored?: RestoredRun;
}

/** How an answer ends. */
export interface Ending {
  readonly reason: string;
  /** The provider's finish chunk, and what it sent after it: usage, filter results. */
  readonly finish?: ChunkEvent;
  readonly after: readonly ChunkEvent[];
  /** Put in place of what the provider reported; without it, its own report stands. */
  readonly usage?: Usage;
  /** The client asked for a usage report and must get one. */
  readonly usageAsked: boolean;
}

/**
 * The client's view of a run. Sends what can be sent as the bytes that came, rebuilds the rest as standard chunks,
 * and holds back what might have to be taken back: a role before any content, a tool call before it is closed.
 *
 * Frames are collected, and written by {@link flush} once for everything that arrived together.
 */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #calls: ShownCalls;
  readonly #idOf: ((seq: number) => string) | undefined;
  readonly #frames: FrameWriter;
  #seq = 0;
  #envelope: ChatEnvelope | undefined;
  /** Chunks of the current attempt that came before any content. */
  #early: ChunkEvent[] = [];
  #advisories: Advisory[] = [];
  /** Deltas without an event of their own; recorded with the next one. */
  #silent: Delta[] = [];
  #needsStored = false;
  #recovering = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#calls = new ShownCalls({ live: options.events !== 'none', legacy: options.legacyFunctions });
    this.#idOf = options.idOf;
    if (options.restored) this.#restore(options.restored);
    this.#frames = new FrameWriter({ ...options, onSilence: () => this.#breakSilence() });
  }

  /** True once content was sent: from then on the answer has an identity that stays. */
  get begun(): boolean {
    return this.#envelope !== undefined;
  }

  /** `id` of the chunks, once there are any. */
  get stream_id(): string | undefined {
    return this.#envelope?.id;
  }

  /**
   * What was collected comes after a cancelled call, and does not show it: only the journal tells that call from one
   * that was closed, so nobody may have this before the journal has.
   */
  get needsStored(): boolean {
    return this.#needsStored;
  }

  /** The whole response was handed to the client. */
  get ended(): boolean {
    return this.#frames.ended;
  }

  /**
   * Shows `deltas`, which `event` brought. `intact`: nothing was taken out of the event, so it may pass as it came.
   */
  show(deltas: readonly Delta[], event: ChunkEvent, intact: boolean): void {
    const envelope = this.#envelope;
    if (envelope && intact && !event.role && envelope.fits(event.chunk) && isProse(deltas)) {
      const isText = deltas.length === 1 && deltas[0]?.kind === 'text';
      this.#send(event.payload, deltas, !isText || !envelope.rebuilds(event.chunk));
      return;
    }
    if (deltas.length === 0) this.#showEmpty(event, intact);
    else if (isProse(deltas)) this.#showProse(deltas, event, intact);
    else for (const delta of deltas) this.#showOne(delta, event);
  }

  /** An event of a request that is never spliced: sent as it came. */
  forward(event: ChunkEvent): void {
    this.#envelope ??= new ChatEnvelope(event.chunk);
    this.#send(
      event.payload,
      event.deltas.filter((delta) => delta.kind === 'text'),
      true,
    );
  }

  /** A new attempt begins: what the last one sent before any content is forgotten. */
  restart(): void {
    this.#early = [];
    this.#recovering = true;
  }

  /** The calls were cut: what was held of them is dropped, what was shown is announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    for (const index of indexes) {
      const cancelled = this.#calls.cancel(index);
      if (!cancelled) continue;
      this.#silent.push({ kind: 'tool_cancel', index: cancelled.position });
      this.advise({ type: 'ToolCallCancel', id: cancelled.id, name: cancelled.name, reason, attempt });
    }
  }

  advise(advisory: Advisory): void {
    const { events } = this.#options;
    if (events === 'none') return;
    // Not before the role: clients take the first chunk for the beginning of the message.
    if (!this.#envelope) this.#advisories.push(advisory);
    else if (events === 'comments') this.#frames.add(`: holdfast ${JSON.stringify(advisory)}\n`);
    else this.#send(this.#envelope.emptyChunk(advisory), [], true);
  }

  /** The recovery is felt no more: new content has come. */
  recovered(): void {
    this.#recovering = false;
  }

  /** Writes what was collected. The promise, if any, is the client's backpressure. */
  flush(): Promise<void> | undefined {
    this.#needsStored = false;
    return this.#frames.flush();
  }

  /** Collects the last chunk, the usage report and `[DONE]`, which leave with the {@link end} of the response. */
  finish({ reason, finish, after, usage, usageAsked }: Ending): void {
    const role = finish ? this.#begin(finish) : false;
    const envelope = this.#require();
    const deltas: Delta[] = [{ kind: 'finish', reason }];
    if (!finish) this.#send(envelope.finishChunk(reason, role), deltas, true);
    else if (role || finish.deltas.length > 1)
      this.#send(envelope.finishOf(finish.chunk, role, usage), deltas, true);
    else this.#sendTail(finish, deltas, usage);
    for (const event of after) this.#sendTail(event, event.deltas.filter(isUsage), usage);
    const reported = [finish, ...after].some((event) => event?.deltas.some(isUsage));
    this.finishRest(usageAsked && !reported ? usage : undefined);
  }

  /** What comes after the finish chunk, and after the provider's usage report. */
  finishRest(usage: Usage | undefined): void {
    if (usage) this.#send(this.#require().usageChunk(usage), [{ kind: 'usage', usage }], true);
    this.#send('[DONE]', [], true);
  }

  /** The stream of a request that is never spliced has ended as it should. */
  finishForwarded(): void {
    this.#send('[DONE]', [], true);
  }

  /** The answer could not be finished: one error event, no finish reason, no `[DONE]`. */
  fail(error: object): void {
    this.#send(JSON.stringify({ error }), [], true);
  }

  /** Writes what was collected together with the end of the response. */
  end(): void {
    this.#frames.end();
  }

  /** Nothing more is sent: the client has gone or was answered without a stream, or the run is not ours any more. */
  close(): void {
    this.#frames.close();
  }

  #restore({ seq, envelope, transcript }: RestoredRun): void {
    this.#seq = seq;
    this.#envelope = envelope;
    this.#calls.restore(transcript.toolCalls);
  }

  #showEmpty(event: ChunkEvent, intact: boolean): void {
    // A ping in the shape of an event is for us; the client's SDK would choke on it.
    if (!intact || !Array.isArray(event.chunk.choices)) return;
    if (!this.#envelope) this.#early.push(event);
    else this.#send(this.#envelope.payloadOf(event, false), [], true);
  }

  #showProse(deltas: readonly Delta[], event: ChunkEvent, intact: boolean): void {
    const role = this.#begin(event);
    const envelope = this.#require();
    const payload = intact ? envelope.payloadOf(event, role) : envelope.textChunk(deltas, role);
    this.#send(payload, deltas, true);
  }

  #showOne(delta: Delta, event: ChunkEvent): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#showProse([delta], event, false);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close': {
        const shown = this.#calls.take(delta);
        if (shown) {
          const role = this.#begin(event);
          this.#send(this.#require().toolChunk(shown, role), shown.deltas, true);
        } else if (this.#calls.live) {
          this.#silent.push(this.#calls.positioned(delta));
        }
      }
    }
  }

  /** Fixes the answer's identity with its first content. True if that content must bring the role itself. */
  #begin(event: ChunkEvent): boolean {
    if (this.#envelope) return false;
    // Some providers send a first chunk without identity, about the prompt.
    const first = this.#early.find(({ chunk }) => chunk.id && chunk.model) ?? event;
    const envelope = new ChatEnvelope(first.chunk, event.chunk);
    this.#envelope = envelope;
    const opening = this.#early.find(({ role }) => role);
    if (opening) this.#send(envelope.payloadOf(opening, true), [], true);
    for (const early of this.#early) {
      if (early !== opening && opening) this.#send(envelope.payloadOf(early, false), [], true);
    }
    this.#early = [];
    const advisories = this.#advisories;
    this.#advisories = [];
    if (opening) for (const advisory of advisories) this.advise(advisory);
    return !opening;
  }

  #require(): ChatEnvelope {
    if (!this.#envelope) throw new Error('nothing was delivered yet');
    return this.#envelope;
  }

  #sendTail(event: ChunkEvent, deltas: readonly Delta[], usage: Usage | undefined): void {
    const envelope = this.#require();
    const reports = event.deltas.find(isUsage);
    if (!reports || !usage) this.#send(envelope.payloadOf(event, false), deltas, true);
    else
      this.#send(
        envelope.finishOf(event.chunk, false, usage),
        [...deltas.filter((d) => !isUsage(d)), { kind: 'usage', usage }],
        true,
      );
  }

  #send(payload: string, deltas: readonly Delta[], keepPayload: boolean): void {
    this.#seq++;
    this.#frames.add(eventFrame(payload, this.#idOf?.(this.#seq)));
    let said = deltas;
    if (this.#silent.length > 0) {
      said = [...this.#silent, ...deltas];
      this.#needsStored ||= this.#options.events === 'comments' && this.#silent.some(isCancel);
      this.#silent = [];
    }
    this.#options.journal.record(keepPayload ? { deltas: said, payload } : { deltas: said });
  }

  /** While a recovery takes long: a chunk that says nothing. */
  #breakSilence(): boolean {
    if (!this.#recovering || !this.#envelope) return false;
    this.#send(this.#envelope.emptyChunk(), [], true);
    // After so long a silence the run may be another replica's, which would give this ordinal to another event.
    void this.#options.journal.stored().then(() => this.flush());
    return true;
  }
}

function isProse(deltas: readonly Delta[]): boolean {
  for (const { kind } of deltas) {
    if (kind !== 'text' && kind !== 'reasoning' && kind !== 'refusal' && kind !== 'usage') return false;
  }
  return deltas.length > 0;
}

const isCancel = (delta: Delta): boolean => delta.kind === 'tool_cancel';
const isUsage = (delta: Delta): boolean => delta.kind === 'usage';
