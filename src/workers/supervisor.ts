import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { type Configuration, workerCount } from '../config/configuration.ts';
import { ConfigurationError } from '../config/problem.ts';
import { untilRestart } from '../config/restart-settings.ts';
import { apiError } from '../lib/errors.ts';
import { expositionOf } from '../metrics/families.ts';
import { Metrics } from '../metrics/metrics.ts';
import { createAdminServer } from '../server/admin.ts';
import { ApiPort } from '../server/api-port.ts';
import { openAdminPort, openApiPort } from '../server/ports.ts';
import { DRAINING, type Readiness } from '../server/readiness.ts';
import {
  configurationApplied,
  type ReloadCause,
  type ReloadReport,
  type ReplacedWorker,
  reportedReload,
} from '../server/reload-report.ts';
import type { OpenService, Service, ServiceOptions, Totals } from '../server/service.ts';
import { readDocument } from './admin-socket.ts';
import { MergedStatus } from './merged-status.ts';
import { partOf, SharedMetrics } from './shared-metrics.ts';
import { WorkerPool } from './worker-pool.ts';
import type { WorkerProcess } from './worker-process.ts';

/** A worker whose event loop is blocked for longer is left out of a scrape. */
const METRICS_MAX_MS = 2000;
/** Long, because commands may provide keys. */
const RELOAD_MAX_MS = 60_000;
/** How often workers' metrics are read, so that little is lost if a worker is killed. */
const METRICS_EVERY_MS = 5000;

const NONE_ANSWERS: Readiness = { status: 'not ready', failing: { workers: 'none of them answers' } };

/** Runs several replicas that share the ports, each in its own process. */
export const openSupervisor: OpenService = async (options) => new Supervisor(options);

class Supervisor implements Service {
  readonly failure: Promise<never>;
  readonly #log: Logger;
  readonly #load: ServiceOptions['load'];
  readonly #metrics = new Metrics();
  readonly #shared = new SharedMetrics(() => partOf(this.#metrics));
  readonly #pool: WorkerPool;
  readonly #status: MergedStatus;
  readonly #admin: FastifyInstance;
  #configuration: Configuration;
  /** The API port. */
  #port = { asked: 0, opened: 0 };
  #reloading: Promise<unknown> = Promise.resolve();
  #hearing: Promise<void> = Promise.resolve();
  /** The next reading of metrics, not started yet, which serves all scrapes requested in the meantime. */
  #nextHearing: Promise<void> | undefined;
  #hearingTimer: NodeJS.Timeout | undefined;
  #isDraining = false;

