import {
  discard,
  isTurnedAway,
  isUnavailable,
  opensRun,
  retryAfterOf,
  saysRequestWanted,
  wantsRequest,
} from './answer.ts';
import { callerResponse } from './caller-response.ts';
import { Connection } from './connection.ts';
import type { Endpoints } from './endpoints.ts';
import { EventTooLargeError, SilenceError, StreamInterruptedError } from './errors.ts';
import type { Settings } from './options.ts';
import { ReceivedEvents } from './received-events.ts';
import { RetryBudget, sleep } from './retry-budget.ts';
import { type RunRequest, RunRequests, type WireRequest } from './wire-request.ts';

/** How the last request of this run failed, and the answer to it if there was one. */
interface LastTry {
  readonly answer?: Response | undefined;
  readonly isClosedDoor: boolean;
}

/** How long the request that ends an abandoned run may take. */
const CANCEL_MS = 5_000;

/** One streamed answer to one caller, over as many connections as it takes. */
export class ResumableRun {
  readonly #settings: Settings;
  readonly #endpoints: Endpoints;
  readonly #requests: RunRequests;
  readonly #budget: RetryBudget;
  readonly #received: ReceivedEvents;
  /** Aborts when the caller has left, by its own signal or by cancelling the body. */
  readonly #signal: AbortSignal;
  readonly #left = new AbortController();
  /** The replica that is asked. */
  #root: string;
  #connection: Connection;
  /** Empty until a replica has sent it. */
  #run: string;
  /** A replica cannot continue without the request: the next one is sent it. Otherwise none is, for it may be large. */
  #isRequestWanted = false;
  /** The connection is one for the rest of the run, of which nothing has come, and the request was not sent for it. */
  #mayWantRequest = false;

  constructor(request: WireRequest, settings: Settings, endpoints: Endpoints) {
    this.#settings = settings;
    this.#endpoints = endpoints;
    this.#requests = new RunRequests(request);
    this.#budget = new RetryBudget(settings);
    this.#received = new ReceivedEvents(request.wire);
    this.#signal = AbortSignal.any([this.#left.signal, ...(request.signal ? [request.signal] : [])]);
    this.#root = endpoints.first(request.root);
    this.#connection = new Connection(this.#signal);
    this.#run = this.#requests.run;
  }

