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

/** Until the headers are sent, a failure can still get a proper status. */
const HEADERS_WAIT_MS = 5_000;

export interface OutputGateOptions {
  readonly wire: Wire;
  readonly client: Client;
  readonly time: Time;
  readonly events: EventsMode;
  readonly facts: RequestFacts;
  /** Evaluated when the response is opened. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Records every `data:` event in the order of sending. */
  readonly journal: Pick<RunJournal, 'record' | 'stored' | 'flush' | 'proven' | 'confirmed_ms'>;
  readonly pauses: PauseWatch;
  readonly checkpoint: Pick<Configuration['checkpoint'], 'durability' | 'lease_ms'>;
  /** Sends nothing before the journal's beginning is stored: no replica could continue the run without its request. */
  readonly storeFirst?: boolean;
  /** The id of the event with this ordinal, if the client asked for ids. */
  readonly idOf?: (seq: number) => string;
  readonly keepalive_ms: number;
  /** Called if the store can't confirm that this replica still holds the run, but hasn't denied it either. */
  readonly onUnproven: () => void;
  /** Content delivered by earlier replicas. */
  readonly restored?: RestoredRun;
}

/**
 * The client's view of a run, and its only output path: numbers, records and frames the events of the wire's writer, in
 * that order. Frames are collected and sent together.
 *
 * With `write_ahead`, and after a pause of this process, frames wait until the store has them, because another replica
 * may hold the run until then. In other modes a failing store delays only events that must be stored first, and events
 * after a provider silence as long as the heartbeat interval; it never blocks them for good.
 *
 * The response opens with the first frames, or after five seconds. Until the next frames, the client gets empty events,
 * because the timeouts of many clients ignore comments.
 */
export class OutputGate {
  readonly #options: OutputGateOptions;
  readonly #answer: AnswerWriter;
  #seq = 0;
  /** Deltas without their own event, recorded with the next one. */
  #silent: Delta[] = [];
  /** The current attempt, until its first content is sent. */
  #segment: Segment | undefined;
  readonly #frameOf: typeof eventFrame;
  #frames = '';
  #needsStored: boolean;
  #state: 'open' | 'ended' | 'closed' = 'open';
  #isBlocked = false;
  /** When frames last passed, or were confirmed. */
  #passed_ms: number;
  /** Times of the last write, and of the last write with data. */
  #written_ms: number;
  #data_ms: number;
  #cancelTimer: () => void;
  #cancelProof: () => void = () => {};
  /** Resolves with whether the run may continue although its lease is lost. */
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

  /** True once content was sent, which fixes the answer's identity. */
  get begun(): boolean {
    return this.#answer.begun;
  }

  /** The provider's id for the answer, once it has begun. */
  get stream_id(): string | undefined {
    return this.#answer.id;
  }

  /** The calls of an answer with several choices, which is forwarded unchanged. */
  get forwardedCalls(): ForwardedCalls {
    return this.#answer.forwardedCalls ?? NO_CALLS;
  }

  /** The memory held by these calls. */
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

  /** The whole response has been handed to the client. */
  get ended(): boolean {
    return this.#state === 'ended';
  }

  /** Shows the `deltas` of `event`. `intact`: nothing was removed, so the event may pass unchanged. */
  show(deltas: readonly Delta[], event: AnswerEvent, intact: boolean): void {
    this.#answer.show(deltas, event, intact);
  }

  /** Forwards an event of a request that is never spliced. */
  forward(event: AnswerEvent): void {
    this.#answer.forward(event);
  }

  /** Assigns all further content to the attempt of `segment`. */
  begin(segment: Segment): void {
    this.#segment = segment;
  }

  /** Forgets what the last attempt sent before any content, because another answer begins. */
  restart(): void {
    this.#answer.restart();
  }

  /** Cancels cut calls: held parts are dropped, shown ones are announced as cancelled. */
  cancelCalls(indexes: readonly number[], reason: string, attempt: number): void {
    this.#answer.cancelCalls(indexes, reason, attempt);
  }

  advise(advisory: Advisory): void {
    this.#answer.advise(advisory);
  }

  /** Collects the end of the answer, which is sent by {@link end}. */
  finish(ending: Ending): void {
    this.#answer.finish(ending);
  }

  /** Adds what follows the end of the answer, if that end was already sent. */
  finishRest(usage: Usage | undefined): void {
    this.#answer.finishRest(usage);
  }

  /** Ends the forwarded stream of a request that is never spliced. */
  finishForwarded(): void {
    this.#answer.finishForwarded();
  }

  /** Sends an error event and no regular end, because the answer could not be finished. */
  fail(error: object): void {
    this.#answer.fail(error);
  }

