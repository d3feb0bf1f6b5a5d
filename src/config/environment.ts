import { type Assignment, scalarPaths } from './key-path.ts';
import { suggestion } from './problem.ts';

const PREFIX = 'HOLDFAST_';
/** Names the configuration file; not a key of the configuration. */
export const CONFIG_VARIABLE = 'HOLDFAST_CONFIG';
/** Server and key for the operator commands; not keys of the configuration either. */
const OPERATOR_VARIABLES: ReadonlySet<string> = new Set([
  'HOLDFAST_ADMIN_URL',
  'HOLDFAST_API_URL',
  'HOLDFAST_API_KEY',
]);

/** The key set by `--upstream` and `HOLDFAST_UPSTREAM`. */
export const DEFAULT_UPSTREAM = ['upstreams', 'default', 'base_url'] as const;

/** Short names for common settings, besides the systematic `HOLDFAST_<SECTION>_<KEY>`. */
const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  HOLDFAST_HOST: ['listen', 'host'],
  HOLDFAST_PORT: ['listen', 'port'],
  HOLDFAST_ADMIN_HOST: ['listen', 'admin_host'],
  HOLDFAST_ADMIN_PORT: ['listen', 'admin_port'],
  HOLDFAST_UPSTREAM: DEFAULT_UPSTREAM,
  HOLDFAST_STORE: ['checkpoint', 'store'],
};

/** Variable name → key, for every key with a single value. */
export const ENVIRONMENT_KEYS: ReadonlyMap<string, readonly string[]> = new Map([
  ...Object.entries(SHORT_NAMES),
  ...scalarPaths().map((path) => [PREFIX + path.join('_').toUpperCase(), path] as const),
]);

/**
 * Kubernetes sets such variables in every pod if there is a Service named `holdfast`:
 * `HOLDFAST_PORT=tcp://10.0.0.1:80`, `HOLDFAST_SERVICE_HOST`, `HOLDFAST_PORT_80_TCP_ADDR`. They aren't configuration.
 */
const isServiceLink = (name: string, value: string): boolean =>
  /_SERVICE_(HOST|PORT)(_|$)/.test(name) ||
  /_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) ||
  (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value));

/** Assignments of known `HOLDFAST_*` variables, and the names of unknown ones. An empty value counts as unset. */
export function readEnvironment(environment: NodeJS.ProcessEnv): {
  assignments: Assignment[];
  unknown: string[];
} {
  const assignments: Assignment[] = [];
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || name === CONFIG_VARIABLE || !value || isServiceLink(name, value))
      continue;
    if (OPERATOR_VARIABLES.has(name)) continue;
    const path = ENVIRONMENT_KEYS.get(name);
    if (path) assignments.push({ path, text: value, source: name });
    else unknown.push(name);
  }
  return { assignments, unknown };
}

export const unknownVariable = (name: string): string =>
  `${name}: unknown environment variable, ignored.${suggestion(name, ENVIRONMENT_KEYS.keys())}`;
