import type { Configuration } from './configuration.ts';
import { ConfigurationError, type Problem } from './problem.ts';
import { readTextFile } from './text-file.ts';

/** Checks that every `api_key_file` can be read. Throws {@link ConfigurationError}. */
export function checkKeyFiles({ upstreams }: Pick<Configuration, 'upstreams'>): void {
  const problems: Problem[] = [];
  for (const [name, { api_key_file }] of Object.entries(upstreams)) {
    try {
      if (api_key_file !== undefined) readTextFile(api_key_file);
    } catch (error) {
      problems.push({ path: `upstreams.${name}.api_key_file`, message: (error as Error).message });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
}