  constructor({ configuration, load, log }: ServiceOptions) {
    this.#configuration = configuration;
    this.#load = load;
    this.#log = log;
    this.#metrics.observeProcess();
    // Only workers serve.
    this.#metrics.ready = () => false;
    this.#metrics.begin({});
    configurationApplied(this.#metrics);
    this.#pool = new WorkerPool(workerCount(configuration), log, {
      onStart: (worker) => this.#catchUp(worker),
      onChange: () => this.#status.feed.restart(),
      onEnd: (worker) => {
        if (worker.last) this.#shared.heard(worker.id, worker.last);
        this.#shared.departed(worker.id);
      },
    });
    this.failure = this.#pool.failure;
    this.#status = new MergedStatus({
      workers: () => this.#pool.serving,
      draining: () => this.#isDraining,
      started_at_ms: Math.round(Date.now() - process.uptime() * 1000),
    });
    this.#admin = createAdminServer({
      exposition: async (accept) => expositionOf(await this.#registry(), accept),
      readiness: () => this.#readiness(),
      hosts: () => this.#configuration.status_page.hosts,
      status: this.#status,
      reload: () => this.reload('request'),
    });
  }

  get configuration(): Configuration {
    return this.#configuration;
  }

  async listen() {
    const { listen } = this.#configuration;
    const admin = await openAdminPort(this.#admin, listen);
    const { api, port } = await this.#freePort();
    this.#port = { asked: listen.port, opened: port };
    this.#configuration = this.#withPort(this.#configuration);
    await this.#pool.start(() => this.#configuration);
    this.#hearingTimer = setInterval(() => void this.#hear(), METRICS_EVERY_MS).unref();
    return { api, admin };
  }

  reload(cause: ReloadCause): Promise<ReloadReport> {
    const reloaded = this.#reloading.then(() => this.#reload(cause));
    this.#reloading = reloaded.catch(() => {});
    return reloaded;
  }

  async stop(): Promise<Totals> {
    this.#isDraining = true;
    await this.#reloading;
    await this.#pool.stop(this.#configuration.limits.drain_ms);
    clearInterval(this.#hearingTimer);
    await this.#admin.close();
    const registry = await this.#shared.registry();
    const samplesOf = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values ?? [];
    return {
      runs: await samplesOf('holdfast_runs_total'),
      gaps: await samplesOf('holdfast_recovery_gap_seconds'),
    };
  }

  abort(): void {
    this.#pool.kill();
  }

  /**
   * Replaces a requested port 0 with the port that was opened at the start, so that all workers and their successors
   * share it.
   */
  #withPort(configuration: Configuration): Configuration {
    const { listen } = configuration;
    const { asked, opened } = this.#port;
    return listen.port === asked ? { ...configuration, listen: { ...listen, port: opened } } : configuration;
  }

  /** Resolves port 0 once for all workers. A port that can't be opened fails before any worker starts. */
  async #freePort(): Promise<{ readonly api: string; readonly port: number }> {
    const { listen, limits } = this.#configuration;
    const probe = new ApiPort(limits, () => {});
    const api = await openApiPort(listen, (address) => probe.listen(address));
    await probe.close();
    return { api, port: Number(new URL(api).port) };
  }

  async #readiness(): Promise<Readiness> {
    if (this.#isDraining) return DRAINING;
    const asked = this.#pool.serving.map(async ({ admin_socket }) => {
      const { document } = await readDocument(admin_socket, '/readyz');
      return document as Readiness;
    });
    // A stuck worker doesn't make the others unready.
    const ready = asked.map(async (answer) => {
      const readiness = await answer;
      if (readiness.status !== 'ready') throw new Error(readiness.status);
      return readiness;
    });
    return Promise.any(ready).catch(async () => {
      const answers = await Promise.allSettled(asked);
      const known = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      return known.find(({ status }) => status === 'degraded') ?? known[0] ?? NONE_ANSWERS;
    });
  }

  async #registry() {
    await this.#hear();
    return this.#shared.registry();
  }

  /** Reads all workers' metrics, one round after another, so that an older answer can't arrive after a newer one. */
  #hear(): Promise<void> {
    this.#nextHearing ??= this.#hearing.then(async () => {
      this.#nextHearing = undefined;
      await Promise.all(
        this.#pool.serving.map(async (worker) => {
          const part = await worker.ask('metrics', {}, METRICS_MAX_MS).catch(() => undefined);
          // Metrics recorded after the worker's end would never be removed.
          if (part && worker.isAlive) this.#shared.heard(worker.id, part);
        }),
      );
    });
    this.#hearing = this.#nextHearing;
    return this.#nextHearing;
  }

  async #reload(cause: ReloadCause): Promise<ReloadReport> {
    if (this.#isDraining) throw apiError('shutting_down');
    return reportedReload(cause, { metrics: this.#metrics, log: this.#log }, () => this.#apply(cause));
  }

  /**
   * The first worker that answers decides for all: if it refuses, no other is asked. The others can then only fail
   * because a file has changed since or a key command failed. Such workers are replaced.
   */
  async #apply(cause: ReloadCause): Promise<ReloadReport> {
    const { configuration: wanted, warnings } = this.#load();
    const loaded = { configuration: this.#withPort(wanted), warnings };
    const { configuration } = untilRestart(this.#configuration, loaded.configuration);
    const replaced: ReplacedWorker[] = [];
    const [...others] = this.#pool.serving;
    for (let first = others.shift(); first; first = others.shift()) {
      const worker = first;
      const report = await worker.ask('reload', { cause, loaded }, RELOAD_MAX_MS).catch((error: Error) => {
        replaced.push(this.#replace(worker, error.message));
      });
      if (!report) continue;
      if (report.outcome === 'refused') return report;
      this.#configuration = configuration;
      this.#log.level = configuration.log.level;
      worker.configuration = configuration;
      for (const one of await Promise.all(others.map((other) => this.#bring(other, cause))))
        if (one) replaced.push(one);
      return replaced.length > 0 ? { ...report, replaced } : report;
    }
    throw apiError('no_worker');
  }

  /** Brings a worker to the current configuration, or replaces it. */
  async #bring(worker: WorkerProcess, cause: ReloadCause): Promise<ReplacedWorker | undefined> {
    const configuration = this.#configuration;
    const loaded = { configuration, warnings: [] };
    try {
      const report = await worker.ask('reload', { cause, loaded }, RELOAD_MAX_MS);
      if (report.outcome === 'refused') throw new ConfigurationError(report.problems);
      worker.configuration = configuration;
      return undefined;
    } catch (error) {
      return this.#replace(worker, (error as Error).message);
    }
  }

  /** The successor starts with the current configuration. */
  #replace(worker: WorkerProcess, reason: string): ReplacedWorker {
    const { number } = worker;
    this.#log.error({ worker: number, reason }, 'a worker has not applied the configuration: it is replaced');
    worker.stop({ isLeaving: true, drain_ms: this.#configuration.limits.drain_ms });
    return { worker: number, reason };
  }

  /** A reload may have happened while the worker started. */
  #catchUp(worker: WorkerProcess): void {
    this.#reloading = this.#reloading.then(async () => {
      if (worker.isListening && worker.configuration !== this.#configuration)
        await this.#bring(worker, 'signal');
    });
  }
}
