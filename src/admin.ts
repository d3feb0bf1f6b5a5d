import fastify, { type FastifyInstance } from 'fastify';
import type { Store } from './checkpoint/store.ts';
import { apiError } from './errors.ts';
import type { Metrics } from './metrics.ts';
import { VERSION } from './version.ts';

/** Nobody sends bodies here. */
const BODY_BYTES_MAX = 1024;
const REQUEST_MS = 10_000;

export interface AdminContext {
  readonly metrics: Metrics;
  readonly store: Store;
  /** A replica whose store does not work is not ready. */
  readonly storeRequired: boolean;
  /** True from the first signal to stop. */
  draining(): boolean;
  /** Requests under way on the API port. */
  active(): number;
}

/** Read-only: `/metrics`, `/livez`, `/readyz` and, at `/`, the status. */
export function createAdminServer(context: AdminContext): FastifyInstance {
  const { metrics, store, storeRequired, draining, active } = context;
  const admin = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: REQUEST_MS },
    forceCloseConnections: true,
  });

  admin.get('/livez', async () => ({ status: 'live' }));

  admin.get('/readyz', async (_request, reply) => {
    const fault = draining() ? undefined : await storeFault(store);
    if (!draining() && !fault) return { status: 'ready' };
    const failing = draining() ? { draining: 'shutting down' } : fault;
    // All replicas share a store: where they may do without it, its failure must not take all of them out of service.
    if (!draining() && !storeRequired) return { status: 'degraded', failing };
    return reply.code(503).send({ status: 'not ready', failing });
  });

  admin.get('/metrics', async (_request, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  );

  admin.get('/', async () => ({
    name: 'holdfast',
    version: VERSION,
    status: draining() ? 'draining' : 'serving',
    uptime_s: Math.round(process.uptime()),
    active_requests: active(),
    store: store.name,
  }));

  admin.setNotFoundHandler(async ({ method, url }, reply) => {
    const { status, body } = apiError('not_found', { method, path: url });
    return reply.code(status).type('application/json; charset=utf-8').send(body);
  });
  return admin;
}

async function storeFault(store: Store): Promise<{ store: string } | undefined> {
  try {
    await store.check();
    return undefined;
  } catch (error) {
    return { store: error instanceof Error ? error.message : 'unavailable' };
  }
}
