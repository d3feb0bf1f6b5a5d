import { rootOfEndpoint } from './endpoints.ts';

/** What is needed of a `fetch`: the global one, and any that can be called like it. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface ResumableOptions {
  /** Makes the requests. When absent, the global `fetch` there is when `resumable` is called, whose place the result may take. */
  readonly fetch?: Fetch;
  /**
   * Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must share a store.
   * When absent, everything goes to the URL of the request, behind which a load balancer may stand.
   */
  readonly endpoints?: readonly string[];
  /**
   * Answers in a row that bring no new event, after which the stream is given up. Connections that are refused do not
   * count, nor do replicas that turn the request away: they have `give_up_ms`. 0: nothing is ever asked again. Default 8.
   */
  readonly max_retries?: number;
  /** No request is begun, or waited for, when nothing has come from any replica for this long. Default 120 000. */
  readonly give_up_ms?: number;
  /**
   * A connection on which nothing comes for this long counts as broken. Replicas send a keep-alive every 15 s.
   * Default 30 000.
   */
  readonly idle_ms?: number;
  /** Wait before the first retry, doubled for every further one that brings no new event. Default 50. */
  readonly backoff_ms?: number;
  /** Longest wait before a retry. Default 2000. */
  readonly backoff_max_ms?: number;
  /** A replica that asks for a longer wait is not waited for any longer than this. Default 10 000. */
  readonly retry_after_max_ms?: number;
  /**
   * Whether a stream that is aborted or cancelled ends the run too. Otherwise the run continues without its client for
   * as long as the server's `resume.detached_ms` allows. Default true.
   */
  readonly cancel_on_abort?: boolean;
}

export type Settings = Required<ResumableOptions>;

/** The longest delay that timers take. */
const TIMER_MS_MAX = 2_147_483_647;
const RETRIES_MAX = 1_000_000;

const DEFAULTS: Omit<Settings, 'fetch'> = {
  endpoints: [],
  max_retries: 8,
  give_up_ms: 120_000,
  idle_ms: 30_000,
  backoff_ms: 50,
  backoff_max_ms: 2_000,
  retry_after_max_ms: 10_000,
  cancel_on_abort: true,
};

/** Completes the options. Throws a `TypeError` that names the one at fault. */
export function readOptions(options: ResumableOptions): Settings {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  // Taken now: looked up at each request, a result that takes the place of the global fetch would call itself.
  const defaults: Settings = { fetch: globalThis.fetch, ...DEFAULTS };
  for (const [name] of given) {
    if (!Object.hasOwn(defaults, name)) {
      throw new TypeError(`unknown option '${name}'; there are ${Object.keys(defaults).join(', ')}`);
    }
  }
  const settings: Settings = { ...defaults, ...Object.fromEntries(given) };
  demand(typeof settings.fetch === 'function', 'fetch', 'a function like the global fetch');
  demand(typeof settings.cancel_on_abort === 'boolean', 'cancel_on_abort', 'true or false');
  demandInteger(settings, 'max_retries', 0, RETRIES_MAX);
  demandInteger(settings, 'give_up_ms', 1, TIMER_MS_MAX);
  demandInteger(settings, 'idle_ms', 1, TIMER_MS_MAX);
  demandInteger(settings, 'backoff_ms', 0, TIMER_MS_MAX);
  demandInteger(settings, 'backoff_max_ms', settings.backoff_ms, TIMER_MS_MAX);
  demandInteger(settings, 'retry_after_max_ms', 0, TIMER_MS_MAX);
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
