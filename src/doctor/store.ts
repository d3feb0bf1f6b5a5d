import { isRedisUrl } from '../checkpoint/redis/address.ts';
import type { Configuration } from '../config/configuration.ts';
import { fileStoreDirectory } from '../server/open-store.ts';
import { examineDirectory } from './file-store.ts';
import { type Finding, Findings } from './finding.ts';
import { examineSecret } from './secret.ts';

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
