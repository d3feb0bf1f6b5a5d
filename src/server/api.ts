import { finished } from 'node:stream';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import { ApiError, apiError } from '../lib/errors.ts';
import { passThroughRoutes, wireRoutes } from '../proxy/api/api.ts';
import type { ActiveWork, ApiContext } from '../proxy/api/api-context.ts';
import { underV1 } from '../proxy/api/azure-path.ts';
import { Callers } from '../proxy/api/caller.ts';
import { admitFaults } from '../proxy/api/injected-faults.ts';
import { openApiRoute } from '../proxy/api/openapi.ts';
import { runRoutes } from '../proxy/api/runs-api.ts';
import { taskRoutes } from '../proxy/api/tasks-api.ts';
import { loopGuard, namesIn } from '../proxy/upstream/headers.ts';
import { errorBodyOn, type Wire } from '../proxy/wires/common/wire.ts';
import { wireAt } from '../proxy/wires/registry.ts';
import { BrowserAccess } from './browser-access.ts';

/** How far the replica is on its way to its end. */
interface ServerState {
  /** It is about to stop. */
  draining(): boolean;
  /** It hands over, and begins nothing any more. */
  closing(): boolean;
  readonly requests: ActiveWork;
}

/**
 * `/v1`, also at the addresses that Azure has for it, `/holdfast/v1`, and an answer to everything else, under one
 * configuration. It has no port of its own.
 */
export function createApi(context: ApiContext & ServerState): FastifyInstance {
  const { limits } = context.configuration;
  const api = fastify({
    bodyLimit: limits.body_bytes,
    rewriteUrl: ({ url = '' }) => underV1(url),
    // An id that is too long gets the same answer as any other invalid id.
    routerOptions: { maxParamLength: limits.header_bytes },
    frameworkErrors: (_error, _request, reply) => sendError(apiError('bad_request'), reply),
  });

  // A connection that is kept would bring more requests here, or be closed as the next one is on its way.
  const announceEnd = ({ raw }: FastifyReply) => {
    if (context.draining()) raw.setHeader('connection', 'close');
  };
  const guard = loopGuard(context.secret);
  const callers = new Callers(context);
  callers.decorate(api);
  const browsers = new BrowserAccess(context.configuration.listen);
  api.addHook('onRequest', (request, reply, done) => {
    const { method, headers } = request;
    announceEnd(reply);
    const readable = browsers.admit(headers);
    // Where a stream begins, its own headers come on top.
    if (readable) for (const [name, value] of Object.entries(readable)) reply.raw.setHeader(name, value);
    if (context.refusing.aborted) throw apiError('shutting_down');
    // Never sent upstream: a provider would let any page in.
    if (method === 'OPTIONS') return void reply.code(204).headers(browsers.preflight(headers)).send();
    void context.requests.track(new Promise<void>((resolve) => reply.raw.once('close', resolve)));
    guard(headers);
    admitFaults(headers, context.configuration);
    refuseUpgrade(request, reply);
    const identified = request.is404 ? undefined : callers.identify(request);
    if (identified === undefined) done();
    else void identified.then(() => done(), done);
  });
  // The body may have taken its time.
  api.addHook('preHandler', (_request, reply, done) => {
    announceEnd(reply);
    if (context.closing()) throw apiError('shutting_down');
    done();
  });
  api.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = refusalOf(error, request, limits.body_bytes);
    if (refusal.code === 'internal_error')
      context.log.error({ err: error, route: request.routeOptions.url }, 'request failed');
    const wire = wireAt(request.url);
    if (isComing(request)) return sendAheadOfBody(refusal, request, reply, wire);
    return sendError(refusal, reply, wire);
  });
  api.setNotFoundHandler(({ method, url }, reply) =>
    sendError(apiError('not_found', { method, path: url }), reply),
  );
  openApiRoute(api);
  // Each in a scope of its own, because they read bodies differently.
  for (const routes of [wireRoutes, runRoutes, taskRoutes, passThroughRoutes]) {
    api.register((scope, _options, done) => {
      routes(scope, context);
      done();
    });
  }
  return api;
}

/**
 * Throws where the client wants to speak another protocol from here on, which no upstream is asked for. Java's client offers
 * `h2c` with every request, and expects HTTP/1.1 where the offer is not taken.
 */
function refuseUpgrade({ url, headers }: FastifyRequest, { raw }: FastifyReply): void {
  const offered = namesIn(headers.upgrade);
  if (offered.length === 0 || offered.includes('h2c')) return;
  if (!namesIn(headers.connection).includes('upgrade')) return;
  const protocol = offered.join(', ');
  if (wireAt(url)?.name !== 'responses') throw apiError('upgrade_not_supported', { protocol });
  // RFC 9110, 15.5.22: the answer names what is spoken instead.
  raw.setHeader('upgrade', 'HTTP/1.1').setHeader('connection', 'upgrade');
  throw apiError('upgrade_required', { protocol });
}

/** More of its body is to come. */
const isComing = ({ raw }: FastifyRequest): boolean =>
  !raw.complete &&
  (Number(raw.headers['content-length']) > 0 || raw.headers['transfer-encoding'] !== undefined);

/**
 * Answers at once, and ends the response when the rest of the body has come, which is discarded: were the connection closed
 * before, it would be reset, and the answer lost with it. `request_ms` ends it at the latest.
 */
function sendAheadOfBody(
  { status, headers, body }: ApiError,
  { raw: request }: FastifyRequest,
  reply: FastifyReply,
  wire: Wire | undefined,
): void {
  const text = errorBodyOn(wire, body);
  const length = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  };
  const response = reply.hijack().raw.writeHead(status, { ...headers, ...length });
  response.write(text);
  finished(request.resume(), () => response.end());
}

const sendError = ({ status, headers, body }: ApiError, reply: FastifyReply, wire?: Wire) =>
  reply.code(status).headers(headers).send(errorBodyOn(wire, body));

function refusalOf(error: FastifyError, { method, url }: FastifyRequest, limit_bytes: number): ApiError {
  if (error instanceof ApiError) return error;
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return apiError('body_too_large', { limit_bytes });
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return apiError('unsupported_media_type');
  if (error.statusCode === 404) return apiError('not_found', { method, path: url });
  return (error.statusCode ?? 500) < 500 ? apiError('bad_request') : apiError('internal_error');
}
