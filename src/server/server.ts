import { STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Logger } from 'pino';
import { CheckpointScheduler } from '../checkpoint/checkpoint-scheduler.ts';
import { replicasOf } from '../checkpoint/owner.ts';
import type { Store } from '../checkpoint/store.ts';
import { adminHost, type Configuration } from '../config/configuration.ts';
import { ApiError, apiError } from '../lib/errors.ts';
import { sleep, systemTime, type Time } from '../lib/time.ts';
import { Metrics } from '../metrics/metrics.ts';
import { ActiveWork } from '../proxy/api/active-work.ts';
import { passThroughRoutes, wireRoutes } from '../proxy/api/api.ts';
import type { ApiContext, Follow } from '../proxy/api/api-context.ts';
import { PassThrough } from '../proxy/api/passthrough.ts';
import { runRoutes } from '../proxy/api/runs-api.ts';
import { follow } from '../proxy/resume/follow.ts';
import { RunLookup } from '../proxy/resume/run-lookup.ts';
import { AnswerIds } from '../proxy/run/answer-ids.ts';
import type { Relay, RunContext } from '../proxy/run/context/run-context.ts';
import { observers, type RunObserver } from '../proxy/run/context/run-observer.ts';
import { NoticeBoard } from '../proxy/run/notices/notice-board.ts';
import { RunRegistry } from '../proxy/run/run-registry.ts';
import { createRunSalvage } from '../proxy/run/run-salvage.ts';
import { HealthRegistry } from '../proxy/upstream/health-registry.ts';
import { loopGuard } from '../proxy/upstream/loop-guard.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';
import { StreamRefusals } from '../proxy/upstream/stream-refusals.ts';
import type { Transport } from '../proxy/upstream/transport.ts';
import { errorBodyOn, type Wire } from '../proxy/wires/common/wire.ts';
import { CapabilityMemory } from '../proxy/wires/dialects/capability-memory.ts';
import { StoredCapabilities } from '../proxy/wires/dialects/stored-capabilities.ts';
import { wireAt } from '../proxy/wires/registry.ts';
import { RunBoard } from '../status/run-board.ts';
import { StatusReport } from '../status/status-report.ts';
import { createAdminServer } from './admin.ts';
import { beginMetrics } from './begin-metrics.ts';

/** How often connections are looked over for headers and requests that take too long. */
const CONNECTION_CHECK_MS_MAX = 1000;
/** How long runs may take to be handed over at the end of the drain, and then what was cut off to end. */
const CUT_OFF_MS = 2000;

export interface ServerDependencies {
  readonly relay: Relay;
  readonly follow?: Follow;
  readonly store: Store;
  readonly transport: Transport;
  readonly secret: string;
  readonly log: Logger;
  readonly metrics?: Metrics;
  readonly observers?: readonly RunObserver[];
  readonly time?: Time;
  readonly random?: () => number;
}

/** A replica: the API and the admin port. */
export interface Server {
  /** Resolves with the URLs once both ports are open; rejects with a {@link ListenError}. */
  listen(): Promise<{ readonly api: string; readonly admin: string }>;
  /**
   * Is not ready from now on, answers new requests with 503 after `drain_delay_ms`, and resolves when those under way
   * have ended or `drain_ms` is over.
   */
  drain(): Promise<void>;
  /**
   * Hands over the runs that are still under way, cuts off everything else and closes both ports.
   * Store and transport are the caller's to close.
   */
  close(): Promise<void>;
}

/** A port could not be opened. */
export class ListenError extends Error {
  override readonly name = 'ListenError';

  constructor(key: 'port' | 'admin_port', host: string, port: number, code: string | undefined) {
    super(
      `listen.${key}: cannot listen on ${host} port ${port} (${code}); ${REMEDIES[code ?? ''] ?? REMEDY}`,
    );
  }
}

const REMEDY = 'choose another with --host, --port and --admin-port.';
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'it is in use: stop the other process, or choose another with --port or --admin-port (0 picks a free one).',
  EACCES: 'this user may not: choose a port above 1023.',
  EADDRNOTAVAIL: 'this machine has no such address: choose another with --host or --admin-host.',
};

