import { isLoopback } from '../lib/host-name.ts';
import { accessDoubts, clientFaults, ownerFaults } from './client-references.ts';
import {
  type CompressionConfiguration,
  type Configuration,
  isClientCredential,
  isKeyed,
  KEY_SETTINGS,
  keySettingOf,
  type RouteConfiguration,
  type TargetConfiguration,
  type TracingConfiguration,
  type UpstreamConfiguration,
} from './configuration.ts';
import { formatPath, type KeyPath } from './key-path.ts';
import { type Problem, suggestion } from './problem.ts';
import { linkFault } from './status-links.ts';
import { webhookFaults } from './webhook-endpoints.ts';

/** Checks that the schema can't express: URLs, names that refer to other keys, numbers that depend on each other. */
export function checkReferences(configuration: Configuration): Problem[] {
  const { upstreams, routes, listen, recovery, breaker, checkpoint, tracing, status_page } = configuration;
  const problems: Problem[] = [];
  const report = (path: (string | number)[], message: string | undefined) => {
    if (message !== undefined) problems.push({ path: formatPath(path), message });
  };

  if (Object.keys(upstreams).length === 0) report(['upstreams'], NO_UPSTREAM);
  for (const [name, upstream] of Object.entries(upstreams)) {
    report(['upstreams', name, 'base_url'], baseUrlFault(upstream) ?? selfFault(upstream, listen));
    report(['upstreams', name, 'proxy'], proxyFault(upstream));
    report(['upstreams', name, 'client_cert_file'], certificateFault(upstream));
    for (const setting of CONNECTION_SETTINGS)
      report(['upstreams', name, setting], connectionFault(setting, upstream, upstreams));
    for (const key of KEY_SETTINGS) report(['upstreams', name, key], keyFault(key, upstream));
    for (const [header, value] of Object.entries(upstream.headers ?? {}))
      report(['upstreams', name, 'headers', header], sentHeaderFault(header, upstream) ?? headerFault(value));
  }
  for (const [index, route] of routes.entries()) {
    for (const [position, target] of route.targets.entries()) {
      const path = ['routes', index, 'targets', position];
      report([...path, 'upstream'], upstreamFault(target, Object.keys(upstreams)));
      report(path, repetitionFault(target, route.targets.slice(0, position)));
    }
    report(['routes', index, 'hedge'], hedgeFault(route));
    if (route.compression) {
      const path = ['routes', index, 'compression'];
      report([...path, 'upstream'], upstreamFault(route.compression, Object.keys(upstreams)));
      report([...path, 'context_tokens'], roomFault(route.compression));
      report(['routes', index, 'targets', 0, 'context_tokens'], shareFault(route));
    }
  }
  problems.push(
    ...clientFaults(configuration),
    ...ownerFaults(configuration),
    ...webhookFaults(configuration),
  );
  if (listen.port !== 0 && listen.port === listen.admin_port) {
    report(['listen', 'admin_port'], 'must differ from listen.port; 0 picks a free one.');
  }
  for (const [index, origin] of listen.cors_origins.entries())
    report(['listen', 'cors_origins', index], originFault(origin));
  if (recovery.backoff_max_ms < recovery.backoff_ms) {
    report(['recovery', 'backoff_max_ms'], 'must not be less than recovery.backoff_ms.');
  }
  if (breaker.open_max_ms < breaker.open_ms) {
    report(['breaker', 'open_max_ms'], 'must not be less than breaker.open_ms.');
  }
  report(['workers'], workersFault(configuration));
  report(['checkpoint', 'store'], storeFault(checkpoint.store));
  report(['checkpoint', 'replication', 'wait_replicas'], replicationFault(checkpoint));
  report(['tracing', 'endpoint'], endpointFault(tracing));
  for (const link of ['trace_url', 'log_url'] as const)
    report(['status_page', link], linkFault(status_page[link]));
  for (const [name, value] of Object.entries(tracing.headers ?? {}))
    report(['tracing', 'headers', name], headerFault(value));
  return problems;
}

export const NO_UPSTREAM =
  'no upstream is configured; pass --upstream https://api.openai.com/v1, set HOLDFAST_UPSTREAM, or add one under "upstreams" in the file.';

function baseUrlFault({ base_url }: UpstreamConfiguration): string | undefined {
  if (!URL.canParse(base_url)) return 'is not a URL; write it in full, like https://api.openai.com/v1.';
  const url = new URL(base_url);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `must be an http: or https: URL, not ${url.protocol}`;
  }
  if (url.username || url.password) return 'must not hold credentials; use api_key.';
  if (url.search || url.hash) return 'must not have a query or a fragment; parameters go under query.';
  return undefined;
}

