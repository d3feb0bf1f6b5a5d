import type { Logger } from 'pino';
import { ConfigurationError, type Problem } from '../config/problem.ts';
import { ApiError } from '../lib/errors.ts';
import type { Metrics } from '../metrics/metrics.ts';

export type ReloadCause = 'signal' | 'file' | 'request';

/** A worker process that is replaced, and why. */
export interface ReplacedWorker {
  readonly worker: number;
  readonly reason: string;
}

/** The result of a reload. Names settings, but never includes values. */
export type ReloadReport =
  | {
      readonly outcome: 'applied' | 'unchanged';
      readonly changed: readonly string[];
      /** Changed settings that take effect only after a restart. */
      readonly restart_required: readonly string[];
      readonly warnings: readonly string[];
      /** Workers that couldn't apply the configuration, each of which is replaced. */
      readonly replaced?: readonly ReplacedWorker[];
    }
  | { readonly outcome: 'refused'; readonly problems: readonly Problem[] };

/**
 * Reloads and records the result in metrics and log. A ConfigurationError becomes a report; other errors are rethrown.
 */
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
    // The configuration isn't the reason.
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

/** Records that a configuration has taken effect. */
export function configurationApplied(metrics: Metrics): void {
  metrics.configLastReloadSuccessful.set(1);
  metrics.configLastReloadSuccess.setToCurrentTime();
}
