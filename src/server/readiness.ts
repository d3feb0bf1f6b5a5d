import type { Store } from '../checkpoint/store.ts';

/** The answer to `GET /readyz`. */
export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not ready';
  /** What is wrong, by the affected part. */
  readonly failing?: Readonly<Record<string, string>>;
}

export const DRAINING: Readiness = { status: 'not ready', failing: { draining: 'shutting down' } };

interface ReadinessParts {
  readonly store: Store;
  /** A replica whose store fails isn't ready. */
  readonly storeRequired: boolean;
  readonly draining: boolean;
}

export async function readinessOf({ store, storeRequired, draining }: ReadinessParts): Promise<Readiness> {
  if (draining) return DRAINING;
  const failing = await storeFault(store);
  if (!failing) return { status: 'ready' };
  // All replicas share the store. If they can do without it, its failure must not take all of them out of service.
  return { status: storeRequired ? 'not ready' : 'degraded', failing };
}

async function storeFault(store: Store): Promise<{ store: string } | undefined> {
  try {
    await store.check();
    return undefined;
  } catch (error) {
    return { store: error instanceof Error ? error.message : 'unavailable' };
  }
}
