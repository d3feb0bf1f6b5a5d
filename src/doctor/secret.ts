import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isRedisUrl } from '../checkpoint/redis/address.ts';
import type { Configuration } from '../config/configuration.ts';
import { loopGuard } from '../proxy/upstream/loop-guard.ts';
import { fileStoreDirectory } from '../server/open-store.ts';
import type { Finding, Findings } from './finding.ts';

const OTHERS = 0o077;

/** Whether replicas will know the owners of each other's runs. */
export function examineSecret(findings: Findings, { secret, checkpoint }: Configuration): Finding {
  const directory = fileStoreDirectory(checkpoint.store);
  if (secret !== undefined) {
    const name = deploymentName(secret);
    return findings.ok('secret', `configured; replicas that have the same show the same name here: ${name}`, {
      deployment: name,
    });
  }
  if (isRedisUrl(checkpoint.store))
    return findings.fail(
      'secret',
      'none is configured, and replicas that share a Redis need the same one',
      'set HOLDFAST_SECRET, the same for all replicas, e.g. to the output of `openssl rand -base64 32`.',
    );
  if (directory === undefined)
    return findings.ok('secret', 'none is configured; one is made that lasts as long as the memory store');
  return examineSecretFile(findings, join(directory, 'secret'));
}

function examineSecretFile(findings: Findings, path: string): Finding {
  if (!existsSync(path))
    return findings.ok('secret', `none is configured; serve makes one and keeps it in ${path}`);
  const { mode } = statSync(path);
  if ((mode & OTHERS) === 0) return findings.ok('secret', `kept in ${path}, for this user alone`);
  return findings.warn(
    'secret',
    `${path} can be read by others (mode ${(mode & 0o777).toString(8)})`,
    `chmod 600 ${path}`,
  );
}

/** What a deployment calls itself upstream in any case: nothing of the secret can be told from it. */
function deploymentName(secret: string): string {
  const headers: { via?: string } = {};
  loopGuard(secret)(headers);
  return headers.via?.split(' ').at(-1) ?? '';
}
