import { BEATS_PER_LEASE } from '../../checkpoint/store.ts';
import type { Configuration } from '../../config/configuration.ts';
import type { PauseWatch } from '../../lib/pause-watch.ts';
import type { Time } from '../../lib/time.ts';
import { type Delta, partOf, type Segment, type Usage } from '../../plans/delta.ts';
import type { Client } from '../downstream/client.ts';
import { eventFrame, KEEP_ALIVE } from '../downstream/event-frame.ts';
import type { RequestFacts } from '../wires/common/request.ts';
import type {
  Advisory,
  AnswerEvent,
  AnswerWriter,
  Ending,
  EventsMode,
  ForwardedCalls,
  Wire,
} from '../wires/common/wire.ts';
import type { RunJournal } from './journal.ts';
import type { RestoredRun } from './restored-run.ts';

/** Until then a failure can still be answered with a proper status. */
const HEADERS_WAIT_MS = 5_000;

export interface OutputGateOptions {
  readonly wire: Wire;
  readonly client: Client;
  readonly time: Time;
  readonly events: EventsMode;
  readonly facts: RequestFacts;
  /** Asked for when the response is opened. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Records every `data:` event, in the order in which they are sent. */
  readonly journal: Pick<RunJournal, 'record' | 'stored' | 'flush' | 'proven' | 'confirmed_ms'>;
  readonly pauses: PauseWatch;
  readonly checkpoint: Pick<Configuration['checkpoint'], 'durability' | 'lease_ms'>;
  /** Nothing leaves before the journal has its beginning: without the request in it, no replica could continue the run. */
  readonly storeFirst?: boolean;
  /** The id of the event with this ordinal, where the client asked for ids. */
  readonly idOf?: (seq: number) => string;
  readonly keepalive_ms: number;
  /** The store does not confirm that the run is still ours, and has not said either that it is not. */
  readonly onUnproven: () => void;
  /** What was delivered before this replica. */
  readonly restored?: RestoredRun;
}

/**
 * The client's view of a run, and the only way to it: numbers, records and frames every event that the wire's writer makes,
 * in that order. Frames are collected, and leave together. With `write_ahead`, and after a pause of this process, they do
 * not leave before the store has them: until then another replica may have the run. A store that fails delays what else
 * has to be stored first, and what comes after a silence of the provider as long as that between two signs of life, and does
 * not keep it back. Opens the response with the first of them, or after five seconds. While there are none, the client gets
 * events that say nothing: the timers of many clients ignore comments.
 */
export class OutputGate {
  readonly #options: OutputGateOptions;
  readonly #answer: AnswerWriter;
  #seq = 0;
  /** Deltas without an event of their own; recorded with the next one. */
  #silent: Delta[] = [];
  /** The attempt under way, until something of it is sent. */
  #segment: Segment | undefined;
  readonly #frameOf: typeof eventFrame;
  #frames = '';
  #needsStored: boolean;
  #state: 'open' | 'ended' | 'closed' = 'open';
  #isBlocked = false;
  /** When something was last let through, or confirmed to be ours to send. */
  #passed_ms: number;
  /** When anything was last written, and when it was more than a comment. */
  #written_ms: number;
  #data_ms: number;
  #cancelTimer: () => void;
  #cancelProof: () => void = () => {};
  /** Resolves with whether the run may be delivered although its lease is lost. */
  #dispute: Promise<boolean> | undefined;

