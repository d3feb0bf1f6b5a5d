import { DEFAULT_UPSTREAM } from '../config/environment.ts';
import type { Assignment } from '../config/key-path.ts';
import { CONFIGURATION_SCHEMA } from '../config/schema.ts';
import type { OptionDescription } from './command.ts';

/** Flags that set a configuration key, by name. */
const CONFIGURATION_FLAGS = {
  upstream: DEFAULT_UPSTREAM,
  port: ['listen', 'port'],
  host: ['listen', 'host'],
  'admin-port': ['listen', 'admin_port'],
  'admin-host': ['listen', 'admin_host'],
  store: ['checkpoint', 'store'],
  workers: ['workers'],
  'log-level': ['log', 'level'],
  'log-format': ['log', 'format'],
} as const;

const LOG = CONFIGURATION_SCHEMA.properties.log.properties;

/** Options of `serve` and of every other command that loads the configuration. */
export const CONFIGURATION_OPTIONS: readonly OptionDescription[] = [
  { name: 'upstream', value: 'URL', says: 'where the API lives, e.g. https://api.openai.com/v1' },
  { name: 'port', value: 'PORT', says: 'API port (8080); 0 picks a free one' },
  { name: 'host', value: 'HOST', says: 'address to listen on (127.0.0.1)' },
  {
    name: 'admin-port',
    value: 'PORT',
    says: 'port of /metrics, /livez, /readyz and the status page (9090)',
  },
  { name: 'admin-host', value: 'HOST', says: 'address of the admin port, if not the same as --host' },
  {
    name: 'store',
    value: 'STORE',
    says: 'memory, file, file:DIR or redis://HOST (file)',
    completes: ['memory', 'file', 'file:', 'redis://'],
  },
  {
    name: 'workers',
    value: 'N',
    says: 'processes that share the ports, or auto: one for each core (1)',
    completes: ['auto'],
  },
  {
    name: 'log-level',
    value: 'LEVEL',
    says: 'lowest level to log (info)',
    completes: LOG.level.enum,
  },
  {
    name: 'log-format',
    value: 'FORMAT',
    says: 'auto, json or pretty (auto)',
    completes: LOG.format.enum,
  },
  { name: 'config', value: 'FILE', says: 'YAML file; see docs/configuration.md', completes: 'file' },
] satisfies readonly (OptionDescription & { name: keyof typeof CONFIGURATION_FLAGS | 'config' })[];

export const assignmentsOf = (values: Readonly<Record<string, string | undefined>>): Assignment[] =>
  Object.entries(CONFIGURATION_FLAGS).flatMap(([name, path]): Assignment[] => {
    const text = values[name];
    return text === undefined ? [] : [{ path, text, source: `--${name}` }];
  });

export const JSON_OPTION: OptionDescription = { name: 'json', says: 'print one JSON document' };
export const JSON_LINES_OPTION: OptionDescription = { name: 'json', says: 'print a line of JSON per event' };

export const DEFAULT_ADMIN_URL = 'http://127.0.0.1:9090';
export const DEFAULT_API_URL = 'http://127.0.0.1:8080';

export const ADMIN_OPTION: OptionDescription = {
  name: 'admin',
  value: 'URL',
  says: `admin port of the replica (HOLDFAST_ADMIN_URL, else ${DEFAULT_ADMIN_URL})`,
};

/**
 * Options that identify a run's owner. The key is never an argument, because every user of the machine can see those.
 */
export const OWNER_OPTIONS: readonly OptionDescription[] = [
  {
    name: 'api',
    value: 'URL',
    says: `API port of any replica (HOLDFAST_API_URL, else ${DEFAULT_API_URL})`,
  },
  {
    name: 'key-file',
    value: 'FILE',
    says: "file with the owner's API key, - for standard input (else HOLDFAST_API_KEY)",
    completes: 'file',
  },
  { name: 'anonymous', says: 'the run has no API key' },
];