  /** Writes the collected frames. Returns a promise while the store or a slow client must be awaited. */
  flush(): Promise<void> | undefined {
    // Without frames, held events must not reset the silence: a later frame would skip the check.
    if (this.#frames === '' || this.#state !== 'open') return undefined;
    // The time of the frames' arrival would not show that the process was stopped since.
    const now_ms = this.#options.time.now();
    const waiting = this.#dispute ?? this.#confirmation(now_ms);
    return waiting === undefined ? this.#write(now_ms) : this.#writeAfter(waiting);
  }

  /** Writes the collected frames together with the end of the response. */
  async end(): Promise<void> {
    const { client, time } = this.#options;
    const waiting = this.#dispute ?? this.#confirmation(time.now());
    const may = waiting === undefined || (await this.#unlessDisputed(waiting));
    if (!may || this.#state !== 'open') return;
    this.#stop('ended');
    if (!client.opened) this.#open();
    client.end(this.#frames);
    this.#frames = '';
  }

  /**
   * Holds frames back while the lease is lost, unless `permission` resolves with true. `undefined`: the lease is
   * regained.
   */
  hold(permission: Promise<boolean> | undefined): void {
    this.#dispute = permission;
  }

  /** Drops frames that wait for the store's confirmation. */
  cancelProof(): void {
    this.#cancelProof();
  }

  /** Stops all output: the client disconnected or was answered without a stream, or another replica has the run. */
  close(): void {
    if (this.#state === 'open') this.#stop('closed');
  }

  #stop(state: 'ended' | 'closed'): void {
    this.#state = state;
    this.#cancelTimer();
    this.#options.pauses.leave();
    this.#cancelProof();
  }

  /** The lease may be lost during the wait. */
  async #unlessDisputed(waiting: Promise<boolean>): Promise<boolean> {
    const may = await waiting;
    return this.#dispute ?? may;
  }

  /** Resolves with true once the collected frames are stored, or need not be. Undefined if that needs no wait. */
  #confirmation(now_ms: number): Promise<boolean> | undefined {
    const { journal, checkpoint, pauses } = this.#options;
    const silent_ms = now_ms - this.#passed_ms;
    this.#passed_ms = now_ms;
    const resumed_ms = pauses.resumedAt(now_ms);
    // For the length of a lease, another replica may act on the state before this one's next heartbeat.
    const wasPaused =
      resumed_ms > Number.NEGATIVE_INFINITY && journal.confirmed_ms < resumed_ms + checkpoint.lease_ms;
    if (checkpoint.durability === 'write_ahead' || wasPaused) return this.#proof();
    // The frames follow an invisible cancellation, or begin something whose rest only the journal has.
    if (this.#needsStored) return journal.stored().then(() => true);
    // The last heartbeat may be older than the last frames by up to one interval, so the lease may expire before the
    // silence is as long as a lease.
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

  async #writeAfter(waiting: Promise<boolean>): Promise<void> {
    if (await this.#unlessDisputed(waiting)) await this.#write(this.#options.time.now());
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
      // Only the journal distinguishes an invisibly cancelled call from a closed one.
      this.#needsStored ||= events === 'comments' && this.#silent.some(isCancel);
      this.#silent = [];
    }
    journal.record(keepPayload ? { deltas: said, payload } : { deltas: said });
  }

  /** The segment is recorded with the attempt's first content. */
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
    // An answer sent as one document has no events that could break the silence.
    const isBroken = wasOpened && !this.#isBlocked && isDue(this.#data_ms) && this.#breakSilence();
    if (!isBroken && !this.#isBlocked && (!wasOpened || isDue(this.#written_ms))) {
      this.#written_ms = now_ms;
      if (!client.write(KEEP_ALIVE)) void this.#drained();
    }
    const next_ms = [this.#data_ms, this.#written_ms, now_ms].map((since_ms) => since_ms + keepalive_ms);
    const wait_ms = Math.min(...next_ms.filter((at_ms) => at_ms > now_ms)) - now_ms;
    this.#cancelTimer = time.after(wait_ms, () => this.#keepAlive());
  }

  /** Sends an empty event. False if the wire has none yet, or if earlier frames must wait. */
  #breakSilence(): boolean {
    if (this.#frames !== '' || !this.#answer.breakSilence()) return false;
    // After this silence another replica may hold the run and use this ordinal for another event.
    this.#needsStored = true;
    void this.flush();
    return true;
  }
}

const NO_CALLS: ForwardedCalls = { settled: [], unfinished: [] };
const isCancel = (delta: Delta): boolean => delta.kind === 'tool_cancel';
