import type { Logger } from 'pino';
import type { Configuration } from '../config/configuration.ts';
import type { Time } from '../lib/time.ts';
import { tracingSettings } from './settings.ts';
import type { Tracing } from './tracing.ts';

/** Loads the OpenTelemetry SDK only where traces are asked for. */
export async function startTracing(
  configuration: Configuration,
  environment: NodeJS.ProcessEnv,
  log: Logger,
  time: Time,
): Promise<Tracing | undefined> {
  const { settings, warnings } = tracingSettings(configuration.tracing, environment);
  for (const warning of warnings) log.warn(warning);
  if (!settings) return undefined;
  const { createTracing } = await import('./tracing.ts');
  const { sampling, url } = settings;
  log.info({ receiver: new URL(url).host, sampling }, 'traces are exported');
  return createTracing(settings, configuration, log, time);
}
