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

/** A provider that keeps the connection open after `[DONE]` loses it. */
const DRAIN_WAIT_MS = 1_000;

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** See `TransportRequest`. */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Without one, the request is a GET. */
  readonly body?: string;
  /** Counts what is read of an answer that can be resumed. */
  readonly position?: StreamPosition;
}

/** Those of the clocks, and of the transport. */
interface AttemptClockLimits extends Limits {
  readonly connect_ms: number;
}

interface AttemptLimits {
  readonly clocks: AttemptClockLimits;
  readonly event_bytes: number;
}

/** Takes the events that came together, at `at_ms`. May return a promise to hold the provider back. */
export type TakeEvents = (events: readonly EventSourceMessage[], at_ms: number) => Promise<void> | undefined;

/** What stands in for an attempt while it is silent. */
interface StandIn {
  /** The attempt has been silent for as long as `hedge` of its clocks allows. */
  begin(): void;
  /** It has said something again, or all. */
  end(): void;
}

/**
 * One upstream request: opens it, reads its events in the batches in which they arrive, and keeps its clocks.
 * Never throws: however it ends, {@link end} says so.
 */
export class Attempt {
  /** Set when the provider refused. */
  refusal: Refusal | undefined;
  /** Of the response; none before it. */
  headers: TransportResponse['headers'] = {};
  /** `[DONE]` has come. */
  isDone = false;
  /** `[DONE]` has come, or {@link end} says how it ended without. */
  isOver = false;
  /** How long it had said nothing when it ended. */
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
  #body: ResponseBody | undefined;
  #parts: Buffer[] = [];
  #end: AttemptEnd | undefined;
  #expired: Clock | undefined;

  /** `client` aborts when no client wants the answer any more. */
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
      // Other clocks run from here, and one of them may be due before the one that was waited for.
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
   * Hands over the events in the batches in which they arrive, until the attempt is over; after `[DONE]` what may
   * still follow is read and dropped in the background.
   */
  async read(take: TakeEvents): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#consume(take, resolve).then(resolve, reject);
    await promise;
    // What little may still follow is waited for, so that the connection can be used again.
    if (this.isDone) this.finishWithin(DRAIN_WAIT_MS);
    else if (this.#end?.kind !== 'eof') this.#abort.abort();
  }

  /** `leave` is called when nothing more will be taken although the body has not ended. */
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
        const waiting = take(events, at_ms);
        if (!this.isOver) return waiting && this.#outlast(waiting, leave);
        leave(waiting);
        return waiting;
      });
      if (!this.isOver) await take(this.#rest(), this.#readings.byte_ms ?? this.#readings.started_ms);
      const residue = this.#errorAtEnd();
      this.#settle({ kind: 'eof', done: this.isDone, ...(residue && { residue }) });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** What is waited for may bring the attempt to its end. */
  async #outlast(waiting: Promise<void>, leave: () => void): Promise<void> {
    await waiting;
    if (this.isOver) leave();
  }

  /** What has come together is decoded, and written to the client, at once: nothing until the last of it is here. */
  #joined(part: Buffer, isFollowed = false): Buffer | undefined {
    if (this.#parts.length === 0 && !isFollowed) return part;
    this.#parts.push(part);
    if (isFollowed) return undefined;
    const piece = Buffer.concat(this.#parts);
    this.#parts = [];
    return piece;
  }

  /** What the body ended with, without its blank line: half an event is how it ended, and no damaged one. */
  #rest(): readonly EventSourceMessage[] {
    const rest = this.#decoder.end();
    if (rest.length === 0 || !rest.every(isWhole)) return [];
    this.#request.position?.takeRest();
    return rest;
  }

  #errorAtEnd(): ProviderError | undefined {
    const { residue } = this.#decoder;
    // Nearly always there is none, and to have the parser refuse it takes as long as ten events.
    return residue === '' ? undefined : providerErrorIn(parsedJson(residue));
  }

  /** How the attempt ended; to be asked for once it is over. */
  get end(): AttemptEnd {
    return this.#end ?? { kind: 'eof', done: this.isDone };
  }

  /** Its model was seen to think. */
  get thought(): boolean {
    return this.#readings.thought;
  }

  /** `[DONE]` came. */
  done(): void {
    this.isDone = true;
    this.isOver = true;
  }

  /** A delta said something. `reasoning`: the model is still thinking. */
  progressed(reasoning: boolean): void {
    const readings = this.#readings;
    const answers = readings.reasoning && !reasoning;
    const isFirst = readings.progress_ms === undefined;
    readings.progress_ms = readings.byte_ms;
    readings.reasoning = reasoning;
    readings.thought ||= reasoning;
    if (readings.hedged) this.#endStandIn();
    // The clock that runs now may be shorter than the one the timer was set by.
    if (answers || (isFirst && this.#limits.clocks.hedge)) this.#watchClocks();
  }

  /** The answer is whole; waits no longer than this for what may still follow. */
  finishWithin(delay_ms: number): void {
    if (this.#end) return;
    this.#readings.finish_at_ms = this.#time.now() + delay_ms;
    if (this.#readings.hedged) this.#endStandIn();
    this.#watchClocks();
  }

  #endStandIn(): void {
    this.#readings.hedged = false;
    this.standIn?.end();
    this.#watchClocks();
  }

  /** While the client takes nothing we read nothing, and the provider's silence is our own doing. */
  pauseClocks(): () => void {
    const paused_ms = this.#time.now();
    this.#cancelTimer();
    return () => {
      shiftReadings(this.#readings, this.#time.now() - paused_ms);
      this.#watchClocks();
    };
  }

  /** To be called anew when a deadline has come nearer, which bytes and most progress do not bring about. */
  #watchClocks(): void {
    this.#cancelTimer();
    if (this.#end) return;
    const { at_ms } = nextDeadline(this.#readings, this.#limits.clocks);
    const left_ms = Math.max(0, at_ms - this.#time.now());
    this.#cancelTimer = this.#time.after(left_ms, () => this.#checkClocks());
  }

  #checkClocks(): void {
    // The timer is not set anew with every byte: the deadline is looked up when it fires.
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
    this.#cancelTimer();
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
  // A provider that names no type, or a careless one, may still stream; JSON and HTML certainly do not.
  return status === 200 && !/^(application\/json|application\/problem\+json|text\/html)/.test(type);
}

/** Identity is asked for: what is not taken apart by the transport cannot be read here. */
function encodingOf({ headers }: TransportResponse): string | undefined {
  const encoding = String(headers['content-encoding'] ?? '').toLowerCase();
  return encoding === '' || encoding === 'identity' ? undefined : encoding;
}

const isWhole = ({ event, data }: EventSourceMessage): boolean =>
  event === 'error' || parsedJson(data) !== undefined || data.trim() === '[DONE]';
