import type { EventSourceMessage } from 'eventsource-parser';
import type { AttemptEnd } from '../../interrupts/classify.ts';
import { type Limits, nextDeadline, type Readings, shiftReadings } from '../../interrupts/clocks.ts';
import type { Clock } from '../../interrupts/interruption.ts';
import { type ProviderError, providerErrorIn } from '../../interrupts/provider-error.ts';
import { parsedJson } from '../../lib/json.ts';
import type { Time } from '../../lib/time.ts';
import { maskedEnd } from './credential-mask.ts';
import { EventDecoder, EventTooLargeError } from './event-decoder.ts';
import { formOf, type Refusal, readRefusal, refusedWith } from './refusal.ts';
import type { StreamPosition } from './stream-position.ts';
import { type ResponseBody, type Transport, TransportFailure, type TransportResponse } from './transport.ts';

/** How long the provider may keep the connection open after `[DONE]`. */
const DRAIN_WAIT_MS = 1_000;

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** See `TransportRequest`. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Absent for a GET. */
  readonly body?: string;
  /** Tracks the position in an answer that can be resumed. */
  readonly position?: StreamPosition;
}

/** The limits of the clocks and of the transport. */
interface AttemptClockLimits extends Limits {
  readonly connect_ms: number;
}

interface AttemptLimits {
  readonly clocks: AttemptClockLimits;
  readonly event_bytes: number;
}

/** Handles a batch of events that arrived at `at_ms`. May return a promise to hold the provider back. */
export type TakeEvents = (events: readonly EventSourceMessage[], at_ms: number) => Promise<void> | undefined;

/** Hooks for a hedge while the attempt is silent. */
interface StandIn {
  /** The attempt has been silent for as long as the clocks' `hedge` allows. */
  begin(): void;
  /** It continued or completed its answer. */
  end(): void;
}

/**
 * One upstream request: opens it, reads its events in the batches in which they arrive, and runs its clocks. Never
 * throws for a failed request; {@link end} describes how it ended.
 */
export class Attempt {
  /** Set if the provider refused. */
  refusal: Refusal | undefined;
  /** The response's headers; empty before it. */
  headers: TransportResponse['headers'] = {};
  /** `[DONE]` has arrived. */
  isDone = false;
  /** `[DONE]` has arrived, or {@link end} describes another end. */
  isOver = false;
  /** How long it had been silent when it ended. */
  silent_ms = 0;
  standIn: StandIn | undefined;

  readonly #transport: Transport;
  readonly #request: AttemptRequest;
  readonly #limits: AttemptLimits;
  readonly #time: Time;
  readonly #client: AbortSignal;
  readonly #abort = new AbortController();
  readonly #decoder: EventDecoder;
  readonly #readings: Readings;
  readonly #onClientGone = () => this.#abort.abort();
  #cancelTimer: () => void = () => {};
  /** When the timer calls back. */
  #timer_at_ms = Number.POSITIVE_INFINITY;
  /** Events are being taken, which may end the attempt. */
  #isTaking: boolean = false;
  #body: ResponseBody | undefined;
  #parts: Buffer[] = [];
  #end: AttemptEnd | undefined;
  #expired: Clock | undefined;