export function createServer(configuration: Configuration, dependencies: ServerDependencies): Server {
  const { log, store, transport, time = systemTime, random = Math.random } = dependencies;
  const metrics = dependencies.metrics ?? new Metrics();
  const work = new ActiveWork();
  /** From their headers to the end of their answers; runs that outlive their clients are in `work`. */
  const requests = new ActiveWork();
  const registry = new RunRegistry(configuration.limits);
  const passThrough = new PassThrough(configuration, transport, log);
  const healths = new HealthRegistry(configuration);
  metrics.targets = () => healths.states(time.now());
  const measuring = beginMetrics(metrics, configuration, store, time);
  const { drain_ms, drain_delay_ms } = configuration.limits;
  const { host, port, admin_port } = configuration.listen;
  const { content, hosts } = configuration.status_page;
  const board = new RunBoard({ time, content });
  let isWatched = false;
  let draining = false;
  let closing = false;
  const storeRequired = configuration.checkpoint.on_unreachable === 'fail';
  metrics.ready = () => !draining && (metrics.storeWorks || !storeRequired);
  /** Aborts when new requests are no longer taken. */
  const refusing = new AbortController();

  const context: RunContext = {
    configuration,
    transport,
    store,
    scheduler: new CheckpointScheduler({ interval_ms: configuration.checkpoint.interval_ms, time }),
    capabilities: new CapabilityMemory(
      time,
      new StoredCapabilities({
        notes: store.notes,
        owner: replicasOf(dependencies.secret),
        upstreams: configuration.upstreams,
        time,
        log,
      }),
    ),
    metrics,
    observer: observers([board, ...measuring, ...(dependencies.observers ?? [])]),
    log,
    time,
    random,
  };
  const api = createApiServer({
    ...context,
    relay: dependencies.relay,
    follow: dependencies.follow ?? follow,
    secret: dependencies.secret,
    work,
    registry,
    lookup: new RunLookup(context, registry),
    notices: new NoticeBoard(context),
    answerIds: new AnswerIds(context),
    passThrough,
    models: new RouteTable(configuration),
    healths,
    streamRefusals: new StreamRefusals(time),
    draining: () => draining,
    refusing: () => refusing.signal.aborted,
    closing: () => closing,
    requests,
  });
  const salvage = createRunSalvage(context);
  const state = {
    draining: () => draining,
    active: () => work.count,
  };
  const report = new StatusReport({
    ...state,
    board,
    content,
    store,
    metrics,
    time,
    targets: () => healths.states(time.now()),
  });
  const admin = createAdminServer({
    ...state,
    metrics,
    store,
    board,
    report,
    time,
    hosts,
    storeRequired,
    onReadinessAsked: () => {
      isWatched = true;
    },
  });

  return {
    async listen() {
      const urls = {
        api: await open(api, 'port', host, port),
        admin: await open(admin, 'admin_port', adminHost(configuration.listen), admin_port),
      };
      salvage.start();
      return urls;
    },

    async drain() {
      draining = true;
      // Whoever has not yet noticed that this replica is not ready goes on sending requests.
      const delay_ms = isWatched ? Math.min(drain_delay_ms, drain_ms) : 0;
      if (delay_ms > 0) await sleep(time, delay_ms, refusing.signal);
      refusing.abort();
      const left_ms = drain_ms - delay_ms;
      await Promise.all([work.settled(time, left_ms), requests.settled(time, left_ms)]);
    },

    async close() {
      draining = true;
      closing = true;
      refusing.abort();
      if (work.count > 0) log.warn({ active_requests: work.count }, 'requests cut off');
      // Before the connections close: a client that moves on finds nobody in its way.
      await Promise.all([registry.handOver(time, CUT_OFF_MS), salvage.close()]);
      api.server.closeAllConnections();
      await work.settled(time, CUT_OFF_MS);
      await Promise.all([api.close(), admin.close()]);
    },
  };
}

async function open(
  server: FastifyInstance,
  key: 'port' | 'admin_port',
  host: string,
  port: number,
): Promise<string> {
  try {
    await server.listen({ host, port });
  } catch (error) {
    throw new ListenError(key, host, port, (error as NodeJS.ErrnoException).code);
  }
  const address = server.server.address() as AddressInfo;
  return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

interface ServerState {
  /** It is about to stop. */
  draining(): boolean;
  /** It takes no new requests. */
  refusing(): boolean;
  /** It hands over, and begins nothing any more. */
  closing(): boolean;
  readonly requests: ActiveWork;
}

function createApiServer(context: ApiContext & ServerState): FastifyInstance {
  const { limits } = context.configuration;
  const api = fastify({
    bodyLimit: limits.body_bytes,
    requestTimeout: limits.request_ms,
    keepAliveTimeout: limits.keep_alive_ms,
    forceCloseConnections: true,
    // What is too long to be the id of a run is told so by the same answer as any other that is none.
    routerOptions: { maxParamLength: limits.header_bytes },
    http: {
      headersTimeout: Math.min(limits.header_ms, limits.request_ms),
      connectionsCheckingInterval: Math.min(CONNECTION_CHECK_MS_MAX, limits.header_ms),
      maxHeaderSize: limits.header_bytes,
    },
    frameworkErrors: (_error, _request, reply) => sendError(apiError('bad_request'), reply),
    clientErrorHandler: (error, socket) => answerUnparsable(error, socket, limits.header_bytes),
  });
  api.server.maxConnections = limits.connections;

  // A connection that is kept would bring more requests here, or be closed as the next one is on its way.
  const announceEnd = ({ raw }: FastifyReply) => {
    if (context.draining()) raw.setHeader('connection', 'close');
  };
  const guard = loopGuard(context.secret);
  api.addHook('onRequest', ({ headers }, reply, done) => {
    announceEnd(reply);
    if (context.refusing()) throw apiError('shutting_down');
    void context.requests.track(new Promise<void>((resolve) => reply.raw.once('close', resolve)));
    guard(headers);
    done();
  });
  // The body may have taken its time.
  api.addHook('preHandler', (_request, reply, done) => {
    announceEnd(reply);
    if (context.closing()) throw apiError('shutting_down');
    done();
  });
  api.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = refusalOf(error, request, limits.body_bytes);
    if (refusal.code === 'internal_error') context.log.error({ err: error }, 'request failed');
    // A client still sending its body would see the connection reset instead of the answer; the rest is discarded
    // as it comes, and request_ms ends it.
    if (refusal.code === 'body_too_large') reply.removeHeader('connection').raw.removeHeader('connection');
    return sendError(refusal, reply, wireAt(request.url));
  });
  api.setNotFoundHandler(({ method, url }, reply) =>
    sendError(apiError('not_found', { method, path: url }), reply),
  );
  // Each in a scope of its own, because they read bodies differently.
  for (const routes of [wireRoutes, runRoutes, passThroughRoutes]) {
    api.register((scope, _options, done) => {
      routes(scope, context);
      done();
    });
  }
  return api;
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

/** Answers what never became a request; on a connection that carried a response before, silence is safer. */
function answerUnparsable(error: NodeJS.ErrnoException, socket: Socket, limit_bytes: number): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const { status, body } = unparsable(error.code, limit_bytes);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

function unparsable(code: string | undefined, limit_bytes: number): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return apiError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return apiError('headers_too_large', { limit_bytes });
  return apiError('bad_request');
}