function proxyFault({ proxy }: UpstreamConfiguration): string | undefined {
  if (proxy === undefined) return undefined;
  const { protocol, pathname, search, hash } = URL.parse(proxy) ?? {};
  if (protocol !== 'http:' && protocol !== 'https:')
    return 'must be an http: or https: URL, like http://proxy.example.com:3128.';
  return pathname === '/' && !search && !hash ? undefined : 'must have nothing after its port.';
}

function certificateFault({ client_cert_file, client_key_file }: UpstreamConfiguration): string | undefined {
  if ((client_cert_file === undefined) === (client_key_file === undefined)) return undefined;
  return `goes together with client_key_file; set ${client_key_file === undefined ? 'that' : 'this'}, too.`;
}

const CONNECTION_SETTINGS = ['proxy', 'ca_file', 'client_cert_file', 'client_key_file'] as const;

/** All upstreams on an origin share its connections. */
function connectionFault(
  setting: (typeof CONNECTION_SETTINGS)[number],
  upstream: UpstreamConfiguration,
  upstreams: Configuration['upstreams'],
): string | undefined {
  const originOf = ({ base_url }: UpstreamConfiguration) => URL.parse(base_url)?.origin;
  const origin = originOf(upstream);
  const [name, first = upstream] =
    Object.entries(upstreams).find(([, one]) => originOf(one) === origin) ?? [];
  if (first[setting] === upstream[setting]) return undefined;
  return `differs from that of upstreams.${name}, which has the same address; make them the same.`;
}

const ANY = /^(0\.0\.0\.0|\[::\])$/;

/** Requests would come back to this server. Other names of this machine are only detected when a request does. */
function selfFault(
  { base_url }: UpstreamConfiguration,
  { host, port }: Configuration['listen'],
): string | undefined {
  const { protocol, hostname, port: named } = new URL(base_url);
  if (protocol !== 'http:' || Number(named || 80) !== port) return undefined;
  const listening = host.includes(':') ? `[${host}]` : host.toLowerCase();
  const isOurs =
    hostname === listening ||
    (ANY.test(listening) && (isLoopback(hostname) || ANY.test(hostname))) ||
    (isLoopback(listening) && (hostname === 'localhost' || ANY.test(hostname))) ||
    (listening === 'localhost' && isLoopback(hostname));
  if (!isOurs) return undefined;
  return `is the address this server listens on (listen.host ${host}, listen.port ${port}): requests would go round in circles; give the provider's, or change listen.port.`;
}

/** Includes origins of browser extensions. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/;

function originFault(origin: string): string | undefined {
  if (!URL.canParse(origin)) return 'is not an origin; write it like https://app.example.com.';
  const { protocol, origin: written } = new URL(origin);
  const isWeb = protocol === 'https:' || protocol === 'http:';
  if (isWeb ? written === origin : ORIGIN.test(origin)) return undefined;
  return `is not an origin as browsers send it; write ${isWeb ? written : 'scheme and name only'}.`;
}

function upstreamFault(
  { upstream }: Pick<TargetConfiguration, 'upstream'>,
  known: readonly string[],
): string | undefined {
  if (known.includes(upstream)) return undefined;
  return `there is no upstream "${upstream}".${suggestion(upstream, known) || ` Known: ${known.join(', ')}.`}`;
}

function hedgeFault({ hedge, targets }: RouteConfiguration): string | undefined {
  if (!hedge) return undefined;
  if (targets.length < 2) return 'needs a second target to ask; add one under targets, or remove this.';
  const { after_ms, stall_ms } = hedge;
  return after_ms === undefined && stall_ms === undefined
    ? 'needs after_ms, stall_ms or both: how long a target may be silent before the next one is asked as well.'
    : undefined;
}

/** The next summary is made from the previous one, so the context must hold several. */
const SUMMARIES_IN_CONTEXT = 4;

function roomFault({ context_tokens, summary_tokens }: CompressionConfiguration): string | undefined {
  const least = SUMMARIES_IN_CONTEXT * summary_tokens;
  if (context_tokens === undefined || context_tokens >= least) return undefined;
  return `must be at least ${least}, ${SUMMARIES_IN_CONTEXT} times summary_tokens, to leave room for what is summarised.`;
}

function shareFault({ targets, compression }: RouteConfiguration): string | undefined {
  if (compression?.at_share === undefined || targets[0]?.context_tokens !== undefined) return undefined;
  return 'is needed for compression.at_share, which is a share of it; say how many tokens the model takes.';
}

function repetitionFault(
  { upstream, model }: TargetConfiguration,
  before: readonly TargetConfiguration[],
): string | undefined {
  const same = before.findIndex((target) => target.upstream === upstream && target.model === model);
  if (same === -1) return undefined;
  return `is the same as targets[${same}]; remove it, or give it another model (recovery.same_target_retries says how often a target is asked again).`;
}

function endpointFault({ endpoint }: TracingConfiguration): string | undefined {
  if (endpoint === undefined) return undefined;
  const { protocol, username, password } = URL.parse(endpoint) ?? {};
  if (protocol !== 'https:' && protocol !== 'http:')
    return 'must be an http: or https: URL, like http://collector:4318.';
  return username || password ? 'must not hold credentials; use tracing.headers.' : undefined;
}

