import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import { ConfigurationError } from '../config/problem.ts';
import { checkReferences } from '../config/references.ts';
import { untilRestart } from '../config/restart-settings.ts';
import { apiError } from '../lib/errors.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { RunObserver } from '../proxy/run/context/run-observer.ts';
import type { UpstreamKeysOptions } from '../proxy/upstream/upstream-keys.ts';
import {
  configurationApplied,
  type ReloadCause,
  type ReloadReport,
  reportedReload,
} from './reload-report.ts';
import { Resources } from './resources.ts';
import type { Server } from './server.ts';

interface ReloadOptions {
  /** Reads the configuration again. Throws a {@link ConfigurationError}. */
  load(): LoadedConfiguration;
  readonly keys: UpstreamKeysOptions;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Observers of runs that depend on the configuration. */
  observersOf(configuration: Configuration): readonly RunObserver[];
}

/** Reloads the configuration while the process serves. Reloads run one at a time and apply completely or not at all. */
export class Reloads {
  readonly #options: ReloadOptions;
  readonly #server: Pick<Server, 'replace'>;
  #current: Resources;
  /** Resources in use: the current ones, and those that requests or runs of earlier configurations still need. */
  readonly #open = new Set<Resources>();
  #running: Promise<unknown> = Promise.resolve();
  /** The next reload, not started yet, which serves all requests made in the meantime. */
  #next: Promise<ReloadReport> | undefined;
  #isStopped = false;

  /** `first`: the resources that the server started with. */
  constructor(server: Pick<Server, 'replace'>, first: Resources, options: ReloadOptions) {
    this.#server = server;
    this.#options = options;
    this.#current = first;
    this.#open.add(first);
    configurationApplied(options.metrics);
  }

  /** The current configuration, without renewed keys. */
  get configuration(): Configuration {
    return this.#current.configuration;
  }

  /** Resolves with the reload's report. Rejects with `shutting_down` after {@link stop}. */
  request(cause: ReloadCause): Promise<ReloadReport> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#reload(cause);
    });
    this.#running = this.#next.catch(() => {});
    return this.#next;
  }

  /** Prevents further reloads. Resolves once none is in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Closes the resources of all configurations. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#open, (resources) => this.#close(resources)));
  }

  async #reload(cause: ReloadCause): Promise<ReloadReport> {
    if (this.#isStopped) throw apiError('shutting_down');
    return reportedReload(cause, this.#options, () => this.#load(cause));
  }

  async #load(cause: ReloadCause): Promise<Exclude<ReloadReport, { outcome: 'refused' }>> {
    const { load, keys, log, observersOf } = this.#options;
    const { configuration: wanted, warnings } = load();
    const { configuration, pending } = untilRestart(this.#current.configuration, wanted);
    // A new setting may be incompatible with one that only a restart changes.
    const faults = checkReferences(configuration);
    if (faults.length > 0) throw new ConfigurationError(faults);
    const before = this.#current;
    const next = await Resources.open(configuration, keys, before);
    const changed = before.changedTo(next);
    const said = { cause, changed };
    for (const warning of warnings) log.warn(warning);
    for (const setting of pending) log.warn({ setting }, `restart to apply ${setting}`);
    const report = { changed, restart_required: pending, warnings };
    if (changed.length === 0) {
      await next.close();
      log.info(said, 'configuration reloaded: nothing has changed');
      return { outcome: 'unchanged', ...report };
    }
    await this.#replace(before, next, observersOf(configuration));
    log.level = configuration.log.level;
    log.info(said, 'configuration reloaded');
    return { outcome: 'applied', ...report };
  }

  async #replace(before: Resources, next: Resources, observers: readonly RunObserver[]): Promise<void> {
    this.#open.add(next);
    const { current: configuration, transport, webhooks } = next;
    try {
      const { ended } = await this.#server.replace({ configuration, transport, webhooks, observers });
      this.#current = next;
      ended
        .then(() => this.#close(before))
        .catch((error: unknown) => {
          this.#options.log.error(
            { err: error },
            'resources of an earlier configuration could not be closed',
          );
        });
    } catch (error) {
      await this.#close(next);
      throw error;
    }
  }

  async #close(resources: Resources): Promise<void> {
    if (this.#open.delete(resources)) await resources.close();
  }
}
