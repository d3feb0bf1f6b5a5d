import { resolve } from 'node:path';
import type { Time } from '../time.ts';
import type { FsyncPolicy } from './file-log.ts';
import { FileStore } from './file-store.ts';
import { MemoryStore } from './memory-store.ts';
import type { Store } from './store.ts';
import { StoreConfigurationError } from './store.ts';

export interface OpenStoreOptions {
  readonly time: Time;
  /** How long a run is kept after its last append. */
  readonly ttl_s: number;
  /** File store only: when written data is forced to the disk. Default `finish`. */
  readonly fsync?: FsyncPolicy;
  /** Damaged runs that were read, and failures of the store's own upkeep. */
  onError(error: Error): void;
}

/**
 * Opens `memory` or `file:<directory>` (relative to the working directory).
 * Rejects with a {@link StoreConfigurationError} for any other value and for a directory that cannot be used.
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const { time, fsync = 'finish', onError } = options;
  const ttl_ms = options.ttl_s * 1000;
  if (url === 'memory') return new MemoryStore({ time, ttl_ms });
  const dir = fileStoreDirectory(url);
  if (dir !== undefined) return new FileStore({ dir, fsync, ttl_ms, onError });
  throw new StoreConfigurationError(
    `checkpoint.store: ${JSON.stringify(url)} is not a store; use "memory" or "file:<directory>"`,
  );
}

/** The absolute directory of a `file:` store, where the generated secret lies too; undefined for any other store. */
export function fileStoreDirectory(url: string): string | undefined {
  const path = /^file:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1];
  return path === undefined ? undefined : resolve(path);
}
