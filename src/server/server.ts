import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { CheckpointScheduler } from '../checkpoint/checkpoint-scheduler.ts';
import { replicasOf } from '../checkpoint/owner.ts';
import { BEATS_PER_LEASE, type Store } from '../checkpoint/store.ts';
import { adminHost, type Configuration } from '../config/configuration.ts';
import { resumeCommand, tryCommand } from '../config/sample-requests.ts';
import { statusLinks } from '../config/status-links.ts';
import type { WebhookEndpoint } from '../config/webhook-endpoints.ts';
import { defaultMemoryBytes, MemoryBudget } from '../lib/memory-budget.ts';
import { PauseWatch } from '../lib/pause-watch.ts';
import { sleep, systemTime, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import { GenAiMetrics } from '../metrics/gen-ai/gen-ai-metrics.ts';
import { Metrics, type TargetLabels } from '../metrics/metrics.ts';
import { ActiveWork, type ApiContext, type Follow } from '../proxy/api/api-context.ts';
import { PassThrough } from '../proxy/api/passthrough.ts';
import { continueUnattended } from '../proxy/api/return.ts';
import { SignedUrls } from '../proxy/api/signed-urls.ts';
import { purgeTask } from '../proxy/api/task-ends.ts';
import { follow } from '../proxy/resume/follow.ts';
import { RunLookup } from '../proxy/resume/run-lookup.ts';
import { AnswerIds } from '../proxy/run/answer-ids.ts';
import type { Relay, RunContext } from '../proxy/run/context/run-context.ts';
import { observers, type RunObserver } from '../proxy/run/context/run-observer.ts';
import { NoticeBoard } from '../proxy/run/notices/notice-board.ts';
import { RunRegistry } from '../proxy/run/run-registry.ts';
import { createRunSalvage } from '../proxy/run/run-salvage.ts';
import { AgreedTerms } from '../proxy/tasks/agreed-terms.ts';
import { CallLedger } from '../proxy/tasks/call-ledger.ts';
import { EndedTasks } from '../proxy/tasks/ended-tasks.ts';
import { TaskDivergences } from '../proxy/tasks/task-divergence.ts';
import { TaskRecords } from '../proxy/tasks/task-records.ts';
import { TaskStates } from '../proxy/tasks/task-states.ts';
import { type TaskRules, TaskSteps } from '../proxy/tasks/task-steps.ts';
import { TaskUsage } from '../proxy/tasks/task-usage.ts';
import { MaskingTransport } from '../proxy/upstream/masking-transport.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';
import { StreamRefusals } from '../proxy/upstream/stream-refusals.ts';
import { HealthRegistry, labelsOf } from '../proxy/upstream/target-health.ts';
import type { Transport } from '../proxy/upstream/transport.ts';
import { CapabilityMemory } from '../proxy/wires/dialects/capability-memory.ts';
import { StoredCapabilities } from '../proxy/wires/dialects/stored-capabilities.ts';
import { Fleet } from '../status/fleet.ts';
import { RunBoard } from '../status/run-board.ts';
import { StatusReport } from '../status/status-report.ts';
import { TaskWebhooks } from '../webhooks/task-webhooks.ts';
import { WebhookDelivery } from '../webhooks/webhook-delivery.ts';
import { createAdminServer } from './admin.ts';
import { createApiServer } from './api.ts';

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
  readonly webhooks?: readonly WebhookEndpoint[];
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
  const { log, store, secret, time = systemTime, random = Math.random, webhooks = [] } = dependencies;
  const transport = new MaskingTransport(dependencies.transport);
  const metrics = dependencies.metrics ?? new Metrics();
  const work = new ActiveWork();
  /** From their headers to the end of their answers; runs that outlive their clients are in `work`. */
  const requests = new ActiveWork();
  const { memory_bytes = defaultMemoryBytes() } = configuration.limits;
  const memory = new MemoryBudget(memory_bytes, () => metrics.memoryRefusals.inc());
  const registry = new RunRegistry(configuration.limits);
  metrics.memory = memory;
  const passThrough = new PassThrough(configuration, transport, log);
  const healths = new HealthRegistry(configuration);
  metrics.targets = () => healths.states(time.now());
  const measuring = beginMetrics(metrics, configuration, store, time);
  const { drain_ms, drain_delay_ms } = configuration.limits;
  const { host, port, admin_port } = configuration.listen;
  const { content, hosts, replica_name } = configuration.status_page;
  const board = new RunBoard({ time, content, targets: targetsOf(configuration) });
  let isWatched = false;
  let draining = false;
  let closing = false;
  const storeRequired = configuration.checkpoint.on_unreachable === 'fail';
  metrics.ready = () => !draining && (metrics.storeWorks || !storeRequired);
  /** Aborts when new requests are no longer taken. */
  const refusing = new AbortController();

  // Without endpoints there is nothing that observes tasks.
  const deliveries =
    webhooks.length > 0
      ? new WebhookDelivery(webhooks, { transport: dependencies.transport, metrics, log, time, random })
      : undefined;
  const taskWebhooks = deliveries && new TaskWebhooks(deliveries, { configuration, secret, time });

  const context: RunContext = {
    configuration,
    transport,
    store,
    scheduler: new CheckpointScheduler({ interval_ms: configuration.checkpoint.interval_ms, time }),
    pauses: new PauseWatch(time, configuration.checkpoint.lease_ms / BEATS_PER_LEASE),
    capabilities: new CapabilityMemory(
      time,
      new StoredCapabilities({
        notes: store.notes,
        owner: replicasOf(secret),
        upstreams: configuration.upstreams,
        time,
        log,
      }),
    ),
    metrics,
    observer: observers([
      board,
      ...measuring,
      ...(taskWebhooks ? [taskWebhooks] : []),
      ...(dependencies.observers ?? []),
    ]),
    log,
    time,
    random,
  };
  const lookup = new RunLookup(context, registry);
  const states = new TaskStates(context);
  const terms = new AgreedTerms(context);
  const tasks = new TaskRecords(context, [states, terms]);
  const taskRules: TaskRules = { states, terms, usage: new TaskUsage(context, tasks) };
  const endedTasks = new EndedTasks({
    context,
    states,
    replicas: replicasOf(dependencies.secret),
    forget: (task) => purgeTask(task, apiContext),
  });
  const apiContext: ApiContext = {
    ...context,
    relay: dependencies.relay,
    follow: dependencies.follow ?? follow,
    secret,
    urls: new SignedUrls(secret),
    work,
    registry,
    memory,
    lookup,
    steps: new TaskSteps(context, lookup, taskRules, taskWebhooks),
    tasks,
    taskRules,
    endedTasks,
    divergences: new TaskDivergences(context, tasks),
    taskObserver: taskWebhooks,
    ledger: new CallLedger(store.notes, time, configuration.checkpoint.ttl_s * 1000),
    notices: new NoticeBoard(context),
    answerIds: new AnswerIds(context),
    refusing: refusing.signal,
    passThrough,
    models: new RouteTable(configuration),
    healths,
    streamRefusals: new StreamRefusals(time),
  };
  const api = createApiServer({
    ...apiContext,
    draining: () => draining,
    closing: () => closing,
    requests,
  });
  const salvage = createRunSalvage(context, async (orphan) =>
    draining ? 'later' : continueUnattended(orphan, apiContext),
  );
  const state = {
    draining: () => draining,
    active: () => work.count,
  };
  const started_at_ms = Math.round(time.wall() - process.uptime() * 1000);
  /** Where the API listens, once it does. */
  let apiUrl = '';
  const fleet = new Fleet({
    notes: store.notes,
    owner: replicasOf(secret),
    isShared: store.name !== 'memory',
    interval_ms: configuration.checkpoint.lease_ms,
    time,
    name: () => replica_name ?? `${hostname()}${/:\d+$/.exec(apiUrl)?.[0] ?? ''}`,
    release: VERSION,
    started_at_ms,
    sign: () => ({ status: draining ? 'draining' : 'serving', runs: board.counts.live }),
  });
  const report = new StatusReport({
    ...state,
    board,
    fleet,
    links: statusLinks(configuration.status_page),
    content,
    started_at_ms,
    api: () => ({
      url: apiUrl,
      try: tryCommand(apiUrl, configuration),
      resume: resumeCommand(apiUrl, configuration),
    }),
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
      apiUrl = await open(api, 'port', host, port);
      const urls = {
        api: apiUrl,
        admin: await open(admin, 'admin_port', adminHost(configuration.listen), admin_port),
      };
      salvage.start();
      endedTasks.start();
      fleet.start();
      return urls;
    },

    async drain() {
      draining = true;
      void fleet.beat();
      // Balancers that have not yet noticed that this replica is not ready keep sending requests.
      const delay_ms = isWatched ? Math.min(drain_delay_ms, drain_ms) : 0;
      if (delay_ms > 0) await sleep(time, delay_ms, refusing.signal);
      refusing.abort();
      deliveries?.hurry();
      const left_ms = drain_ms - delay_ms;
      const end_ms = time.now() + left_ms;
      await Promise.all([work.settled(time, left_ms), requests.settled(time, left_ms)]);
      // With what the last of them has brought.
      await deliveries?.settled(Math.max(0, end_ms - time.now()));
    },

    async close() {
      draining = true;
      closing = true;
      refusing.abort();
      if (work.count > 0) log.warn({ active_requests: work.count }, 'requests cut off');
      // Before the connections close, so that a client that moves on finds its run free.
      await Promise.all([
        registry.handOver(time, CUT_OFF_MS),
        salvage.close(),
        endedTasks.close(),
        fleet.close(),
      ]);
      api.server.closeAllConnections();
      await work.settled(time, CUT_OFF_MS);
      await Promise.all([api.close(), admin.close(), deliveries?.close()]);
    },
  };
}

/** Without routes, the first upstream serves every model. */
function targetsOf({ routes, upstreams }: Configuration): readonly TargetLabels[] {
  const targets = routes.flatMap((route) => route.targets);
  if (targets.length === 0)
    return Object.keys(upstreams)
      .slice(0, 1)
      .map((name) => labelsOf({ name }));
  return targets.map(({ upstream: name, model }) =>
    labelsOf({ name, ...(model !== undefined && { model }) }),
  );
}

/** Makes the metrics those of this configuration. Returns the observers of runs that they need. */
function beginMetrics(
  metrics: Metrics,
  configuration: Configuration,
  store: Store,
  time: Time,
): readonly RunObserver[] {
  const { exemplars, gen_ai } = configuration.metrics;
  metrics.exemplars = exemplars;
  const observers = gen_ai ? [new GenAiMetrics(metrics.families, configuration, time)] : [];
  metrics.begin({ upstream: Object.keys(configuration.upstreams), store: [store.name] });
  return observers;
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