  constructor(options: OutputGateOptions) {
    const { wire, events, facts, time, restored } = options;
    this.#options = options;
    this.#frameOf = options.client.frameOf ?? eventFrame;
    this.#needsStored = options.storeFirst ?? false;
    this.#passed_ms = time.now();
    this.#written_ms = this.#passed_ms;
    this.#data_ms = this.#passed_ms;
    this.#cancelTimer = time.after(HEADERS_WAIT_MS, () => this.#keepAlive());
    options.pauses.enter();
    this.#answer = wire.writer({
      events,
      facts,
      sink: {
        send: (payload, deltas, keepPayload) => this.#send(payload, deltas, keepPayload),
        comment: (text) => {
          this.#frames += `: ${text}\n`;
        },
        keep: (delta) => void this.#silent.push(delta),
        storeFirst: () => {
          this.#needsStored = true;
        },
      },
    });
    if (restored) {
      this.#seq = restored.seq;
      restored.restore(this.#answer);
    }
  }

  /** True once content was sent: from then on the answer has an identity that stays. */
  get begun(): boolean {
    return this.#answer.begun;
  }

  /** What the provider calls the answer, once there is any of it. */
  get stream_id(): string | undefined {
    return this.#answer.id;
  }

  /** The calls of an answer with several choices, which is sent as it comes. */
  get forwardedCalls(): ForwardedCalls {
    return this.#answer.forwardedCalls ?? NO_CALLS;
  }

  /** Bytes that they hold. */
  get forwarded_bytes(): number {
    return this.#answer.forwarded_bytes ?? 0;
  }

  /** See {@link AnswerWriter.thoughts}. */
  get thoughts(): AnswerWriter['thoughts'] {
    return this.#answer.thoughts;
  }

  /** See {@link AnswerWriter.held_reasoning}. */
  get held_reasoning(): number {
    return this.#answer.held_reasoning ?? 0;
  }

  /** The whole response was handed to the client. */
  get ended(): boolean {
    return this.#state === 'ended';
  }

  /**
   * Shows `deltas`, which `event` brought. `intact`: nothing was taken out of the event, so it may pass as it came.
   */
  show(deltas: readonly Delta[], event: AnswerEvent, intact: boolean): void {
    this.#answer.show(deltas, event, intact);
  }

  /** An event of a request that is never spliced: sent as it came. */
  forward(event: AnswerEvent): void {
    this.#answer.forward(event);
  }

  /** The attempt of `segment` begins: what is sent from now on belongs to it. */
  begin(segment: Segment): void {
    this.#segment = segment;
  }

  /** An attempt begins another answer: what the last one sent before any content is forgotten. */
  restart(): void {
    this.#answer.restart();
  }

  /** The calls were cut: what was held of them is dropped, what was shown is announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    this.#answer.cancelCalls(indexes, reason, attempt);
  }

  advise(advisory: Advisory): void {
    this.#answer.advise(advisory);
  }

  /** Collects what ends the answer, which leaves with the {@link end} of the response. */
  finish(ending: Ending): void {
    this.#answer.finish(ending);
  }

  /** What comes after the end of the answer, where that was sent already. */
  finishRest(usage: Usage | undefined): void {
    this.#answer.finishRest(usage);
  }

  /** The stream of a request that is never spliced has ended as it should. */
  finishForwarded(): void {
    this.#answer.finishForwarded();
  }

  /** The answer could not be finished: one error event, and nothing that looks like an end. */
  fail(error: object): void {
    this.#answer.fail(error);
  }

  /** Writes what was collected. The promise, if any, is the store's or the backpressure of a slow client. */
  flush(now_ms: number): Promise<void> | undefined {
    // An event that shows nothing yet ends no silence: what it is shown with would go unasked.
    if (this.#frames === '' || this.#state !== 'open') return undefined;
    const waiting = this.#mayLeave(now_ms);
    if (!waiting) return this.#write(now_ms);
    return waiting.then((may) => (may ? this.#write(this.#options.time.now()) : undefined));
  }

  /** Writes what was collected together with the end of the response. */
  async end(): Promise<void> {
    const { client, time } = this.#options;
    const waiting = this.#mayLeave(time.now());
    const may = waiting === undefined || (await waiting);
    if (!may || this.#state !== 'open') return;
    this.#stop('ended');
    if (!client.opened) this.#open();
    client.end(this.#frames);
    this.#frames = '';
  }

  /** The lease is lost: nothing leaves unless `permission` resolves with true. `undefined`: it is not lost any more. */
  hold(permission: Promise<boolean> | undefined): void {
    this.#dispute = permission;
  }

  /** What waits for the store's proof waits no longer, and does not leave. */
  cancelProof(): void {
    this.#cancelProof();
  }

  /** Nothing more is sent: the client has gone or was answered without a stream, or the run is not ours any more. */
  close(): void {
    if (this.#state === 'open') this.#stop('closed');
  }

  #stop(state: 'ended' | 'closed'): void {
    this.#state = state;
    this.#cancelTimer();
    this.#options.pauses.leave();
    this.#cancelProof();
  }

  /** Whether what was collected may leave; undefined where nothing has to be waited for. */
  #mayLeave(now_ms: number): Promise<boolean> | undefined {
    const waiting = this.#dispute ?? this.#confirmation(now_ms);
    // The lease may turn out to be lost while that is waited for.
    return waiting?.then((may) => this.#dispute ?? may);
  }

  /** Resolves with whether the store has, or need not have, what was collected. */
  #confirmation(now_ms: number): Promise<boolean> | undefined {
    const { journal, checkpoint, pauses } = this.#options;
    const silent_ms = now_ms - this.#passed_ms;
    this.#passed_ms = now_ms;
    const resumed_ms = pauses.resumedAt(now_ms);
    // For as long as a lease, another replica may act on what it saw before this one gave a sign of life again.
    const wasPaused =
      resumed_ms > Number.NEGATIVE_INFINITY && journal.confirmed_ms < resumed_ms + checkpoint.lease_ms;
    if (checkpoint.durability === 'write_ahead' || wasPaused) return this.#proof();
    // What comes after a cancelled call that the client does not see, or begins what only the journal has the rest of.
    if (this.#needsStored) return journal.stored().then(() => true);
    // The last sign of life may be as much older than what was let through last: the lease may lapse before the silence is as long.
    const mayHaveLapsed = silent_ms * BEATS_PER_LEASE >= checkpoint.lease_ms;
    return mayHaveLapsed ? journal.flush().then(() => true) : undefined;
  }

  async #proof(): Promise<boolean> {
    const { journal, onUnproven } = this.#options;
    const { promise: cancelled, resolve } = Promise.withResolvers<undefined>();
    this.#cancelProof = () => resolve(undefined);
    const isProven = await Promise.race([journal.proven(), cancelled]);
    if (isProven === false && this.#state === 'open' && !this.#dispute) onUnproven();
    return isProven ?? false;
  }

  #write(now_ms: number): Promise<void> | undefined {
    this.#needsStored = false;
    if (this.#frames === '' || this.#state !== 'open') return undefined;
    const { client } = this.#options;
    if (!client.opened) this.#open();
    const frames = this.#frames;
    this.#frames = '';
    this.#written_ms = now_ms;
    this.#data_ms = now_ms;
    return client.write(frames) ? undefined : this.#drained();
  }

  #open(): void {
    const { client, headers } = this.#options;
    client.open(headers());
  }

  async #drained(): Promise<void> {
    this.#isBlocked = true;
    await this.#options.client.drained();
    this.#isBlocked = false;
  }

  #send(payload: string, deltas: readonly Delta[], keepPayload: boolean): void {
    const { wire, idOf, journal, events } = this.#options;
    this.#seq++;
    this.#frames += this.#frameOf(payload, wire, idOf?.(this.#seq));
    let said = this.#segment ? this.#withSegment(this.#segment, deltas) : deltas;
    if (this.#silent.length > 0) {
      said = [...this.#silent, ...said];
      // Only the journal distinguishes a call that was cancelled unseen from one that was closed.
      this.#needsStored ||= events === 'comments' && this.#silent.some(isCancel);
      this.#silent = [];
    }
    journal.record(keepPayload ? { deltas: said, payload } : { deltas: said });
  }

  /** An attempt that adds nothing to the answer has no part in it. */
  #withSegment(segment: Segment, deltas: readonly Delta[]): readonly Delta[] {
    if (!deltas.some(partOf)) return deltas;
    this.#segment = undefined;
    return [{ kind: 'segment', ...segment }, ...deltas];
  }

  #keepAlive(): void {
    const { client, time, keepalive_ms } = this.#options;
    const now_ms = time.now();
    const wasOpened = client.opened;
    if (!wasOpened) this.#open();
    const isDue = (since_ms: number) => now_ms - since_ms >= keepalive_ms;
    // An answer that is sent as one document has no events to keep it alive.
    const isBroken = wasOpened && !this.#isBlocked && isDue(this.#data_ms) && this.#breakSilence();
    if (!isBroken && !this.#isBlocked && (!wasOpened || isDue(this.#written_ms))) {
      this.#written_ms = now_ms;
      if (!client.write(KEEP_ALIVE)) void this.#drained();
    }
    const next_ms = [this.#data_ms, this.#written_ms, now_ms].map((since_ms) => since_ms + keepalive_ms);
    const wait_ms = Math.min(...next_ms.filter((at_ms) => at_ms > now_ms)) - now_ms;
    this.#cancelTimer = time.after(wait_ms, () => this.#keepAlive());
  }

  /** Sends an event that says nothing. False if the wire has none yet, or if what would come before it may not leave. */
  #breakSilence(): boolean {
    if (this.#frames !== '' || !this.#answer.breakSilence()) return false;
    // After so long a silence the run may be another replica's, which would give this ordinal to another event.
    this.#needsStored = true;
    void this.flush(this.#options.time.now());
    return true;
  }
}

const NO_CALLS: ForwardedCalls = { settled: [], unfinished: [] };
const isCancel = (delta: Delta): boolean => delta.kind === 'tool_cancel';
