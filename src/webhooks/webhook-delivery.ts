import type { Logger } from 'pino';
import type { WebhookEndpoint } from '../config/webhook-endpoints.ts';
import type { WebhookEvent } from '../config/webhook-schema.ts';
import { transportCode } from '../interrupts/classify.ts';
import { retryAfterMs } from '../interrupts/retry-after.ts';
import { webhookHeaders } from '../lib/standard-webhook.ts';
import { inTime, sleep, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type ResponseBody, type Transport, TransportFailure } from '../proxy/upstream/transport.ts';

/** Maximum number of waiting events per endpoint, including the one being sent. */
export const WAITING_MAX = 256;
export const ATTEMPTS_MAX = 8;
/** Limit for an attempt, from connecting to the end of the answer. */
export const ATTEMPT_MS = 10_000;
/** The wait after the first attempt, the factor for each further one, and the upper limit. */
const WAIT_MS = 1000;
const WAIT_FACTOR = 4;
export const WAIT_MAX_MS = 300_000;
/** The random share of a wait, so that not all replicas contact a recovering receiver at once. */
const JITTER = 0.5;
/** A longer answer isn't read to its end; its connection is closed. */
const ANSWER_BYTES_MAX = 16_384;

/** One event, identical for all endpoints. */
export interface WebhookMessage {
  readonly id: string;
  readonly type: WebhookEvent;
  readonly body: string;
}

interface DeliveryContext {
  readonly transport: Transport;
  readonly metrics: Pick<Metrics, 'webhooks'>;
  readonly log: Logger;
  readonly time: Time;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/**
 * Delivers events to the configured endpoints without delaying anything else. Waiting events are lost with the process.
 */
export class WebhookDelivery {
  readonly #endpoints: readonly EndpointDelivery[];
  readonly #time: Time;
  /** Aborts once attempts are no longer followed by a wait. */
  readonly #hurrying = new AbortController();
  /** Aborts once no more requests are made. */
  readonly #closing = new AbortController();

