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

/** How this run's last request failed, and its answer if there was one. */
interface LastTry {
  readonly answer?: Response | undefined;
  readonly isClosedDoor: boolean;
}

/** How long the request that ends an abandoned run may take. */
const CANCEL_MS = 5_000;

/** One streamed answer for one caller, over as many connections as needed. */
export class ResumableRun {
  readonly #settings: Settings;
  readonly #endpoints: Endpoints;
  readonly #requests: RunRequests;
  readonly #budget: RetryBudget;
  readonly #received: ReceivedEvents;
  /** Aborts when the caller leaves, by its own signal or by cancelling the body. */
  readonly #signal: AbortSignal;
  readonly #left = new AbortController();
  /** The replica that this run asks. */
  #root: string;
  #connection: Connection;
  /** The run's id; empty until a replica sends it. */
  #run: string;
  /** A replica can't continue without the request, so the next one gets it. Otherwise it isn't sent, as it may be large. */
  #isRequestWanted = false;
  /** The connection asks for the rest of the run, without the request, and nothing has arrived on it yet. */
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

  /** Resolves with the stream, or with the answer that arrived instead. */
  async start(): Promise<Response> {
    this.#signal.throwIfAborted();
    try {
      return await this.#begin();
    } catch (error) {
      // Even without an answer, the request may have begun a run.
      if (this.#signal.aborted) this.leave();
      throw error;
    }
  }

  async #begin(): Promise<Response> {
    let answer: Response | undefined;
    let failure: unknown;
    const { idleMs } = this.#settings;
    for (;;) {
      // Timers may fire up to a millisecond early, so the clock can't tell afterwards.
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
        // A try that was cut short because time was up says less than the one before it.
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

  /** More of the answer; undefined at its end. Rejects with the error that broke the stream if it can't be resumed. */
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
          // It would be just as large the next time.
          this.#connection.close();
          throw error;
        }
        broken ??= error;
      }
      await this.#resume(broken);
    }
  }

  /** The caller wants no more. */
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

  /** The replica that delivered the run was lost while this one forwarded it, and the store doesn't have the request. */
  #isUnknown(payload: string | undefined): boolean {
    if (payload === undefined || !this.#mayWantRequest) return false;
    this.#mayWantRequest = false;
    this.#isRequestWanted = saysRequestWanted(payload);
    if (this.#isRequestWanted) this.#connection.close();
    return this.#isRequestWanted;
  }

  /** Reopens the stream that `broken` interrupted; rejects with `broken` if that fails. */
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
      // There's nothing to lose yet, so simply repeat the request.
      if (status === 404 && this.#received.cursor === 0 && !isForgotten) isForgotten = true;
      // 409: the checkpoint lags behind the caller, and its writer may be about to store the rest.
      else if (!this.#isRequestWanted && status !== 409 && status !== 429 && status < 500) throw broken;
    }
  }

  /** A request for the rest, or for everything. */
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
    // If another replica continued the answer differently, it has a different run and different ids from here on.
    if (run !== this.#run) this.#received.id = '';
    this.#run = run;
  }

  /** Moves to the next replica. Returns how long to wait before asking it; undefined when the budget is spent. */
  #moveOn({ answer, isClosedDoor }: LastTry): number | undefined {
    this.#endpoints.failed(this.#root);
    this.#root = this.#endpoints.after(this.#root);
    // One replica's wish for a wait needn't delay a request to another.
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

  /** A complete answer lacks only the end of the message; after that, the connection can be reused. */
  async #drain(): Promise<void> {
    try {
      while ((await this.#readFrames()) !== undefined);
    } catch {
      // The connection can't be reused.
    }
  }

  async #cancel(): Promise<void> {
    const { fetch } = this.#settings;
    const { url, init } = this.#requests.cancellation(this.#root, this.#run);
    try {
      discard(await fetch(url, { ...init, signal: AbortSignal.timeout(CANCEL_MS) }));
    } catch {
      // If the run can't be reached, the server cancels it later.
    }
  }
}
