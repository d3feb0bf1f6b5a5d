import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { CheckpointScheduler } from '../checkpoint/checkpoint-scheduler.ts';
import { replicasOf } from '../checkpoint/owner.ts';
import { BEATS_PER_LEASE, type Store } from '../checkpoint/store.ts';
import { type Configuration, workerCount } from '../config/configuration.ts';
import { resumeCommand, tryCommand } from '../config/sample-requests.ts';
import { statusLinks } from '../config/status-links.ts';
import { apiError } from '../lib/errors.ts';
import { defaultMemoryBytes, MemoryBudget } from '../lib/memory-budget.ts';
import { PauseWatch } from '../lib/pause-watch.ts';
import { sleep, systemTime, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import { GenAiMetrics } from '../metrics/gen-ai/gen-ai-metrics.ts';
import { Metrics, type TargetLabels } from '../metrics/metrics.ts';
import type { Follow } from '../proxy/api/api-context.ts';
import { SignedUrls } from '../proxy/api/signed-urls.ts';
import { purgeTask } from '../proxy/api/task-ends.ts';
import { follow } from '../proxy/resume/follow.ts';
import { AnswerIds } from '../proxy/run/answer-ids.ts';
import type { Relay } from '../proxy/run/context/run-context.ts';
import { RunRegistry } from '../proxy/run/run-registry.ts';
import { AgreedTerms } from '../proxy/tasks/agreed-terms.ts';
import { CallLedger } from '../proxy/tasks/call-ledger.ts';
import { EndedTasks } from '../proxy/tasks/ended-tasks.ts';
import { TaskDivergences } from '../proxy/tasks/task-divergence.ts';
import { TaskRecords } from '../proxy/tasks/task-records.ts';
import { TaskStates } from '../proxy/tasks/task-states.ts';
import type { TaskRules } from '../proxy/tasks/task-steps.ts';
import { TaskUsage } from '../proxy/tasks/task-usage.ts';
import { labelsOf } from '../proxy/upstream/target-health.ts';
import { Fleet } from '../status/fleet.ts';
import { replicaStatus } from '../status/replica-status.ts';
import { RunBoard } from '../status/run-board.ts';
import { StatusReport } from '../status/status-report.ts';
import { type AdminContext, createAdminServer } from './admin.ts';
import { ApiPort } from './api-port.ts';
import { Generation, type GenerationParts, type ReplicaParts } from './generation.ts';
import { openAdminPort, openApiPort } from './ports.ts';
import { readinessOf } from './readiness.ts';

/** How long the handover of runs may take after the drain, and then how long cut-off runs may take to end. */
const CUT_OFF_MS = 2000;

export interface ServerDependencies extends Omit<GenerationParts, 'configuration'> {
  readonly relay: Relay;
  readonly follow?: Follow;
  readonly store: Store;
  readonly secret: string;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Handles `POST /reload`, which doesn't exist without it. */
  readonly reload?: AdminContext['reload'];
  /** Present if the process is one of several that share the ports. */
  readonly worker?: WorkerPlace;
  readonly time?: Time;
  readonly random?: () => number;
}

/** The place of one of several processes that share the ports. */
export interface WorkerPlace {
  /** From 1. */
  readonly number: number;
  /** Path of the socket that replaces the admin port. */
  readonly admin_socket: string;
}

/** A replica: the API and the admin port. */
export interface Server {
  /** Resolves with the URLs once both ports are open. Rejects with a ListenError. */
  listen(): Promise<{ readonly api: string; readonly admin: string }>;
  /**
   * Serves new requests under this configuration. Active requests and their runs aren't affected. Settings that {@link
   * untilRestart} names must be unchanged. `ended` resolves once nothing is active under the previous configuration.
   * Rejects with `shutting_down` during the drain.
   */
  replace(parts: GenerationParts): Promise<{ readonly ended: Promise<void> }>;
  /**
   * Stops being ready, answers new requests with 503 after `drain_delay_ms`, and resolves once active ones have ended
   * or `drain_ms` is over. `isLeaving`: accepts no more connections, which go to other processes on the same port.
   */
  drain(isLeaving?: boolean): Promise<void>;
  /**
   * Hands over the remaining runs, cuts off everything else and closes both ports. The caller closes the store and
   * transports.
   */
  close(): Promise<void>;
}

export function createServer(configuration: Configuration, dependencies: ServerDependencies): Server {
  const { log, store, secret, transport, webhooks = [], observers: ofRuns = [], worker } = dependencies;
  const { time = systemTime, random = Math.random } = dependencies;
  const metrics = dependencies.metrics ?? new Metrics();
  const { memory_bytes = defaultMemoryBytes(workerCount(configuration)) } = configuration.limits;
  const memory = new MemoryBudget(memory_bytes, () => metrics.memoryRefusals.inc());
  metrics.memory = memory;
  const registry = new RunRegistry(configuration.limits);
  const genAi = configuration.metrics.gen_ai
    ? new GenAiMetrics(metrics.families, configuration, time)
    : undefined;
  const { checkpoint, listen } = configuration;
  const { content } = configuration.status_page;
  const board = new RunBoard({ time, content, targets: targetsOf(configuration) });
  let isWatched = false;
  let draining = false;
  let closing = false;
  const storeRequired = checkpoint.on_unreachable === 'fail';
  metrics.ready = () => !draining && (metrics.storeWorks || !storeRequired);
  /** Aborts once new requests are no longer accepted. */
  const refusing = new AbortController();

  const stored = { configuration, store, log, time, random, metrics };
  const states = new TaskStates(stored);
  const terms = new AgreedTerms(stored);
  const tasks = new TaskRecords(stored, [states, terms]);
  const taskRules: TaskRules = { states, terms, usage: new TaskUsage(stored, tasks) };
  const endedTasks = new EndedTasks({
    context: stored,
    states,
    replicas: replicasOf(secret),
    forget: (task) => purgeTask(task, current.context),
  });
  const replica: ReplicaParts = {
    ...{ store, log, time, random, metrics, secret, registry, memory, tasks, taskRules, endedTasks },
    relay: dependencies.relay,
    follow: dependencies.follow ?? follow,
    urls: new SignedUrls(secret),
    scheduler: new CheckpointScheduler({ interval_ms: checkpoint.interval_ms, time }),
    pauses: new PauseWatch(time, checkpoint.lease_ms / BEATS_PER_LEASE),
    divergences: new TaskDivergences(stored, tasks),
    ledger: new CallLedger(store.notes, time, checkpoint.ttl_s * 1000),
    answerIds: new AnswerIds(stored),
    refusing: refusing.signal,
    observers: [board, ...(genAi ? [genAi] : [])],
    draining: () => draining,
    closing: () => closing,
  };
  let current = new Generation({ configuration, transport, webhooks, observers: ofRuns }, replica);
  /** The current generation, and earlier ones with active requests or runs. */
  const living = new Set([current]);
  const targets = () => current.context.healths.states(time.now());
  metrics.targets = targets;
  beginMetrics(metrics, configuration, store);

  const port = new ApiPort(configuration.limits, (request, response) =>
    current.api.routing(request, response),
  );
  const state = {
    draining: () => draining,
    active: () => sumOf(living, ({ context }) => context.work.count),
  };
  const started_at_ms = Math.round(time.wall() - process.uptime() * 1000);
  /** Set once the API listens. */
  let apiUrl = '';
  const fleet = new Fleet({
    notes: store.notes,
    owner: replicasOf(secret),
    isShared: store.name !== 'memory',
    interval_ms: checkpoint.lease_ms,
    time,
    name: () => {
      const { replica_name = `${hostname()}${/:\d+$/.exec(apiUrl)?.[0] ?? ''}` } =
        current.configuration.status_page;
      return worker ? `${replica_name}/${worker.number}` : replica_name;
    },
    release: VERSION,
    started_at_ms,
    sign: () => ({ status: draining ? 'draining' : 'serving', runs: board.counts.live }),
  });
  const report = new StatusReport({
    ...state,
    board,
    fleet,
    links: () => statusLinks(current.configuration.status_page),
    content,
    started_at_ms,
    api: () => ({
      url: apiUrl,
      try: tryCommand(apiUrl, current.configuration),
      resume: resumeCommand(apiUrl, current.configuration),
    }),
    store,
    metrics,
    time,
    targets,
  });
  const admin = createAdminServer({
    exposition: (accept) => metrics.exposition(accept),
    readiness() {
      isWatched = true;
      return readinessOf({ store, storeRequired, draining });
    },
    hosts: () => current.configuration.status_page.hosts,
    status: replicaStatus({
      ...{ board, report, time },
      brief: () => ({
        status: draining ? 'draining' : 'serving',
        active_requests: state.active(),
        store: store.name,
      }),
    }),
    ...(dependencies.reload && { reload: dependencies.reload }),
  });

  /** Resolves once nothing in the generation is active. */
  async function retire(generation: Generation): Promise<void> {
    const { salvage, telling, api } = generation;
    await Promise.all([generation.ended(), salvage.close()]);
    const isShared = Array.from(living).some((other) => other !== generation && other.telling === telling);
    if (telling && !isShared) await telling.delivery.ended();
    living.delete(generation);
    await api.close();
  }

  return {
    async listen() {
      await current.api.ready();
      apiUrl = await openApiPort(listen, (address) => port.listen(address));
      const urls = {
        api: apiUrl,
        admin: worker
          ? await admin.listen({ path: worker.admin_socket, exclusive: true })
          : await openAdminPort(admin, listen),
      };
      current.salvage.start();
      endedTasks.start();
      fleet.start();
      return urls;
    },

    async replace(parts) {
      const before = current;
      const next = new Generation(parts, replica, before);
      await next.api.ready();
      if (draining) {
        await next.api.close();
        throw apiError('shutting_down');
      }
      current = next;
      living.add(next);
      const { limits } = next.configuration;
      port.limit(limits);
      registry.runs_per_owner = limits.runs_per_owner;
      memory.limit_bytes = limits.memory_bytes ?? defaultMemoryBytes(workerCount(next.configuration));
      genAi?.configure(next.configuration);
      board.targets.configure(targetsOf(next.configuration));
      beginMetrics(metrics, next.configuration, store);
      next.salvage.start();
      return { ended: retire(before) };
    },

    async drain(isLeaving = false) {
      draining = true;
      if (isLeaving) port.stopListening();
      void fleet.beat();
      const { drain_ms, drain_delay_ms } = current.configuration.limits;
      // Load balancers keep sending requests until they notice that this replica isn't ready.
      const delay_ms = isWatched ? Math.min(drain_delay_ms, drain_ms) : 0;
      if (delay_ms > 0) await sleep(time, delay_ms, refusing.signal);
      refusing.abort();
      for (const { telling } of living) telling?.delivery.hurry();
      const left_ms = drain_ms - delay_ms;
      const end_ms = time.now() + left_ms;
      await Promise.all(
        Array.from(living).flatMap(({ context, requests }) => [
          context.work.settled(time, left_ms),
          requests.settled(time, left_ms),
        ]),
      );
      // Includes the events of the last runs.
      const rest_ms = Math.max(0, end_ms - time.now());
      await Promise.all(Array.from(living, ({ telling }) => telling?.delivery.settled(rest_ms)));
    },

    async close() {
      draining = true;
      closing = true;
      refusing.abort();
      const active_requests = state.active();
      if (active_requests > 0) log.warn({ active_requests }, 'requests cut off');
      const last = [...living];
      // Done before connections close, so that a client that moves to another replica finds its run free.
      await Promise.all([
        registry.handOver(time, CUT_OFF_MS),
        endedTasks.close(),
        fleet.close(),
        ...last.map(({ salvage }) => salvage.close()),
      ]);
      port.closeAllConnections();
      await Promise.all(last.map(({ context }) => context.work.settled(time, CUT_OFF_MS)));
      await Promise.all([
        port.close(),
        admin.close(),
        ...last.flatMap(({ api, telling }) => [api.close(), telling?.delivery.close()]),
      ]);
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

const sumOf = <Item>(items: Iterable<Item>, count: (item: Item) => number): number => {
  let sum = 0;
  for (const item of items) sum += count(item);
  return sum;
};

/** Applies the configuration to the metrics. The counters of its upstreams and targets exist from now on, at 0. */
function beginMetrics(
  metrics: Metrics,
  { metrics: { exemplars }, upstreams }: Configuration,
  store: Store,
): void {
  metrics.exemplars = exemplars;
  metrics.begin({ upstream: Object.keys(upstreams), store: [store.name] });
}
