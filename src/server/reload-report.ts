import type { Logger } from 'pino';
import { ConfigurationError, type Problem } from '../config/problem.ts';
import { ApiError } from '../lib/errors.ts';
import type { Metrics } from '../metrics/metrics.ts';

export type ReloadCause = 'signal' | 'file' | 'request';

/** One of the processes that share the ports. */
export interface ReplacedWorker {
  readonly worker: number;
  readonly reason: string;
}

/** What came of a reload. Settings by name; never a value. */
export type ReloadReport =
  | {
      readonly outcome: 'applied' | 'unchanged';
      readonly changed: readonly string[];
      /** Differ from what is in force, and will be applied by a restart. */
      readonly restart_required: readonly string[];
      readonly warnings: readonly string[];
      /** Could not apply what the others have: another process takes the place of each of these. */
      readonly replaced?: readonly ReplacedWorker[];
    }
  | { readonly outcome: 'refused'; readonly problems: readonly Problem[] };

/** Reloads, and says in the metrics and the log what came of it. A ConfigurationError becomes a report; all others are thrown. */
export async function reportedReload(
  cause: ReloadCause,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Pick<Logger, 'error'> },
  reload: () => Promise<ReloadReport>,
): Promise<ReloadReport> {
  try {
    const report = await reload();
    metrics.configReloads.inc({ outcome: report.outcome });
    if (report.outcome === 'refused') metrics.configLastReloadSuccessful.set(0);
    else configurationApplied(metrics);
    return report;
  } catch (error) {
    // The configuration isn't why.
    if (error instanceof ApiError && error.code === 'shutting_down') throw error;
    metrics.configReloads.inc({ outcome: 'refused' });
    metrics.configLastReloadSuccessful.set(0);
    if (!(error instanceof ConfigurationError)) {
      log.error({ cause, err: error }, 'configuration not reloaded: keeping the last one');
      throw error;
    }
    const { problems } = error;
    log.error({ cause, problems }, 'configuration not reloaded: keeping the last one');
    return { outcome: 'refused', problems };
  }
}

/** A configuration is in force from now on. */
export function configurationApplied(metrics: Metrics): void {
  metrics.configLastReloadSuccessful.set(1);
  metrics.configLastReloadSuccess.setToCurrentTime();
}
