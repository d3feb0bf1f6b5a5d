import { FileStore, prepareDirectory } from '../checkpoint/file/file-store.ts';
import type { FsyncPolicy } from '../checkpoint/file/segment-log.ts';
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
  /** The same of a complete run, where that is less. */
  readonly complete_ttl_s?: number | undefined;
  /** Without a sign of life for this long, a replica counts as dead. */
  readonly lease_ms: number;
  /** The first seals, all of them open; without any, what is stored is only proven. A memory store does not need them. */
  readonly sealing_keys: readonly string[];
  /** Proves what is stored, where there are no sealing keys. Redis requires it; a file store keeps one of its own. */
  readonly secret: string | undefined;
  /** What is stored without a proof. Default `refuse`. */
  readonly unproven?: 'refuse' | 'accept';
  /** Redis only: whether a store that cannot be reached is an error, or opened all the same. */
  readonly on_unreachable: 'fail' | 'warn';
  /** Redis only: a command that was not answered for so long has failed. Default 1000. */
  readonly command_ms?: number;
  /** Redis only: what is kept of what was stored of each run under way, to store it again. */
  readonly rewritable_bytes?: number;
  /** Redis only: how many of its replicas have to have a lease before it counts, and how long that may take. */
  readonly replication?: ReplicationSettings;
  /** File store only: when written data is forced to the disk. Default `finish`. */
  readonly fsync?: FsyncPolicy;
  /** Damaged runs that were read, notes that cannot be, and failures of the store's own upkeep. */
  onError(error: Error): void;
  /** Redis only: once when it stops working for this process, and once when it works again. */
  onOutage(error: Error): void;
  onRecovery(outage_ms: number): void;
  /** Redis only: once, about every way in which it is set up to lose what it has acknowledged. */
  onDoubt?(doubt: string): void;
}

/**
 * Opens `memory`, `file`, `file:<directory>` (relative to the working directory) or a URL of Redis. Rejects with a
 * {@link StoreConfigurationError} for any other value, and for a directory or a Redis that cannot be used.
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const { time, fsync = 'finish', lease_ms, onError } = options;
  const { ttl_s, complete_ttl_s = ttl_s } = options;
  const kept = { ttl_ms: ttl_s * 1000, complete_ttl_ms: Math.min(ttl_s, complete_ttl_s) * 1000 };
  if (url === 'memory') return new MemoryStore({ time, ...kept });
  if (isRedisUrl(url)) return openRedisStore(url, options, kept);
  const dir = fileStoreDirectory(url);
  if (dir !== undefined) {
    prepareDirectory(dir);
    const seal = sealOf(options, options.secret ?? (await loadOrCreateSecret(dir)));
    const store = new FileStore({ dir, fsync, ...kept, lease_ms, seal, onError });
    await store.start();
    return store;
  }
  // It may hold a password.
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
  // Replicas that made one each would not recognise the owners of each other's runs, nor believe what is stored.
  if (secret === undefined)
    throw new StoreConfigurationError(
      'secret: replicas that share a Redis need the same one; configure `secret` or set HOLDFAST_SECRET',
    );
  const seal = sealOf(options, secret);
  const address = parseRedisUrl(url);
  // Loaded late: the other stores do without the client and what it needs.
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

/** Where there are sealing keys, the secret proves nothing: the one of a file store may lie beside what it would prove. */
function sealOf({ sealing_keys, unproven }: OpenStoreOptions, secret: string): Seal {
  const acceptsUnproven = unproven === 'accept';
  return sealing_keys.length > 0
    ? createSeal(sealing_keys, acceptsUnproven)
    : createProofs(secret, acceptsUnproven);
}
