import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Store } from '../checkpoint/store.ts';
import { formatProblem } from '../config/problem.ts';
import { ApiError, apiError } from '../lib/errors.ts';
import { hostnameOf, isLoopback, isTrustedHost } from '../lib/host-name.ts';
import { VERSION } from '../lib/version.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type StatusContext, statusRoutes } from '../status/status-routes.ts';
import type { ReloadReport } from './reload.ts';

/** Requests to this port have no bodies. */
const BODY_BYTES_MAX = 1024;
const REQUEST_MS = 10_000;

export interface AdminContext extends Omit<StatusContext, 'brief'> {
  readonly metrics: Metrics;
  readonly store: Store;
  /** Public names under which the port may be asked for more than its health. */
  hosts(): readonly string[];
  /** A replica whose store does not work is not ready. */
  readonly storeRequired: boolean;
  /** True from the first signal to stop. */
  draining(): boolean;
  /** A supervisor or balancer asks whether this replica is ready. */
  onReadinessAsked(): void;
  /** Loads the configuration again, for `POST /reload`. */
  reload?(): Promise<ReloadReport>;
  /** Requests under way on the API port. */
  active(): number;
}

/** `/metrics`, `/livez`, `/readyz`, the status page with what it is made of, and `/reload`, which alone changes anything. */
export function createAdminServer(context: AdminContext): FastifyInstance {
  const { metrics, store, hosts, storeRequired, draining, onReadinessAsked, active, reload } = context;
  const admin = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: REQUEST_MS },
    forceCloseConnections: true,
  });

  admin.get('/livez', async () => ({ status: 'live' }));

  admin.get('/readyz', async (_request, reply) => {
    onReadinessAsked();
    const fault = draining() ? undefined : await storeFault(store);
    if (!draining() && !fault) return { status: 'ready' };
    const failing = draining() ? { draining: 'shutting down' } : fault;
    // All replicas share a store: where they may do without it, its failure must not take all of them out of service.
    if (!draining() && !storeRequired) return { status: 'degraded', failing };
    return reply.code(503).send({ status: 'not ready', failing });
  });

  const brief = () => ({
    name: 'holdfast',
    version: VERSION,
    status: draining() ? 'draining' : 'serving',
    uptime_s: Math.round(process.uptime()),
    active_requests: active(),
    store: store.name,
  });
  admin.register((scope, _options, done) => {
    scope.addHook('onRequest', async ({ headers: { host } }) => {
      if (isTrustedHost(host, hosts())) return;
      throw apiError('host_not_allowed', { host: host ?? '', remedy: 'the name to status_page.hosts' });
    });
    scope.get('/metrics', async ({ headers }, reply) => {
      const { type, body } = await metrics.exposition(headers.accept);
      return reply.type(type).header('vary', 'accept').send(body);
    });
    if (reload)
      scope.post('/reload', async (request, reply) => {
        if (!isOwnMachine(request)) throw apiError('reload_not_allowed');
        const report = await reload();
        if (report.outcome !== 'refused') return report;
        const { problems } = report;
        const listed = problems.map(formatProblem).join('\n');
        const { status, body } = apiError('configuration_invalid', { problems: listed });
        const { error } = JSON.parse(body) as { error: object };
        return reply.code(status).send({ ...report, error });
      });
    scope.register((page, _none, registered) => {
      statusRoutes(page, { ...context, brief });
      registered();
    });
    done();
  });

  const sendError = ({ status, headers, body }: ApiError, reply: FastifyReply) =>
    reply.code(status).headers(headers).send(body);
  admin.setNotFoundHandler(({ method, url }, reply) =>
    sendError(apiError('not_found', { method, path: url }), reply),
  );
  admin.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error instanceof ApiError) return sendError(error, reply);
    return sendError(apiError((error.statusCode ?? 500) < 500 ? 'bad_request' : 'internal_error'), reply);
  });
  return admin;
}

/** A program of this machine. Web pages that are open on it are not, although their requests come from here. */
const isOwnMachine = ({ headers, socket: { remoteAddress = '' } }: FastifyRequest): boolean =>
  isLoopback(hostnameOf(remoteAddress.replace(/^::ffff:/, ''))) &&
  headers.origin === undefined &&
  headers['sec-fetch-site'] === undefined;

async function storeFault(store: Store): Promise<{ store: string } | undefined> {
  try {
    await store.check();
    return undefined;
  } catch (error) {
    return { store: error instanceof Error ? error.message : 'unavailable' };
  }
}
