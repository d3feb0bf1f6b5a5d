import { errorObject } from '../../lib/errors.ts';
import { isObject } from '../../lib/json.ts';
import { responseHeaders } from '../upstream/headers.ts';
import type { Refusal } from '../upstream/refusal.ts';
import type { Target } from '../upstream/target.ts';
import type { DocumentFold } from '../wires/common/document.ts';
import { errorBodyOn, type Wire } from '../wires/common/wire.ts';
import type { Client, Unstreamed } from './client.ts';
import type { ClientResponse } from './client-response.ts';
import { failureStatus } from './failure-status.ts';

const DOCUMENT_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  // An answer belongs to one credential: no cache may store it or serve it to another.
  'cache-control': 'private, no-store',
};

/** The underlying response. It is never opened, so it can still be rejected at the end. */
export type DocumentSink = Pick<
  ClientResponse,
  'signal' | 'ended' | 'over' | 'closed' | 'reject' | 'destroy'
>;

export interface DocumentResponseOptions {
  readonly wire: Wire;
  readonly limits: { readonly run_bytes: number };
  /** Called when the answer begins; returns additional headers. */
  onOpen(): Readonly<Record<string, string>>;
  /** Called if the answer exceeds the limit, so the rest is not wanted. */
  onOverflow(): void;
  /**
   * The target does not stream. `isAnswered`: it answered anyway; otherwise it must be asked again without a stream.
   */
  onUnstreamed(target: Target, isAnswered: boolean): void;
}

/**
 * The client's side of a run whose client asked for no stream: folds the events into a document and sends that at the
 * end. Nothing is sent earlier, so every failure gets a proper status.
 */
export class DocumentResponse implements Client {
  readonly opened = false;
  readonly unstreamed: Unstreamed;
  logFields?: Readonly<Record<string, unknown>>;
  readonly #response: DocumentSink;
  readonly #options: DocumentResponseOptions;
  readonly #fold: DocumentFold;
  #headers: Readonly<Record<string, string>> = {};
  #more: Readonly<Record<string, string>> | undefined;
  #last: string | undefined;
  /** Another writer owns the response. */
  #isLeft: boolean = false;

  constructor(response: DocumentSink, options: DocumentResponseOptions) {
    this.#response = response;
    this.#options = options;
    this.#fold = options.wire.document.fold();
    this.unstreamed = {
      answer: (target, answer) => {
        options.onUnstreamed(target, true);
        this.#answerAsItCame(answer, target);
      },
      passOn: (target) => {
        this.#isLeft = true;
        options.onUnstreamed(target, false);
      },
    };
  }

  get begun(): boolean {
    return this.#last !== undefined;
  }

  get signal(): AbortSignal {
    return this.#response.signal;
  }

  get ended(): boolean {
    return this.#isLeft || this.#response.ended;
  }

  get over(): boolean {
    return this.#isLeft || this.#response.over;
  }

  /** Resolves once the client has received the response or disconnected, or another writer owns the response. */
  get closed(): Promise<void> {
    return this.#isLeft ? Promise.resolve() : this.#response.closed;
  }

  /** May be called repeatedly, because nothing is sent yet; the last value of each header wins. */
  open(headers: Readonly<Record<string, string>>): void {
    this.#more ??= this.#options.onOpen();
    this.#headers = { ...this.#headers, ...headers };
  }

  /** One payload per line; comments begin with a colon. */
  readonly frameOf = (payload: string): string => `${payload}\n`;

  write(frames: string): boolean {
    for (const line of frames.split('\n')) {
      // After an overflow, the rest is ignored.
      if (this.over) break;
      if (line !== '' && !line.startsWith(':')) this.#add(line);
    }
    return true;
  }

  async drained(): Promise<void> {}

  end(frames: string): void {
    this.write(frames);
    if (this.over) return;
    const { wire } = this.#options;
    const last = this.#last ?? '';
    const end = last === '' ? undefined : wire.delivered.endOf(last);
    const document = end === 'done' ? this.#fold.document() : undefined;
    if (document) this.#send(200, JSON.stringify(document));
    else this.#fail(end === 'error' ? errorIn(last) : undefined);
  }

  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void {
    this.#response.reject(status, headers, body);
  }

  destroy(): void {
    this.#response.destroy();
  }

  #add(payload: string): void {
    const { limits, onOverflow } = this.#options;
    this.#last = payload;
    this.#fold.add(payload);
    if (this.#fold.extra_bytes <= limits.run_bytes) return;
    this.#fail(errorObject('run_too_large', { limit_bytes: limits.run_bytes }));
    onOverflow();
  }

  /** `error`: in the OpenAI format. The default reports an answer that isn't a valid document. */
  #fail(
    error: object = errorObject('stream_interrupted', { reason: 'what was delivered is no answer' }),
  ): void {
    const { status, headers } = failureStatus(error);
    this.#send(status, errorBodyOn(this.#options.wire, JSON.stringify({ error })), headers);
  }

  #send(status: number, body: string, headers: Readonly<Record<string, string>> = {}): void {
    this.#response.reject(status, { ...DOCUMENT_HEADERS, ...this.#headers, ...this.#more, ...headers }, body);
  }

  #answerAsItCame({ status, headers, body }: Refusal, { upstream }: Target): void {
    this.#response.reject(status, responseHeaders(headers, upstream), body);
  }
}

/** The error in an event that ends a failed stream; every wire puts it at the top level. */
function errorIn(payload: string): object | undefined {
  const { error } = JSON.parse(payload) as { readonly error?: unknown };
  return isObject(error) ? error : undefined;
}
