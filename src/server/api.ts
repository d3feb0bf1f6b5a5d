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

/** The replica's progress towards its end. */
interface ServerState {
  /** It is about to stop. */
  draining(): boolean;
  /** It is handing over its runs and starts nothing new. */
  closing(): boolean;
  readonly requests: ActiveWork;
}

/**
 * Serves `/v1`, including at Azure's paths, `/holdfast/v1`, and an answer to everything else, under one configuration.
 * It has no port of its own.
 */
export function createApi(context: ApiContext & ServerState): FastifyInstance {
  const { limits } = context.configuration;
  const api = fastify({
    bodyLimit: limits.body_bytes,
    rewriteUrl: ({ url = '' }) => underV1(url),
    // So that a too long id gets the same answer as any other invalid id.
    routerOptions: { maxParamLength: limits.header_bytes },
    frameworkErrors: (_error, _request, reply) => sendError(apiError('bad_request'), reply),
  });

  // A kept connection would bring further requests here, or close just as the next one arrives.
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
    // When a stream begins, its own headers are added.
    if (readable) for (const [name, value] of Object.entries(readable)) reply.raw.setHeader(name, value);
    if (context.refusing.aborted) throw apiError('shutting_down');
    // Never sent upstream, because a provider would admit any page.
    if (method === 'OPTIONS') return void reply.code(204).headers(browsers.preflight(headers)).send();
    void context.requests.track(new Promise<void>((resolve) => reply.raw.once('close', resolve)));
    guard(headers);
    admitFaults(headers, context.configuration);
    refuseUpgrade(request, reply);
    const identified = request.is404 ? undefined : callers.identify(request);
    if (identified === undefined) done();
    else void identified.then(() => done(), done);
  });
  // Checked again, because reading the body may have taken long.
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
  // Separate scopes, because they read bodies differently.
  for (const routes of [wireRoutes, runRoutes, taskRoutes, passThroughRoutes]) {
    api.register((scope, _options, done) => {
      routes(scope, context);
      done();
    });
  }
  return api;
}

/**
 * Throws if the client wants to switch protocols, which Holdfast never requests from an upstream. Java's client offers
 * `h2c` with every request and expects HTTP/1.1 if the offer is ignored.
 */
function refuseUpgrade({ url, headers }: FastifyRequest, { raw }: FastifyReply): void {
  const offered = namesIn(headers.upgrade);
  if (offered.length === 0 || offered.includes('h2c')) return;
  if (!namesIn(headers.connection).includes('upgrade')) return;
  const protocol = offered.join(', ');
  if (wireAt(url)?.name !== 'responses') throw apiError('upgrade_not_supported', { protocol });
  // RFC 9110, 15.5.22: the answer must name the supported protocol.
  raw.setHeader('upgrade', 'HTTP/1.1').setHeader('connection', 'upgrade');
  throw apiError('upgrade_required', { protocol });
}

/** Whether part of the request body is still to come. */
const isComing = ({ raw }: FastifyRequest): boolean =>
  !raw.complete &&
  (Number(raw.headers['content-length']) > 0 || raw.headers['transfer-encoding'] !== undefined);

/**
 * Answers at once, but ends the response only once the rest of the body was received and discarded. Closing the
 * connection earlier would reset it, and the client would lose the answer. `request_ms` limits the wait.
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
