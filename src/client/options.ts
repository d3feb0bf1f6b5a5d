import { rootOfEndpoint } from './endpoints.ts';
import { withPresentNames } from './renamed-options.ts';

/** What is needed of a `fetch`: the global one, and any that can be called like it. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface ResumableOptions extends FormerResumableOptions {
  /** Makes the requests. When absent, the global `fetch` there is when `resumable` is called, whose place the result may take. */
  readonly fetch?: Fetch;
  /**
   * Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must share a store.
   * When absent, everything goes to the URL of the request, behind which a load balancer may stand.
   */
  readonly endpoints?: readonly string[];
  /**
   * Answers in a row that bring no new event, after which the stream is given up. Connections that are refused do not
   * count, nor do replicas that turn the request away: they have `giveUpMs`. 0: nothing is ever asked again. Default 8.
   */
  readonly maxRetries?: number;
  /** No request is begun, or waited for, when nothing has come from any replica for this long. Default 120 000. */
  readonly giveUpMs?: number;
  /**
   * A connection on which nothing comes for this long counts as broken. Replicas send a keep-alive every 15 s.
   * Default 30 000.
   */
  readonly idleMs?: number;
  /** Wait before the first retry, doubled for every further one that brings no new event. Default 50. */
  readonly backoffMs?: number;
  /** Longest wait before a retry. Default 2000. */
  readonly backoffMaxMs?: number;
  /** A replica that asks for a longer wait is not waited for any longer than this. Default 10 000. */
  readonly retryAfterMaxMs?: number;
  /**
   * Whether a stream that is aborted or cancelled ends the run too. Otherwise the run continues without its client for
   * as long as the server's `resume.detached_ms` allows. Default true.
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

/** The longest delay that timers take. */
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

/** Completes the options, under whichever names. Throws a `TypeError` that names the one at fault. */
export function readOptions(options: ResumableOptions): Settings {
  const present = withPresentNames(options, PRESENT_NAMES);
  const given = Object.entries(present).filter(([, value]) => value !== undefined);
  // Taken now: looked up at each request, a result that takes the place of the global fetch would call itself.
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
