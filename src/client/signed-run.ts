import { rootOfEndpoint } from './endpoints.ts';
import type { Fetch } from './options.ts';
import { type Place, placeOf } from './place.ts';
import { resumable } from './resumable.ts';
import { fieldsOf } from './wires.ts';

/** In the server's response to a page: where the page can stop the run. */
export const STOP_URL_HEADER = 'holdfast-stop-url';

export interface SignedRunOptions {
  /** The root of Holdfast as pages reach it: `https://llm.example.com`. */
  readonly publicUrl: string;
  /** How many seconds a page can stop the run for, 1 to 86,400. Default 3600. */
  readonly ttlS?: number;
  /** Makes the requests. Must not cancel a run when its client leaves. Default `resumable({ cancelOnAbort: false })`. */
  readonly fetch?: Fetch;
  /**
   * Ends the wait of `opened` for the first request. It has no effect on a request that was made: that has a signal of its
   * own. Default `AbortSignal.timeout(10_000)`.
   */
  readonly signal?: AbortSignal;
}

export interface OpenedRun {
  /** `undefined` if there's no run: no request was made, it failed, or the answer isn't Holdfast's. */
  readonly id: string | undefined;
  /** For the response to the page. Empty if there's no run, or Holdfast hasn't signed its URL. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One run that a page can leave, come back to, and stop. */
export interface SignedRun {
  /** For the SDK that requests the answer. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * The run that the first request through `fetch` began. Never rejects: the SDK reports errors. Resolves without a run if
   * `signal` aborts before that request.
   */
  readonly opened: Promise<OpenedRun>;
}

const TTL_S_DEFAULT = 3600;
const TTL_S_MAX = 86_400;
/** How long Holdfast may take to sign, while the page waits for its response. */
const SIGN_MS_MAX = 5_000;
/**
 * How long an SDK may take to make its first request. One that fails before it, because it has no key, for example, says so
 * only where its stream is read, which a server that waits for `opened` has not begun to do.
 */
const REQUEST_MS_MAX = 10_000;

const NO_RUN: OpenedRun = { id: undefined, headers: {} };

/**
 * The server's half of a chat that can be resumed and stopped; the page's is {@link stoppable}. The page gets a URL that
 * stops this run and allows nothing else, and no credential. Throws a `TypeError` that names the wrong option.
 *
 * @example
 * const run = signedRun({ publicUrl: 'https://llm.example.com' });
 * const holdfast = createOpenAICompatible({ name: 'holdfast', baseURL, apiKey, fetch: run.fetch });
 * const { stream } = streamText({ model: holdfast('gpt-4.1'), messages });
 * const { headers } = await run.opened;
 */
export function signedRun(options: SignedRunOptions): SignedRun {
  const {
    publicUrl,
    ttlS = TTL_S_DEFAULT,
    fetch = resumable({ cancelOnAbort: false }),
    signal = AbortSignal.timeout(REQUEST_MS_MAX),
  } = options;
  const publicRoot = rootOfEndpoint(publicUrl);
  if (publicRoot === undefined)
    throw new TypeError(
      "publicUrl must be the http(s) URL at which pages reach Holdfast, like 'https://llm.example.com'",
    );
  if (!Number.isInteger(ttlS) || ttlS < 1 || ttlS > TTL_S_MAX)
    throw new TypeError(`ttlS must be a whole number from 1 to ${TTL_S_MAX}`);

  const opened = Promise.withResolvers<OpenedRun>();
  let isAwaited = true;
  const endWait = () => {
    isAwaited = false;
    opened.resolve(NO_RUN);
  };
  if (signal.aborted) endWait();
  else signal.addEventListener('abort', endWait, { once: true });
  return {
    opened: opened.promise,
    async fetch(input, init) {
      const answered = fetch(input, init);
      if (!isAwaited) return answered;
      isAwaited = false;
      signal.removeEventListener('abort', endWait);
      const request = typeof input === 'object' && 'url' in input ? input : undefined;
      const headers = new Headers(init?.headers ?? request?.headers);
      const signed = answered.then(async (response): Promise<OpenedRun> => {
        const id = response.headers.get('holdfast-run-id') ?? undefined;
        // Asks the replica that answered: another one may be down.
        const place = placeOf(response.url, headers);
        const path = id && place && (await stopPathOf(id, place, fetch, ttlS));
        return { id, headers: path ? { [STOP_URL_HEADER]: publicRoot + path } : {} };
      });
      opened.resolve(signed.catch(() => NO_RUN));
      return answered;
    },
  };
}

/** `undefined` if Holdfast didn't sign: an answer that can't be stopped is better than none. */
async function stopPathOf(
  run: string,
  { root, headers }: Place,
  fetch: Fetch,
  ttl_s: number,
): Promise<string | undefined> {
  headers.set('content-type', 'application/json');
  const init = { method: 'POST', headers, body: JSON.stringify({ allow: ['stop'], ttl_s }) };
  try {
    const url = `${root}/holdfast/v1/runs/${encodeURIComponent(run)}/urls`;
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(SIGN_MS_MAX) });
    const { stop } = (fieldsOf(await response.text()) ?? {}) as { readonly stop?: string };
    return stop;
  } catch {
    return undefined;
  }
}