  /** Resolves with the stream, or with the answer that came instead of one. */
  async start(): Promise<Response> {
    this.#signal.throwIfAborted();
    try {
      return await this.#begin();
    } catch (error) {
      // A request without an answer may have begun a run all the same.
      if (this.#signal.aborted) this.leave();
      throw error;
    }
  }

  async #begin(): Promise<Response> {
    let answer: Response | undefined;
    let failure: unknown;
    const { idleMs } = this.#settings;
    for (;;) {
      // Timers may fire up to a millisecond early, so afterwards the clock could not say.
      const isCutShort = this.#budget.remaining_ms < idleMs;
      try {
        const response = await this.#ask(this.#original);
        if (opensRun(response)) {
          this.#attach(response);
          return callerResponse(response, this, this.#signal);
        }
        if (!(await this.#connection.within(idleMs, () => isTurnedAway(response)))) return response;
        answer = response;
      } catch (error) {
        this.#signal.throwIfAborted();
        // A try that was cut short when the time was up says less than the one before it.
        if (!(error instanceof SilenceError) || !isCutShort) {
          answer = undefined;
          failure = error;
        } else if (!answer) failure ??= error;
      }
      const wait_ms = this.#moveOn({ answer, isClosedDoor: true });
      if (wait_ms !== undefined) await sleep(wait_ms, this.#signal);
      else if (answer) return answer;
      else throw failure;
    }
  }

  /** More of the answer, undefined at its end. Rejects with what broke the stream if it cannot be resumed. */
  async read(): Promise<string | undefined> {
    let broken: unknown;
    for (;;) {
      try {
        const frames = await this.#readFrames();
        if (frames === '') continue;
        if (frames !== undefined || this.#received.isComplete) return frames;
        broken ??= new StreamInterruptedError();
      } catch (error) {
        if (this.#received.isComplete) return undefined;
        if (error instanceof EventTooLargeError) {
          // It would be as large the next time.
          this.#connection.close();
          throw error;
        }
        broken ??= error;
      }
      await this.#resume(broken);
    }
  }

  /** The caller takes no more. */
  leave(): void {
    if (this.#received.isComplete) return void this.#drain();
    this.#left.abort();
    if (this.#settings.cancelOnAbort) void this.#cancel();
  }

  async #readFrames(): Promise<string | undefined> {
    const events = await this.#connection.read(this.#settings.idleMs);
    if (!events) return undefined;
    const { frames, payloads, id } = events;
    this.#budget.heard();
    if (this.#isUnknown(payloads[0])) throw new StreamInterruptedError();
    if (payloads.length > 0) {
      this.#budget.progressed();
      for (const payload of payloads) this.#received.add(payload);
      this.#received.id = id;
    }
    return frames;
  }

  /** The replica that delivered the run was lost while this one was read from, and the request was not stored. */
  #isUnknown(payload: string | undefined): boolean {
    if (payload === undefined || !this.#mayWantRequest) return false;
    this.#mayWantRequest = false;
    this.#isRequestWanted = saysRequestWanted(payload);
    if (this.#isRequestWanted) this.#connection.close();
    return this.#isRequestWanted;
  }

  /** Opens the stream again that `broken` interrupted, and rejects with that if it cannot. */
  async #resume(broken: unknown): Promise<void> {
    let last: LastTry = { isClosedDoor: false };
    let isForgotten = false;
    for (;;) {
      this.#signal.throwIfAborted();
      const wait_ms = this.#moveOn(last);
      if (wait_ms === undefined) throw broken;
      await sleep(wait_ms, this.#signal);
      let answer: Response;
      try {
        answer = await this.#askAgain(isForgotten);
      } catch {
        last = { isClosedDoor: true };
        continue;
      }
      if (opensRun(answer)) return this.#attach(answer);
      discard(answer);
      const { status } = answer;
      last = { answer, isClosedDoor: isUnavailable(status) };
      // With nothing to lose, the request can simply be made again.
      if (status === 404 && this.#received.cursor === 0 && !isForgotten) isForgotten = true;
      // 409: the checkpoint is behind what the caller has, and its writer may be about to store the rest.
      else if (!this.#isRequestWanted && status !== 409 && status !== 429 && status < 500) throw broken;
    }
  }

  /** For the rest, or for all of it. */
  async #askAgain(isForgotten: boolean): Promise<Response> {
    const request = isForgotten ? this.#original : this.#rest;
    this.#mayWantRequest = !isForgotten && !this.#isRequestWanted;
    const answer = await this.#ask(request);
    const { idleMs } = this.#settings;
    this.#isRequestWanted =
      this.#mayWantRequest &&
      (await this.#connection.within(idleMs, () => wantsRequest(answer, this.#received)));
    return answer;
  }

  #ask({ url, init }: RunRequest): Promise<Response> {
    const { fetch, idleMs } = this.#settings;
    const limit_ms = Math.max(1, Math.min(idleMs, this.#budget.remaining_ms));
    this.#connection = new Connection(this.#signal);
    return this.#connection.request(fetch, url, init, limit_ms);
  }

  #attach({ headers }: Response): void {
    this.#endpoints.answered(this.#root);
    const run = headers.get('holdfast-run-id') ?? this.#run;
    // An answer that was continued differently elsewhere has a run of its own from here on, and other ids.
    if (run !== this.#run) this.#received.id = '';
    this.#run = run;
  }

  /** Turns to the next replica. How long to wait before it is asked; undefined when the budget is spent. */
  #moveOn({ answer, isClosedDoor }: LastTry): number | undefined {
    this.#endpoints.failed(this.#root);
    this.#root = this.#endpoints.after(this.#root);
    // What one replica asks for need not keep another waiting.
    const isFresh = !this.#endpoints.hasFailed(this.#root);
    const retry_after_ms = answer && !isFresh ? retryAfterOf(answer) : undefined;
    return this.#budget.next({ isClosedDoor, retry_after_ms });
  }

  get #original(): RunRequest {
    return this.#requests.original(this.#root);
  }

  get #rest(): RunRequest {
    return this.#requests.rest(this.#root, this.#run, this.#received, this.#isRequestWanted);
  }

  /** Of a complete answer only the end of the message is missing; the connection can be used again after it. */
  async #drain(): Promise<void> {
    try {
      while ((await this.#readFrames()) !== undefined);
    } catch {
      // It cannot be used again.
    }
  }

  async #cancel(): Promise<void> {
    const { fetch } = this.#settings;
    const { url, init } = this.#requests.cancellation(this.#root, this.#run);
    try {
      discard(await fetch(url, { ...init, signal: AbortSignal.timeout(CANCEL_MS) }));
    } catch {
      // A run that cannot be reached is cancelled by the server, later.
    }
  }
}
