import { FileStore, prepareDirectory } from '../checkpoint/file/file-store.ts';
import { MemoryStore } from '../checkpoint/memory/store.ts';
import { isRedisUrl, parseRedisUrl } from '../checkpoint/redis/address.ts';
import type { ReplicationSettings } from '../checkpoint/redis/replication.ts';
import { createProofs, createSeal, type Seal } from '../checkpoint/seal.ts';
import { loadOrCreateSecret } from '../checkpoint/secret-file.ts';
import { type Store, StoreConfigurationError } from '../checkpoint/store.ts';
import type { Time } from '../lib/time.ts';
import { fileStoreDirectory } from './store-directory.ts';

export interface OpenStoreOptions {
  readonly time: Time;
  /** How long a run is kept after its last append. */
  readonly ttl_s: number;
  /** How long a complete run is kept, if shorter. */
  readonly complete_ttl_s?: number | undefined;
  /** A replica counts as dead after this long without a sign of life. */
  readonly lease_ms: number;
  /** The first key seals; all of them open. Without any, data is only proven. Not needed by a memory store. */
  readonly sealing_keys: readonly string[];
  /** Proves stored data if there are no sealing keys. Redis requires it; a file store can keep its own. */
  readonly secret: string | undefined;
  /** What to do with stored data without a proof. Default `refuse`. */
  readonly unproven?: 'refuse' | 'accept';
  /** Redis only: whether an unreachable store is an error, or is opened anyway. */
  readonly on_unreachable: 'fail' | 'warn';
  /** Redis only: an unanswered command fails after this time. Default 1000. */
  readonly command_ms?: number;
  /** Redis only: how many bytes of each running run's stored entries are kept in memory, to write them again. */
  readonly rewritable_bytes?: number;
  /** Redis only: how many of its replicas must have a lease before it counts, and how long that may take. */
  readonly replication?: ReplicationSettings;
  /** Receives damaged runs, unreadable notes, and failures of the store's upkeep. */
  onError(error: Error): void;
  /** Redis only: called once when it stops working for this process; `onRecovery` once when it works again. */
  onOutage(error: Error): void;
  onRecovery(outage_ms: number): void;
  /** Redis only: called once for each way in which its configuration may lose acknowledged writes. */
  onDoubt?(doubt: string): void;
}

/**
 * Opens `memory`, `file`, `file:<directory>` (relative to the working directory) or a Redis URL. Rejects with a {@link
 * StoreConfigurationError} for any other value, and for an unusable directory or Redis.
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const { time, lease_ms, onError } = options;
  const { ttl_s, complete_ttl_s = ttl_s } = options;
  const kept = { ttl_ms: ttl_s * 1000, complete_ttl_ms: Math.min(ttl_s, complete_ttl_s) * 1000 };
  if (url === 'memory') return new MemoryStore({ time, ...kept });
  if (isRedisUrl(url)) return openRedisStore(url, options, kept);
  const dir = fileStoreDirectory(url);
  if (dir !== undefined) {
    prepareDirectory(dir);
    const seal = sealOf(options, options.secret ?? (await loadOrCreateSecret(dir)));
    const store = new FileStore({ dir, ...kept, lease_ms, seal, onError });
    await store.start();
    return store;
  }
  // The value may contain a password.
  const shown = url.includes('@') ? url.slice(0, url.indexOf(':') + 1) : url;
  throw new StoreConfigurationError(
    `checkpoint.store: ${JSON.stringify(shown)} is not a store; use "memory", "file", "file:<directory>" or "redis://<host>"`,
  );
}

async function openRedisStore(
  url: string,
  options: OpenStoreOptions,
  kept: { readonly ttl_ms: number; readonly complete_ttl_ms: number },
): Promise<Store> {
  const { secret, on_unreachable } = options;
  // Replicas with different secrets wouldn't recognise the owners of each other's runs or trust each other's data.
  if (secret === undefined)
    throw new StoreConfigurationError(
      'secret: replicas that share a Redis need the same one; configure `secret` or set HOLDFAST_SECRET',
    );
  const seal = sealOf(options, secret);
  const address = parseRedisUrl(url);
  // Imported on demand, because the other stores don't need the Redis client.
  const { RedisStore } = await import('../checkpoint/redis/store.ts');
  const store = new RedisStore({
    address,
    ...options,
    ...kept,
    seal,
  });
  await store.start({ required: on_unreachable === 'fail' });
  return store;
}

/** With sealing keys, the secret proves nothing: a file store's secret may be stored beside the data. */
function sealOf({ sealing_keys, unproven }: OpenStoreOptions, secret: string): Seal {
  const acceptsUnproven = unproven === 'accept';
  return sealing_keys.length > 0
    ? createSeal(sealing_keys, acceptsUnproven)
    : createProofs(secret, acceptsUnproven);
}
