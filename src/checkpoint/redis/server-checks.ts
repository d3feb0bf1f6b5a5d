import { Cluster, type Redis } from 'ioredis';
import { StoreConfigurationError } from '../store.ts';
import type { RedisClient } from './client.ts';
import { REPLICAS_KEYS } from './keys.ts';

/** The first version with `SET … NX GET`. Valkey reports the version of Redis that it is compatible with. */
const VERSION_MIN = 7;

/** Rejects if the server is too old. Accepts a server that doesn't report its version. */
export async function requireVersion(name: string, client: RedisClient): Promise<void> {
  const information = await client.info('server').catch(() => '');
  const version = fieldOf(information, 'redis_version');
  if (version === undefined || Number.parseInt(version, 10) >= VERSION_MIN) return;
  throw new StoreConfigurationError(
    `checkpoint.store: ${name} has version ${version}; use Redis ${VERSION_MIN} or later, or Valkey`,
  );
}

/** Rejects if the server belongs to a cluster but the client isn't a cluster client. */
export async function requireAllKeys(client: RedisClient): Promise<void> {
  if (!(client instanceof Cluster)) await Promise.all(REPLICAS_KEYS.map((key) => client.exists(key)));
}

/** The currently known servers that accept writes. */
export const serversOf = (client: RedisClient): Redis[] =>
  client instanceof Cluster ? client.nodes('master') : [client];

/** The value of one `INFO` field. */
export const fieldOf = (information: string, field: string): string | undefined =>
  new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(information)?.[1];

/** Undefined if the server doesn't reveal the setting, as with many managed ones. */
export async function settingOf(server: Redis, name: string): Promise<string | undefined> {
  const reply = await server.config('GET', name).catch(() => []);
  const value = (reply as readonly unknown[])[1];
  return value === undefined ? undefined : String(value);
}

/** Ways in which the servers' configuration may lose acknowledged writes, without duplicates. Never rejects. */
export async function durabilityDoubts(client: RedisClient): Promise<readonly string[]> {
  const doubts = await Promise.all(serversOf(client).map(doubtsOf));
  return [...new Set(doubts.flat())];
}

async function doubtsOf(server: Redis): Promise<string[]> {
  const information = await server.info().catch(() => '');
  const policy = fieldOf(information, 'maxmemory_policy') ?? (await settingOf(server, 'maxmemory-policy'));
  const keepsFile = fieldOf(information, 'aof_enabled') ?? (await settingOf(server, 'appendonly'));
  const replicas = Number(fieldOf(information, 'connected_slaves') ?? 0);
  const doubts: string[] = [];
  if (policy !== undefined && policy !== 'noeviction')
    doubts.push(`maxmemory-policy is ${policy}: a full Redis evicts runs that are under way; set noeviction`);
  if (keepsFile === '0' || keepsFile === 'no')
    doubts.push(
      'appendonly is no: a restart of Redis loses what it has stored since its last snapshot; set yes',
    );
  if (replicas > 0 && (await settingOf(server, 'min-replicas-to-write')) === '0')
    doubts.push(
      'min-replicas-to-write is 0: a master that is cut off from its replicas takes writes that a failover loses; set 1',
    );
  return doubts;
}
