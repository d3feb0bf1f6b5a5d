import { readFileSync } from 'node:fs';
import { isObject } from '../lib/json.ts';
import type { Configuration } from './configuration.ts';
import { CONFIG_VARIABLE, DEFAULT_UPSTREAM, readEnvironment, unknownVariable } from './environment.ts';
import { readConfigurationFile } from './file.ts';
import { type Assignment, assign, formatPath, type Sources } from './key-path.ts';
import { ConfigurationError, type Problem } from './problem.ts';
import { checkReferences, doubts, NO_UPSTREAM } from './references.ts';
import { validateTree } from './validation.ts';

export interface ConfigurationSources {
  /** Path of the YAML file; `HOLDFAST_CONFIG` when absent, none when that is absent too. */
  readonly file?: string | undefined;
  /** Values of command line flags. */
  readonly flags?: readonly Assignment[];
  readonly environment: NodeJS.ProcessEnv;
}

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** Nothing that prevents a start: unknown variables, values that look wrong. */
  readonly warnings: readonly string[];
}

/** Flags win over the environment, which wins over the file, which wins over defaults. Throws {@link ConfigurationError}. */
export function loadConfiguration(from: ConfigurationSources): LoadedConfiguration {
  const file = from.file ?? (from.environment[CONFIG_VARIABLE] || undefined);
  const document = file === undefined ? undefined : readConfigurationFile(file, from.environment);
  const environment = readEnvironment(from.environment);

  let tree: unknown = document?.tree ?? {};
  const sources: Sources = new Map(document?.sources);
  for (const { path, text, source } of [...environment.assignments, ...(from.flags ?? [])]) {
    tree = assign(tree, path, text);
    sources.set(formatPath(path), source);
    if (path === DEFAULT_UPSTREAM) tree = withDefaultFirst(tree);
  }

  const configuration = completeConfiguration(tree, sources);
  const unknown = environment.unknown.filter((name) => !document?.variables.has(name));
  return { configuration, warnings: [...unknown.map(unknownVariable), ...doubts(configuration)] };
}

/** Checks what was merged and fills in what was left out. Throws {@link ConfigurationError}. */
export function completeConfiguration(tree: unknown, sources: Sources = new Map()): Configuration {
  const problems = validateTree(tree).map((problem) =>
    problem.path === 'upstreams' ? { ...problem, message: NO_UPSTREAM } : problem,
  );
  if (problems.length > 0) throw new ConfigurationError(located(problems, sources));
  // What satisfies the schema is of the type that is derived from it.
  const configuration = tree as Configuration;
  const faults = checkReferences(configuration);
  if (faults.length > 0) throw new ConfigurationError(located(faults, sources));
  return configuration;
}

/** An upstream that was named outside the file is meant to be used: without routes, the first one is. */
function withDefaultFirst(tree: unknown): unknown {
  if (!isObject(tree) || !isObject(tree.upstreams)) return tree;
  const { default: preferred, ...others } = tree.upstreams;
  return { ...tree, upstreams: { default: preferred, ...others } };
}

/** With the place of the key itself, or of the nearest section around it that has one. */
function located(problems: readonly Problem[], sources: Sources): Problem[] {
  return problems.map((problem) => {
    for (let path = problem.path; path !== ''; path = path.replace(/[.[][^.[]*$|^[^.[]*$/, '')) {
      const source = sources.get(path);
      if (source !== undefined) return { ...problem, source };
    }
    return problem;
  });
}

/** PEM of the certificate authority to trust besides the system's, by origin of the upstream. */
export type CertificateAuthorities = Readonly<Record<string, string>>;

/** Reads every `ca_file`. Throws {@link ConfigurationError}. */
export function readCertificateAuthorities({
  upstreams,
}: Pick<Configuration, 'upstreams'>): CertificateAuthorities {
  const authorities: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const [name, { base_url, ca_file }] of Object.entries(upstreams)) {
    if (ca_file === undefined) continue;
    try {
      authorities[new URL(base_url).origin] = readFileSync(ca_file, 'utf8');
    } catch (error) {
      const message = `${ca_file} cannot be read (${(error as NodeJS.ErrnoException).code}).`;
      problems.push({ path: `upstreams.${name}.ca_file`, message });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return authorities;
}
