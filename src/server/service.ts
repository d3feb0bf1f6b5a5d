import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import type { ReloadCause, ReloadReport } from './reload-report.ts';

/** One series of a metric. */
export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
}

/** What a service has done by the time it ends. */
export interface Totals {
  /** Ended runs, by `outcome`. */
  readonly runs: readonly Sample[];
  /** Histogram buckets of the silences during recoveries. */
  readonly gaps: readonly Sample[];
}

export interface ServiceOptions {
  /** The initial configuration. */
  readonly configuration: Configuration;
  /** Reads the configuration again. Throws a ConfigurationError. */
  load(): LoadedConfiguration;
  readonly log: Logger;
}

/** What `serve` runs: one replica, or several in separate processes. */
export interface Service {
  /** The current configuration. */
  readonly configuration: Configuration;
  /** Rejects if the service can no longer serve after {@link listen} has resolved. */
  readonly failure?: Promise<never>;
  /**
   * Resolves with the URLs once both ports are open. Rejects with a ListenError, or with the error of a worker that
   * couldn't start.
   */
  listen(): Promise<{ readonly api: string; readonly admin: string }>;
  /** Rejects with `shutting_down` after {@link stop}. */
  reload(cause: ReloadCause): Promise<ReloadReport>;
  /** Drains, and resolves once everything has ended. */
  stop(): Promise<Totals>;
  /** Called right before the process exits. */
  abort(): void;
}

/** Opens a service that doesn't listen yet. Rejects with a ConfigurationError or StoreConfigurationError. */
export type OpenService = (options: ServiceOptions) => Promise<Service>;
