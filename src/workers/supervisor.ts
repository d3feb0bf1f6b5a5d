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

/** A worker whose event loop stands still for longer is left out of a scrape. */
const METRICS_MAX_MS = 2000;
/** Keys may come from commands. */
const RELOAD_MAX_MS = 60_000;
/** What a worker has counted is heard so often, so that little of it is lost when the worker is killed. */
const METRICS_EVERY_MS = 5000;

const NONE_ANSWERS: Readiness = { status: 'not ready', failing: { workers: 'none of them answers' } };

/** Several replicas that share the ports, each in a process of its own. */
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
  /** Of the API. */
  #port = { asked: 0, opened: 0 };
  #reloading: Promise<unknown> = Promise.resolve();
  #hearing: Promise<void> = Promise.resolve();
  /** Has not begun yet, so that it serves all scrapes that ask meanwhile. */
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

  /** All workers, and those that will take their places, have the port that 0 has stood for at the start. */
  #withPort(configuration: Configuration): Configuration {
    const { listen } = configuration;
    const { asked, opened } = this.#port;
    return listen.port === asked ? { ...configuration, listen: { ...listen, port: opened } } : configuration;
  }

  /** Which port 0 stands for is decided once. A port that cannot be opened is an error before there are any workers. */
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
    // One that is stuck does not keep the others from being asked for work.
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

  /** Hears all workers, one time after the other: else an earlier answer could come after a later one. */
  #hear(): Promise<void> {
    this.#nextHearing ??= this.#hearing.then(async () => {
      this.#nextHearing = undefined;
      await Promise.all(
        this.#pool.serving.map(async (worker) => {
          const part = await worker.ask('metrics', {}, METRICS_MAX_MS).catch(() => undefined);
          // After its end nothing of it would ever be taken away.
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
   * The first worker that answers decides for all: where it refuses, no other is asked. What it has applied the others could
   * only refuse for a file that has changed since, or a command that fails now and then: those are replaced.
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

  /** Makes the configuration of a worker that in force, or replaces the worker. */
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

  /** Its successor begins with the configuration in force. */
  #replace(worker: WorkerProcess, reason: string): ReplacedWorker {
    const { number } = worker;
    this.#log.error({ worker: number, reason }, 'a worker has not applied the configuration: it is replaced');
    worker.stop({ isLeaving: true, drain_ms: this.#configuration.limits.drain_ms });
    return { worker: number, reason };
  }

  /** There may have been a reload while it started. */
  #catchUp(worker: WorkerProcess): void {
    this.#reloading = this.#reloading.then(async () => {
      if (worker.isListening && worker.configuration !== this.#configuration)
        await this.#bring(worker, 'signal');
    });
  }
}
