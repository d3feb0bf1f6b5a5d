import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import type { ReloadCause, ReloadReport } from './reload-report.ts';

/** One series of a metric. */
export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
}

/** What a service has done by its end. */
export interface Totals {
  /** Runs that ended, by `outcome`. */
  readonly runs: readonly Sample[];
  /** The buckets of the silences during recoveries. */
  readonly gaps: readonly Sample[];
}

export interface ServiceOptions {
  /** The one to start with. */
  readonly configuration: Configuration;
  /** Reads the configuration again. Throws a ConfigurationError. */
  load(): LoadedConfiguration;
  readonly log: Logger;
}

/** What `serve` runs: a replica, or several in processes of their own. */
export interface Service {
  /** The one in force. */
  readonly configuration: Configuration;
  /** Rejects when it cannot serve any more, after {@link listen} has resolved. */
  readonly failure?: Promise<never>;
  /** Resolves with the URLs once both ports are open. */
  listen(): Promise<{ readonly api: string; readonly admin: string }>;
  /** Rejects with `shutting_down` once it was stopped. */
  reload(cause: ReloadCause): Promise<ReloadReport>;
  /** Drains, and resolves when everything has ended. */
  stop(): Promise<Totals>;
  /** The process ends at once. */
  abort(): void;
}

/** Rejects with a ConfigurationError, StoreConfigurationError or ListenError. */
export type OpenService = (options: ServiceOptions) => Promise<Service>;
