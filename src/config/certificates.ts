import { readFileSync } from 'node:fs';
import type { Configuration } from './configuration.ts';
import { ConfigurationError, type Problem } from './problem.ts';

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