  /** `client` aborts when no client wants the answer. */
  constructor(
    transport: Transport,
    request: AttemptRequest,
    limits: AttemptLimits,
    time: Time,
    client: AbortSignal,
  ) {
    this.#transport = transport;
    this.#request = request;
    this.#limits = limits;
    this.#time = time;
    this.#client = client;
    this.#decoder = new EventDecoder(limits.event_bytes);
    this.#readings = {
      started_ms: time.now(),
      byte_ms: undefined,
      progress_ms: undefined,
      reasoning: false,
      thought: false,
      hedged: false,
    };
  }

  /** True once the provider streams; otherwise {@link end} is set. */
  async open(): Promise<boolean> {
    if (this.#client.aborted) this.#abort.abort();
    this.#client.addEventListener('abort', this.#onClientGone, { once: true });
    this.#watchClocks();
    try {
      const { position, ...request } = this.#request;
      position?.begin();
      const response = await this.#transport.open({
        method: request.body === undefined ? 'GET' : 'POST',
        ...request,
        signal: this.#abort.signal,
        connect_ms: this.#limits.clocks.connect_ms,
      });
      this.#readings.byte_ms = this.#time.now();
      // Other clocks start here, and may expire before the one that the timer was set for.
      this.#watchClocks();
      const content_encoding = encodingOf(response);
      if (response.status === 200 && content_encoding !== undefined) {
        this.#abort.abort();
        this.#settle({ kind: 'refused', ...formOf(response), content_encoding, error: undefined });
        return false;
      }
      if (isStream(response)) {
        this.headers = response.headers;
        this.#body = response.body;
        return true;
      }
      await this.#refuse(response);
    } catch (error) {
      this.#fail(error);
    }
    return false;
  }

  /**
   * Passes on events in the batches in which they arrive, until the attempt is over. After `[DONE]`, the rest is read
   * and discarded in the background.
   */
  async read(take: TakeEvents): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#consume(take, resolve).then(resolve, reject);
    await promise;
    // Reads the remaining bytes, so that the connection can be reused. Usually they have come already, and the attempt
    // ends first.
    if (this.isDone) queueMicrotask(() => this.finishWithin(DRAIN_WAIT_MS));
    else if (this.#end?.kind !== 'eof') this.#abort.abort();
  }

  /** `leave`: called when no more events are taken although the body has not ended. */
  async #consume(take: TakeEvents, leave: (waiting?: Promise<void>) => void): Promise<void> {
    try {
      await this.#body?.consume((part, isFollowed) => {
        if (this.isOver) return undefined;
        const piece = this.#joined(part, isFollowed);
        if (!piece) return undefined;
        const at_ms = this.#time.now();
        this.#readings.byte_ms = at_ms;
        const events = this.#decoder.decode(piece);
        this.#request.position?.advance(piece, events.length);
        this.#isTaking = true;
        const waiting = take(events, at_ms);
        this.#isTaking = false;
        if (this.isOver) {
          leave(waiting);
          return waiting;
        }
        if (waiting !== undefined) return this.#outlast(waiting, leave);
        if (this.#readings.finish_at_ms !== undefined) this.#watchClocks();
        return undefined;
      });
      if (!this.isOver) await take(this.#rest(), this.#readings.byte_ms ?? this.#readings.started_ms);
      const residue = this.#errorAtEnd();
      this.#settle({ kind: 'eof', done: this.isDone, ...(residue && { residue }) });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The awaited work may end the attempt. */
  async #outlast(waiting: Promise<void>, leave: () => void): Promise<void> {
    await waiting;
    if (this.isOver) leave();
    else if (this.#readings.finish_at_ms !== undefined) this.#watchClocks();
  }

  /** Collects pieces that arrived together, so that they are decoded and written to the client at once. */
  #joined(part: Buffer, isFollowed = false): Buffer | undefined {
    if (this.#parts.length === 0 && !isFollowed) return part;
    this.#parts.push(part);
    if (isFollowed) return undefined;
    const piece = Buffer.concat(this.#parts);
    this.#parts = [];
    return piece;
  }

  /** Events at the end of the body without a blank line. Half an event counts as an early end, not as damage. */
  #rest(): readonly EventSourceMessage[] {
    const rest = this.#decoder.end();
    if (rest.length === 0 || !rest.every(isWhole)) return [];
    this.#request.position?.takeRest();
    return rest;
  }

  #errorAtEnd(): ProviderError | undefined {
    const { residue } = this.#decoder;
    // Usually empty, and a failing JSON parse takes as long as ten events.
    return residue === '' ? undefined : providerErrorIn(parsedJson(residue));
  }

  /** How the attempt ended; valid once it is over. */
  get end(): AttemptEnd {
    return this.#end ?? { kind: 'eof', done: this.isDone };
  }

  /** Whether the model has produced reasoning. */
  get thought(): boolean {
    return this.#readings.thought;
  }

  /** Marks the attempt as done: `[DONE]` arrived. */
  done(): void {
    this.isDone = true;
    this.isOver = true;
  }

  /** Records a delta with content. `reasoning`: the model is still reasoning. */
  progressed(reasoning: boolean): void {
    const readings = this.#readings;
    const answers = readings.reasoning && !reasoning;
    const isFirst = readings.progress_ms === undefined;
    readings.progress_ms = readings.byte_ms;
    readings.reasoning = reasoning;
    readings.thought ||= reasoning;
    if (readings.hedged) this.#endStandIn();
    // The clock that applies now may be shorter than the one that the timer was set for.
    if (answers || (isFirst && this.#limits.clocks.hedge)) this.#watchClocks();
  }

  /** Limits the wait for trailing events of a complete answer. */
  finishWithin(delay_ms: number): void {
    if (this.#end) return;
    this.#readings.finish_at_ms = this.#time.now() + delay_ms;
    if (this.#readings.hedged) this.#endStandIn();
    // `[DONE]` usually follows at once.
    if (!this.#isTaking) this.#watchClocks();
  }

  #endStandIn(): void {
    this.#readings.hedged = false;
    this.standIn?.end();
    this.#watchClocks();
  }

  /** Stops the clocks while the client blocks us: the provider's silence is our own doing then. */
  pauseClocks(): () => void {
    const paused_ms = this.#time.now();
    this.#stopTimer();
    return () => {
      shiftReadings(this.#readings, this.#time.now() - paused_ms);
      this.#watchClocks();
    };
  }

  /** Call this when the next deadline may be earlier than before, which bytes and most progress don't cause. */
  #watchClocks(): void {
    if (this.#end) return;
    const { at_ms } = nextDeadline(this.#readings, this.#limits.clocks);
    // The deadline is computed again when the timer calls back, so a timer that does so earlier serves as well.
    if (at_ms >= this.#timer_at_ms) return;
    this.#stopTimer();
    this.#timer_at_ms = at_ms;
    const left_ms = Math.max(0, at_ms - this.#time.now());
    this.#cancelTimer = this.#time.after(left_ms, () => this.#checkClocks());
  }

  #stopTimer(): void {
    this.#cancelTimer();
    this.#timer_at_ms = Number.POSITIVE_INFINITY;
  }

  #checkClocks(): void {
    this.#timer_at_ms = Number.POSITIVE_INFINITY;
    // The timer isn't reset on every byte, so the deadline is computed when it fires.
    const { clock, at_ms } = nextDeadline(this.#readings, this.#limits.clocks);
    if (this.#time.now() < at_ms) {
      this.#watchClocks();
      return;
    }
    if (clock === 'hedge') {
      this.#readings.hedged = true;
      this.#watchClocks();
      this.standIn?.begin();
      return;
    }
    this.#expired = clock;
    this.#abort.abort();
  }

  /** Ends the attempt from our side and closes the connection. */
  stop(end: AttemptEnd): void {
    this.#settle(end);
    this.#abort.abort();
  }

  #fail(error: unknown): void {
    this.#abort.abort();
    if (error instanceof EventTooLargeError) {
      this.#settle({ kind: 'limit', limit: 'limits.event_bytes' });
      return;
    }
    if (!(error instanceof TransportFailure)) throw error;
    const clock = this.#expired ?? error.clock;
    this.#settle({
      kind: 'broken',
      code: error.code,
      ...(error.goaway !== undefined && { goaway: error.goaway }),
      ...(clock !== undefined && { clock }),
    });
  }

  async #refuse(response: TransportResponse): Promise<void> {
    this.refusal = await readRefusal(response, this.#limits.event_bytes, () => this.#abort.abort());
    this.#settle(refusedWith(this.refusal, this.#time.wall()));
  }

  #settle(end: AttemptEnd): void {
    this.#stopTimer();
    this.#client.removeEventListener('abort', this.#onClientGone);
    if (this.#end) return;
    const { progress_ms, started_ms } = this.#readings;
    this.silent_ms = this.#time.now() - (progress_ms ?? started_ms);
    this.#end = maskedEnd(end, this.#request.headers);
    this.isOver = true;
  }
}

function isStream({ status, headers }: TransportResponse): boolean {
  const type = String(headers['content-type'] ?? '').toLowerCase();
  // Providers with a missing or wrong type may still stream; JSON and HTML certainly don't.
  return status === 200 && !/^(application\/json|application\/problem\+json|text\/html)/.test(type);
}

/** The request allows identity only; an encoding that the transport doesn't decode is unreadable here. */
function encodingOf({ headers }: TransportResponse): string | undefined {
  const encoding = String(headers['content-encoding'] ?? '').toLowerCase();
  return encoding === '' || encoding === 'identity' ? undefined : encoding;
}

const isWhole = ({ event, data }: EventSourceMessage): boolean =>
  event === 'error' || parsedJson(data) !== undefined || data.trim() === '[DONE]';
