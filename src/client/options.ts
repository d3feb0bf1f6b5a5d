import { rootOfEndpoint } from './endpoints.ts';
import { withPresentNames } from './renamed-options.ts';

/** The part of `fetch` that this client needs: the global one has it, and so does any that you can call the same way. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface ResumableOptions extends FormerResumableOptions {
  /** Makes the requests. Default: the global `fetch` at the time of the call of `resumable`, so the result may replace it. */
  readonly fetch?: Fetch;
  /**
   * Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must share a store.
   * When absent, everything goes to the request's URL, which may be a load balancer's.
   */
  readonly endpoints?: readonly string[];
  /**
   * Gives the stream up after this many answers in a row without a new event. Refused connections and replicas that
   * turn the request away don't count: `giveUpMs` limits them. 0: never retry. Default 8.
   */
  readonly maxRetries?: number;
  /** Neither begins nor awaits a request when nothing has arrived from any replica for this long. Default 120 000. */
  readonly giveUpMs?: number;
  /**
   * Treats a connection as broken when nothing arrives for this long. Replicas send a keep-alive every 15 s.
   * Default 30 000.
   */
  readonly idleMs?: number;
  /**
   * Wait before the first retry; doubles with each further one that brings no new event. While replicas are down,
   * it lies between requests to different `endpoints`, and only a round of all of them doubles the next. Default 50.
   */
  readonly backoffMs?: number;
  /** Longest wait before a retry. Default 2000. */
  readonly backoffMaxMs?: number;
  /** Longest wait that a replica can ask for. Default 10 000. */
  readonly retryAfterMaxMs?: number;
  /**
   * Whether aborting or cancelling a stream also ends its run. Otherwise the run continues without its client for as
   * long as the server's `resume.detached_ms` allows. Default true.
   */
  readonly cancelOnAbort?: boolean;
}

/** Former names of options of {@link ResumableOptions}. They still work. */
interface FormerResumableOptions {
  /** @deprecated Use `maxRetries`. */
  readonly max_retries?: number;
  /** @deprecated Use `giveUpMs`. */
  readonly give_up_ms?: number;
  /** @deprecated Use `idleMs`. */
  readonly idle_ms?: number;
  /** @deprecated Use `backoffMs`. */
  readonly backoff_ms?: number;
  /** @deprecated Use `backoffMaxMs`. */
  readonly backoff_max_ms?: number;
  /** @deprecated Use `retryAfterMaxMs`. */
  readonly retry_after_max_ms?: number;
  /** @deprecated Use `cancelOnAbort`. */
  readonly cancel_on_abort?: boolean;
}

const PRESENT_NAMES = {
  max_retries: 'maxRetries',
  give_up_ms: 'giveUpMs',
  idle_ms: 'idleMs',
  backoff_ms: 'backoffMs',
  backoff_max_ms: 'backoffMaxMs',
  retry_after_max_ms: 'retryAfterMaxMs',
  cancel_on_abort: 'cancelOnAbort',
} as const satisfies Record<keyof FormerResumableOptions, keyof ResumableOptions>;

export type Settings = Required<Omit<ResumableOptions, keyof FormerResumableOptions>>;

/** The longest delay that timers accept. */
const TIMER_MS_MAX = 2_147_483_647;
const RETRIES_MAX = 1_000_000;

const DEFAULTS: Omit<Settings, 'fetch'> = {
  endpoints: [],
  maxRetries: 8,
  giveUpMs: 120_000,
  idleMs: 30_000,
  backoffMs: 50,
  backoffMaxMs: 2_000,
  retryAfterMaxMs: 10_000,
  cancelOnAbort: true,
};

/** Completes the options, under their present or former names. Throws a `TypeError` that names the wrong one. */
export function readOptions(options: ResumableOptions): Settings {
  const present = withPresentNames(options, PRESENT_NAMES);
  const given = Object.entries(present).filter(([, value]) => value !== undefined);
  // Looked up now: if each request looked it up, a result that replaces the global fetch would call itself.
  const defaults: Settings = { fetch: globalThis.fetch, ...DEFAULTS };
  for (const [name] of given) {
    if (!Object.hasOwn(defaults, name)) {
      throw new TypeError(`unknown option '${name}'; there are ${Object.keys(defaults).join(', ')}`);
    }
  }
  const settings: Settings = { ...defaults, ...Object.fromEntries(given) };
  demand(typeof settings.fetch === 'function', 'fetch', 'a function like the global fetch');
  demand(typeof settings.cancelOnAbort === 'boolean', 'cancelOnAbort', 'true or false');
  demandInteger(settings, 'maxRetries', 0, RETRIES_MAX);
  demandInteger(settings, 'giveUpMs', 1, TIMER_MS_MAX);
  demandInteger(settings, 'idleMs', 1, TIMER_MS_MAX);
  demandInteger(settings, 'backoffMs', 0, TIMER_MS_MAX);
  demandInteger(settings, 'backoffMaxMs', settings.backoffMs, TIMER_MS_MAX);
  demandInteger(settings, 'retryAfterMaxMs', 0, TIMER_MS_MAX);
  return { ...settings, endpoints: readEndpoints(options.endpoints) };
}

function readEndpoints(endpoints: readonly string[] | undefined): string[] {
  if (endpoints === undefined) return [];
  demand(Array.isArray(endpoints) && endpoints.length > 0, 'endpoints', 'a list of at least one URL');
  return endpoints.map((endpoint, index) => {
    const root = rootOfEndpoint(endpoint);
    if (root !== undefined) return root;
    const name = `endpoints[${index}]: ${JSON.stringify(endpoint)}`;
    throw new TypeError(`${name} must be the http(s) URL of a replica, like 'http://holdfast-1:8080'`);
  });
}

type NumberName = { [Name in keyof Settings]: Settings[Name] extends number ? Name : never }[keyof Settings];

function demandInteger(settings: Settings, name: NumberName, min: number, max: number): void {
  const value = settings[name];
  demand(
    Number.isInteger(value) && value >= min && value <= max,
    name,
    `a whole number from ${min} to ${max}`,
  );
}

function demand(holds: boolean, name: string, expected: string): void {
  if (!holds) throw new TypeError(`${name} must be ${expected}`);
}
