import type { Configuration } from './configuration.ts';
import { ConfigurationError, type Problem } from './problem.ts';
import { readFileOf } from './text-file.ts';

/** Checks that every `api_key_file` is readable. Throws {@link ConfigurationError}. */
export function checkKeyFiles({ upstreams }: Pick<Configuration, 'upstreams'>): void {
  const problems: Problem[] = [];
  for (const [name, { api_key_file }] of Object.entries(upstreams)) {
    if (api_key_file !== undefined) readFileOf(`upstreams.${name}.api_key_file`, api_key_file, problems);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
}
