import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { formatProblem } from '../config/problem.ts';
import { ApiError, apiError } from '../lib/errors.ts';
import { hostnameOf, isLoopback, isTrustedHost } from '../lib/host-name.ts';
import type { Exposition } from '../metrics/families.ts';
import { type StatusSource, statusRoutes } from '../status/status-routes.ts';
import type { Readiness } from './readiness.ts';
import type { ReloadReport } from './reload-report.ts';

/** Requests to this port have no bodies. */
const BODY_BYTES_MAX = 1024;
const REQUEST_MS = 10_000;

export interface AdminContext {
  /** `accept`: the scraper's `Accept` header. */
  exposition(accept: string | undefined): Promise<Exposition>;
  /** Called for a supervisor or load balancer. */
  readiness(): Promise<Readiness>;
  /** Public host names that may access more than the health endpoints. */
  hosts(): readonly string[];
  /** Reloads the configuration, for `POST /reload`. */
  reload?(): Promise<ReloadReport>;
  readonly status: StatusSource;
}

/**
 * Serves `/metrics`, `/livez`, `/readyz`, the status page with its data, and `/reload`, the only one that changes
 * anything.
 */
export function createAdminServer(context: AdminContext): FastifyInstance {
  const { exposition, readiness, hosts, reload, status: source } = context;
  const admin = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: REQUEST_MS },
    forceCloseConnections: true,
  });

  admin.get('/livez', async () => ({ status: 'live' }));

  admin.get('/readyz', async (_request, reply) => {
    const answer = await readiness();
    return reply.code(answer.status === 'not ready' ? 503 : 200).send(answer);
  });

  admin.register((scope, _options, done) => {
    scope.addHook('onRequest', async ({ headers: { host } }) => {
      if (isTrustedHost(host, hosts())) return;
      throw apiError('host_not_allowed', { host: host ?? '', remedy: 'the name to status_page.hosts' });
    });
    scope.get('/metrics', async ({ headers }, reply) => {
      const { type, body } = await exposition(headers.accept);
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
      statusRoutes(page, source);
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

/**
 * Whether a local program sent the request. Web pages open on this machine don't count, although their requests come
 * from it.
 */
const isOwnMachine = ({ headers, socket: { remoteAddress = '' } }: FastifyRequest): boolean =>
  isLoopback(hostnameOf(remoteAddress.replace(/^::ffff:/, ''))) &&
  headers.origin === undefined &&
  headers['sec-fetch-site'] === undefined;
