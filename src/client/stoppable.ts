import { StopError } from './errors.ts';
import type { Fetch } from './options.ts';
import { Refusal } from './refusal.ts';
import { STOP_URL_HEADER } from './signed-run.ts';

export interface StoppableOptions {
  /** Makes the requests. Default: the global `fetch` at the time of the call of `stoppable`. */
  readonly fetch?: Fetch;
}

/** Lets a page request answers from its own server, and stop the latest one. */
export interface Stoppable {
  /** For `DefaultChatTransport`, or anything else that accepts a `fetch`. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Ends the run of the latest answer. Its response ends at once as an aborted one does, with an `AbortError`. A run that
   * hasn't begun ends when it has. Resolves once it has ended, or if there's no answer to stop. Rejects with a {@link StopError}.
   */
  stop(): Promise<void>;
}

/** How long the answer to stop may take to begin: Holdfast sends headers after 5 s at the latest. */
const BEGIN_MS_MAX = 30_000;
/** How long Holdfast may take to end the run. */
const STOP_MS_MAX = 10_000;

/**
 * The page's half of a chat that can be resumed and stopped; the server's is {@link signedRun}. Only `stop` ends a run.
 * An abort doesn't: chats also abort when their component is unmounted, and when one reconnection replaces another.
 *
 * @example
 * const answers = stoppable();
 * const transport = new DefaultChatTransport({ fetch: answers.fetch });
 */
export function stoppable({ fetch = globalThis.fetch }: StoppableOptions = {}): Stoppable {
  let latest: StoppableAnswer | undefined;
  return {
    fetch(input, init) {
      latest = new StoppableAnswer(fetch, input, init);
      return latest.response;
    },
    async stop() {
      await latest?.stop();
    },
  };
}

class StoppableAnswer {
  /** The caller's view: rejects at once when the answer is stopped, while the connection waits for the URL. */
  readonly response: Promise<Response>;
  readonly #fetch: Fetch;
  readonly #answered: Promise<Response>;
  readonly #connection = new AbortController();
  readonly #stopping = new AbortController();

  constructor(fetch: Fetch, input: string | URL | Request, init: RequestInit = {}) {
    const request = typeof input === 'object' && 'url' in input ? input : undefined;
    const left = init.signal ?? request?.signal;
    const stopped = this.#stopping.signal;
    const leave = () => {
      if (!stopped.aborted) this.#connection.abort(left?.reason);
    };
    if (left?.aborted) leave();
    left?.addEventListener('abort', leave, { once: true });
    this.#fetch = fetch;
    this.#answered = fetch(input, { ...init, signal: this.#connection.signal });
    this.response = new Promise((resolve, reject) => {
      this.#answered.then(resolve, reject);
      stopped.addEventListener('abort', () => reject(stopped.reason), { once: true });
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const overdue = setTimeout(() => this.#connection.abort(), BEGIN_MS_MAX);
    let url: string | null;
    try {
      url = (await this.#answered).headers.get(STOP_URL_HEADER);
    } catch (cause) {
      throw new StopError('The answer cannot be stopped: its request has failed, or was left.', { cause });
    } finally {
      clearTimeout(overdue);
      this.#connection.abort();
    }
    if (url === null) throw new StopError(`The answer cannot be stopped: it has no ${STOP_URL_HEADER}.`);
    await this.#end(url);
  }

  async #end(url: string): Promise<void> {
    // Browsers refuse calls of `fetch` as a method.
    const fetch = this.#fetch;
    let response: Response;
    let text: string;
    try {
      // Keeps the request alive even if the page is closed meanwhile.
      const init = {
        method: 'POST',
        keepalive: true,
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
      } as const;
      response = await fetch(url, { ...init, signal: AbortSignal.timeout(STOP_MS_MAX) });
      text = await response.text();
    } catch (cause) {
      throw new StopError('Holdfast could not be asked to stop the answer.', { cause });
    }
    if (!response.ok) {
      const { message, code } = new Refusal(response, text).cause;
      throw new StopError(message, { code });
    }
  }
}