/** Headers that belong to a connection or describe the body. */
const OWN_HEADER =
  /^(accept-encoding|connection|content-(encoding|length|type)|cookie|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|via|(holdfast|proxy)-.*)$/i;

function sentHeaderFault(name: string, upstream: UpstreamConfiguration): string | undefined {
  if (OWN_HEADER.test(name)) return 'cannot be configured: Holdfast sets it, or leaves it out; remove it.';
  const key = keySettingOf(upstream);
  if (key === 'headers' || !isClientCredential(name)) return undefined;
  return `is a credential beside ${key}; keep one of the two.`;
}

function keyFault(name: (typeof KEY_SETTINGS)[number], upstream: UpstreamConfiguration): string | undefined {
  const key = keySettingOf(upstream);
  if (upstream[name] === undefined || name === key) return undefined;
  return `is set beside ${key}; keep one of the two.`;
}

function headerFault(value: string): string | undefined {
  return /[^\t\x20-\x7e\x80-\xff]/.test(value)
    ? 'must not have line breaks or control characters.'
    : undefined;
}

function storeFault(store: string): string | undefined {
  if (store === 'memory' || store === 'file') return undefined;
  if (/^file:./.test(store) || /^rediss?(\+sentinel|\+cluster)?:\/\/./.test(store)) return undefined;
  return 'must be memory, file, file:DIR like file:./data, or a URL of Redis, like redis://localhost:6379/0.';
}

/** A process can't take over what exists only in another's memory. */
function workersFault({ workers, checkpoint }: Configuration): string | undefined {
  if (workers === 1 || checkpoint.store !== 'memory') return undefined;
  return 'must be 1 where checkpoint.store is memory, which processes cannot share; use file or Redis (--store file).';
}

function replicationFault({ store, replication }: Configuration['checkpoint']): string | undefined {
  if (replication.wait_replicas === 0 || /^rediss?(\+sentinel)?:/.test(store)) return undefined;
  return 'must be 0, unless checkpoint.store is one Redis server, redis://, or known to Sentinel, redis+sentinel://.';
}

/** Warnings about settings that work, but probably not as intended. */
export const doubts = (configuration: Configuration): string[] => [
  ...accessDoubts(configuration),
  ...targetDoubts(configuration),
];

const targetDoubts = ({ upstreams, routes }: Configuration): string[] => [
  ...Object.entries(upstreams).flatMap(([name, upstream]) => pathDoubt(name, upstream)),
  ...routes.flatMap(({ targets }, index) => credentialDoubts(targets, ['routes', index], upstreams)),
  ...routes.flatMap((route, index) => summaryDoubts(route, ['routes', index], upstreams)),
];

function pathDoubt(name: string, { base_url }: UpstreamConfiguration): string[] {
  if (new URL(base_url).pathname !== '/') return [];
  return [
    `upstreams.${name}.base_url: ${base_url} has no path; most providers serve the API under /v1, like ${new URL('/v1', base_url)}.`,
  ];
}

/** A provider must not receive another's keys by mistake. Servers without TLS count as the operator's own. */
function credentialDoubts(
  targets: readonly TargetConfiguration[],
  route: KeyPath,
  upstreams: Configuration['upstreams'],
): string[] {
  const passed = targets.flatMap(({ upstream: name }, position) => {
    const origin = passedTo(upstreams[name]);
    return origin === undefined ? [] : [{ name, position, origin }];
  });
  const [first, ...others] = passed;
  return others
    .filter(({ origin }) => origin !== first?.origin)
    .map(({ name, position }) => {
      const path = formatPath([...route, 'targets', position]);
      return `${path}: the client's own credential goes to ${first?.name} and, when that fails, to ${name}; configure upstreams.${name}.api_key unless both are to have it.`;
    });
}

/** The same check for the summarising upstream. */
function summaryDoubts(
  { targets, compression }: RouteConfiguration,
  route: KeyPath,
  upstreams: Configuration['upstreams'],
): string[] {
  const name = compression?.upstream ?? '';
  const origin = passedTo(upstreams[name]);
  if (origin === undefined || targets.some(({ upstream }) => passedTo(upstreams[upstream]) === origin))
    return [];
  const path = formatPath([...route, 'compression']);
  return [
    `${path}: the client's own credential goes to ${name} for summaries, and to no target there; configure upstreams.${name}.api_key unless ${name} is to have it.`,
  ];
}

/** The third-party server that receives the client's own credential, if any. */
function passedTo(upstream: UpstreamConfiguration | undefined): string | undefined {
  if (!upstream || isKeyed(upstream) || !upstream.base_url.startsWith('https:')) return undefined;
  return new URL(upstream.base_url).origin;
}
