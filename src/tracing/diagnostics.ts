import { type DiagLogger, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Time } from '../lib/time.ts';

/** Some warnings would come with every batch. */
const QUIET_MS = 60_000;

/**
 * Has the log told what OpenTelemetry has to say, which would go nowhere otherwise: each of its warnings once a minute
 * at most. Its errors are batches that were lost, of which the log is told once per outage elsewhere.
 */
export function routeDiagnostics(log: Logger, time: Time): void {
  const told_ms = new Map<string, number>();
  const quiet = () => {};
  const logger: DiagLogger = {
    error: (words) => log.debug({ words }, 'OpenTelemetry'),
    warn(words) {
      const warning = words.replaceAll(/\d+/g, 'N');
      const now_ms = time.now();
      const isNews = now_ms - (told_ms.get(warning) ?? Number.NEGATIVE_INFINITY) >= QUIET_MS;
      if (isNews) told_ms.set(warning, now_ms);
      log[isNews ? 'warn' : 'debug']({ words }, 'OpenTelemetry');
    },
    info: quiet,
    debug: quiet,
    verbose: quiet,
  };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}