  constructor(endpoints: readonly WebhookEndpoint[], context: DeliveryContext) {
    const signals = { hurrying: this.#hurrying.signal, closing: this.#closing.signal };
    this.#endpoints = endpoints.map((endpoint) => new EndpointDelivery(endpoint, context, signals));
    this.#time = context.time;
  }

  /** Never waits or throws. */
  send(message: WebhookMessage): void {
    for (const endpoint of this.#endpoints) endpoint.send(message);
  }

  /** Tries all waiting events once more, immediately. Later events also get only one attempt. */
  hurry(): void {
    this.#hurrying.abort();
  }

  /** Resolves once nothing is waiting, or after `limit_ms`. */
  async settled(limit_ms: number): Promise<void> {
    await inTime(this.ended(), this.#time, limit_ms);
  }

  /** Resolves once nothing is waiting. */
  async ended(): Promise<void> {
    await Promise.all(this.#endpoints.flatMap(({ deliveries }) => [...deliveries]));
  }

  /** Drops everything that is still waiting. */
  async close(): Promise<void> {
    this.#hurrying.abort();
    this.#closing.abort(new TransportFailure('UND_ERR_ABORTED'));
    await this.ended();
  }
}

/** The endpoint's answer to an attempt, or why there is none. */
type Answer =
  | { readonly status: number; readonly retry_after_ms: number | undefined }
  | { readonly code: string };

/** Makes one request at a time. An event that waits for a retry doesn't hold up later ones. */
class EndpointDelivery {
  /** Deliveries in progress. They never reject. */
  readonly deliveries = new Set<Promise<void>>();
  readonly #endpoint: WebhookEndpoint;
  readonly #context: DeliveryContext;
  readonly #hurrying: AbortSignal;
  readonly #closing: AbortSignal;
  #lastRequest: Promise<unknown> = Promise.resolve();

  constructor(
    endpoint: WebhookEndpoint,
    context: DeliveryContext,
    { hurrying, closing }: { readonly hurrying: AbortSignal; readonly closing: AbortSignal },
  ) {
    this.#endpoint = endpoint;
    this.#context = context;
    this.#hurrying = hurrying;
    this.#closing = closing;
  }

  send(message: WebhookMessage): void {
    if (!this.#endpoint.events.has(message.type)) return;
    if (this.deliveries.size >= WAITING_MAX) {
      this.#end(message, 'dropped', { waiting: WAITING_MAX });
      return;
    }
    const delivery = this.#deliver(message).finally(() => this.deliveries.delete(delivery));
    this.deliveries.add(delivery);
  }

  async #deliver(message: WebhookMessage): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      const isLast = attempts === ATTEMPTS_MAX || this.#hurrying.aborted;
      const answer = await this.#inTurn(() => this.#post(message));
      if (isDelivered(answer)) return this.#end(message, 'delivered', { attempts });
      if (!mayPass(answer)) return this.#end(message, 'refused', { ...answer, attempts });
      if (isLast) return this.#end(message, 'dropped', { ...answer, attempts });
      await sleep(this.#context.time, this.#waitAfter(attempts, answer), this.#hurrying);
    }
  }

  #inTurn<Result>(request: () => Promise<Result>): Promise<Result> {
    const turn = this.#lastRequest.then(request);
    this.#lastRequest = turn;
    return turn;
  }

  /** Never rejects. */
  async #post({ id, body }: WebhookMessage): Promise<Answer> {
    const { transport, time } = this.#context;
    const { url, key } = this.#endpoint;
    const clock = new AbortController();
    const cancelClock = time.after(ATTEMPT_MS, () => clock.abort(new TransportFailure('ETIMEDOUT')));
    const signed = webhookHeaders(key, { id, timestamp_s: Math.floor(time.wall() / 1000), body });
    try {
      const {
        status,
        headers,
        body: answer,
      } = await transport.open({
        method: 'POST',
        url,
        headers: { ...signed, 'content-type': 'application/json', 'user-agent': `holdfast/${VERSION}` },
        body,
        signal: AbortSignal.any([clock.signal, this.#closing]),
        connect_ms: ATTEMPT_MS,
      });
      await discard(answer);
      return { status, retry_after_ms: retryAfterMs(headers, time.wall()) };
    } catch (error) {
      return { code: transportCode(error) };
    } finally {
      cancelClock();
    }
  }

  #waitAfter(attempts: number, answer: Answer): number {
    const whole_ms = WAIT_MS * WAIT_FACTOR ** (attempts - 1);
    const wait_ms = Math.min(whole_ms, WAIT_MAX_MS) * (1 - JITTER * this.#context.random());
    const asked_ms = 'status' in answer ? (answer.retry_after_ms ?? 0) : 0;
    return Math.min(Math.max(wait_ms, asked_ms), WAIT_MAX_MS);
  }

  #end({ id, type }: WebhookMessage, outcome: 'delivered' | 'refused' | 'dropped', details: object): void {
    const { metrics, log } = this.#context;
    metrics.webhooks.inc({ outcome });
    if (outcome === 'delivered') return;
    const { path, url } = this.#endpoint;
    // Only the host is logged, because path or query may be what makes the address secret.
    const receiver = new URL(url).host;
    log.warn({ webhook: path, receiver, id, type, outcome, ...details }, 'a webhook was not delivered');
  }
}

const isDelivered = (answer: Answer): boolean =>
  'status' in answer && answer.status >= 200 && answer.status < 300;

/** Whether repeating the request may succeed later. */
function mayPass(answer: Answer): boolean {
  if ('code' in answer) return true;
  const { status } = answer;
  return status === 408 || status === 429 || status >= 500;
}

/** Reads an answer of which only the status matters, so that its connection can be reused. */
async function discard(body: ResponseBody): Promise<void> {
  let bytes = 0;
  const take = (piece: Buffer): undefined => {
    bytes += piece.length;
    if (bytes > ANSWER_BYTES_MAX) throw new TransportFailure('UND_ERR_ABORTED');
  };
  // The status stands even if the rest doesn't arrive.
  await body.consume(take).catch(() => {});
}
