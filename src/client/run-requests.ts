import type { ReceivedEvents } from './received-events.ts';
import type { WireRequest } from './wire-request.ts';

export interface RunRequest {
  readonly url: string;
  readonly init: RequestInit;
}

/** What is asked of replicas on behalf of one caller, all with the caller's own credential. */
export class RunRequests {
  readonly #request: WireRequest;
  /** The run that the caller named, empty if it named none. */
  readonly run: string;

  constructor(request: WireRequest) {
    this.#request = request;
    this.run = request.headers.get('holdfast-run-id') ?? '';
  }

  /** The caller's own request. Repeated, its `Idempotency-Key` leads to the same run. */
  original(root: string): RunRequest {
    const { url, wire, root: named, headers, body } = this.#request;
    const here = root === named ? url.href : `${root}/v1${wire.path}${url.search}`;
    return this.#to(here, { method: 'POST', headers, body });
  }

  /** The rest of a run after what was received of it. `isWhole`: the caller's own request goes along. */
  rest(root: string, run: string, { cursor, tail, id }: ReceivedEvents, isWhole: boolean): RunRequest {
    const { wire, body: asked } = this.#request;
    const headers = this.#headersWithout('content-length');
    headers.set('content-type', 'application/json');
    // Its epoch distinguishes events that were lost with a log from those that took their place.
    if (id !== '') headers.set('last-event-id', id);
    const request = isWhole ? { path: `/v1${wire.path}`, body: asked } : undefined;
    const body = JSON.stringify({ cursor, tail, request });
    return this.#to(`${urlOf(root, run)}/resume`, { method: 'POST', headers, body });
  }

  /** Of a run whose id is not known yet, `run` is empty: the key stands for it. */
  cancellation(root: string, run: string): RunRequest {
    const headers = this.#headersWithout('content-type', 'content-length');
    if (run !== '') headers.delete('idempotency-key');
    return this.#to(run === '' ? `${root}${RUNS_PATH}` : urlOf(root, run), { method: 'DELETE', headers });
  }

  #to(url: string, init: RequestInit): RunRequest {
    return { url, init: { ...this.#request.init, ...init } };
  }

  #headersWithout(...names: string[]): Headers {
    const headers = new Headers(this.#request.headers);
    for (const name of names) headers.delete(name);
    return headers;
  }
}

const RUNS_PATH = '/holdfast/v1/runs';

const urlOf = (root: string, run: string): string => `${root}${RUNS_PATH}/${encodeURIComponent(run)}`;
