import { hash } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { isObject } from '../lib/json.ts';
import type { Configuration } from './configuration.ts';
import { CONFIG_VARIABLE, DEFAULT_UPSTREAM, readEnvironment, unknownVariable } from './environment.ts';
import { readConfigurationFile } from './file.ts';
import { type Assignment, assign, formatPath, type Sources } from './key-path.ts';
import { ConfigurationError, type Problem } from './problem.ts';
import { checkReferences, doubts, NO_UPSTREAM } from './references.ts';
import { readFileOf } from './text-file.ts';
import { validateTree } from './validation.ts';

export interface ConfigurationSources {
  /** Path of the YAML file. Defaults to `HOLDFAST_CONFIG`; without either, no file is read. */
  readonly file?: string | undefined;
  /** Values of command-line flags. */
  readonly flags?: readonly Assignment[];
  readonly environment: NodeJS.ProcessEnv;
}

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** Problems that don't prevent a start: unknown variables, suspicious values. */
  readonly warnings: readonly string[];
}

/** The configuration's file, if any. */
export const configurationFile = ({ file, environment }: ConfigurationSources): string | undefined =>
  file ?? (environment[CONFIG_VARIABLE] || undefined);

/** An additional check of a configuration that matches the schema. Throws {@link ConfigurationError}. */
type Check = (configuration: Configuration) => unknown;

/**
 * Flags override the environment, which overrides the file, which overrides defaults. `checks`: run together with the
 * reference checks. Throws {@link ConfigurationError}.
 */
export function loadConfiguration(
  from: ConfigurationSources,
  checks: readonly Check[] = [],
): LoadedConfiguration {
  const file = configurationFile(from);
  const document = file === undefined ? undefined : readConfigurationFile(file, from.environment);
  const environment = readEnvironment(from.environment);

  let tree: unknown = document?.tree ?? {};
  const sources: Sources = new Map(document?.sources);
  for (const { path, text, source } of [...environment.assignments, ...(from.flags ?? [])]) {
    tree = assign(tree, path, text);
    sources.set(formatPath(path), source);
    if (path === DEFAULT_UPSTREAM) tree = withDefaultFirst(tree);
  }

  const configuration = completeConfiguration(tree, sources, document?.problems, checks);
  const unknown = environment.unknown.filter((name) => !document?.variables.has(name));
  return { configuration, warnings: [...unknown.map(unknownVariable), ...doubts(configuration)] };
}

/**
 * Validates the merged tree and fills in defaults. `unexpanded`: problems that are already known and needn't be
 * reported twice. Throws {@link ConfigurationError}.
 */
export function completeConfiguration(
  tree: unknown,
  sources: Sources = new Map(),
  unexpanded: readonly Problem[] = [],
  checks: readonly Check[] = [],
): Configuration {
  const invalid = validateTree(tree).map((problem) =>
    problem.path === 'upstreams' ? { ...problem, message: NO_UPSTREAM } : problem,
  );
  // The type is derived from the schema, so valid data has it.
  const configuration = tree as Configuration;
  const found =
    invalid.length > 0
      ? invalid
      : [...checkReferences(configuration), ...checks.flatMap((check) => problemsOf(check, configuration))];
  const more = found.filter(({ path }) => unexpanded.every((known) => known.path !== path));
  const problems = [...unexpanded, ...located(more, sources)];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return configuration;
}

function problemsOf(check: Check, configuration: Configuration): readonly Problem[] {
  try {
    check(configuration);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems;
  }
}

/**
 * An upstream named outside the file is meant to be used. Without routes the first one serves, so it moves to the
 * front.
 */
function withDefaultFirst(tree: unknown): unknown {
  if (!isObject(tree) || !isObject(tree.upstreams)) return tree;
  const { default: preferred, ...others } = tree.upstreams;
  return { ...tree, upstreams: { default: preferred, ...others } };
}

/** Adds the position of the key, or of the nearest enclosing section with a known one. */
function located(problems: readonly Problem[], sources: Sources): Problem[] {
  return problems.map((problem) => {
    for (let path = problem.path; path !== ''; path = path.replace(/[.[][^.[]*$|^[^.[]*$/, '')) {
      const source = sources.get(path);
      if (source !== undefined) return { ...problem, source };
    }
    return problem;
  });
}

/** How to connect to an origin. */
export interface ConnectionSettings {
  /** The trusted authorities and the client certificate. */
  readonly secure?: SecureContext;
  /** The files that `secure` was made from: for each setting, the path and a digest of the content. */
  readonly files?: Readonly<Record<string, string>>;
  /** URL of the HTTP proxy. If absent, the environment may name one. */
  readonly proxy?: string;
}

/** Connection settings of the upstreams by origin. Reads certificates and keys. Throws {@link ConfigurationError}. */
export function readConnections({
  upstreams,
}: Pick<Configuration, 'upstreams'>): Readonly<Record<string, ConnectionSettings>> {
  const connections: Record<string, ConnectionSettings> = {};
  const problems: Problem[] = [];
  for (const [name, { base_url, proxy, ...files }] of Object.entries(upstreams)) {
    const pem: Partial<Record<(typeof PEM_FILES)[number], string>> = {};
    for (const setting of PEM_FILES) {
      const path = files[setting];
      const text =
        path === undefined ? undefined : readFileOf(`upstreams.${name}.${setting}`, path, problems);
      if (text !== undefined) pem[setting] = text;
    }
    const { ca_file: ca, client_cert_file: cert, client_key_file: key } = pem;
    try {
      const secure = (ca !== undefined || cert !== undefined) && secureContext(ca, cert, key);
      connections[new URL(base_url).origin] = {
        ...(secure && { secure }),
        files: Object.fromEntries(
          Object.entries(pem).map(([setting, text]) => [
            setting,
            `${files[setting as keyof typeof pem]} ${hash('sha256', text)}`,
          ]),
        ),
        ...(proxy !== undefined && { proxy }),
      };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const written = PEM_FILES.filter((setting) => pem[setting] !== undefined);
      const message = `is not PEM, or does not go with the others (${code}).`;
      problems.push({ path: `upstreams.${name}: ${written.join(', ')}`, message });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return connections;
}

const PEM_FILES = ['ca_file', 'client_cert_file', 'client_key_file'] as const;

/** Created once for all connections, because parsing the system's authorities each time would take milliseconds. */
export const secureContext = (ca?: string, cert?: string, key?: string): SecureContext =>
  createSecureContext({
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
