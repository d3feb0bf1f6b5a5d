import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isRedisUrl } from '../checkpoint/redis/address.ts';
import type { Configuration } from '../config/configuration.ts';
import { loopGuard } from '../proxy/upstream/headers.ts';
import { fileStoreDirectory } from '../server/open-store.ts';
import { examineDirectory } from './file-store.ts';
import { type Finding, Findings } from './finding.ts';

/** Where runs will be kept. */
export async function examineStore(configuration: Configuration): Promise<Finding[]> {
  const { store } = configuration.checkpoint;
  const findings = new Findings('store');
  const directory = fileStoreDirectory(store);
  if (directory !== undefined) await examineDirectory(findings, directory);
  else if (isRedisUrl(store)) {
    // Loaded late: the other stores do without the client.
    const { examineRedis } = await import('./redis.ts');
    await examineRedis(findings, configuration);
  } else
    findings.warn(
      'durability',
      'runs are kept in the memory of the process and end with it',
      'configure checkpoint.store, file:DIR or redis://HOST, for anything but a trial.',
    );
  examineSecret(findings, configuration);
  return findings.all;
}

const OTHERS = 0o077;

/** Whether replicas will know the owners of each other's runs. */
function examineSecret(findings: Findings, { secret, checkpoint }: Configuration): Finding {
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

/** What a deployment calls itself upstream in any case: it reveals nothing of the secret. */
function deploymentName(secret: string): string {
  const headers: { via?: string } = {};
  loopGuard(secret)(headers);
  return headers.via?.split(' ').at(-1) ?? '';
}
