import { randomBytes } from 'node:crypto';
import type { DestinationStream, Logger } from 'pino';
import { loadOrCreateSecret } from '../checkpoint/secret-file.ts';
import type { Configuration } from '../config/configuration.ts';
import { type ConfigurationSources, loadConfiguration, readConnections } from '../config/load.ts';
import { readWebhooks } from '../config/webhook-endpoints.ts';
import { createLogger } from '../lib/log.ts';
import { systemTime } from '../lib/time.ts';
import { Metrics } from '../metrics/metrics.ts';
import { relay } from '../proxy/run/relay.ts';
import { createUndiciTransport } from '../proxy/upstream/undici-transport.ts';
import { UpstreamKeys } from '../proxy/upstream/upstream-keys.ts';
import { tracingSettings } from '../tracing/settings.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { openStore } from './open-store.ts';
import { createServer } from './server.ts';
import { fileStoreDirectory } from './store-directory.ts';
import { boundYoungGeneration } from './young-generation.ts';

const SECRET_BYTES = 32;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** What the operator sees of a replica where it was started. */
export interface OperatorView {
  /** Takes the lines of the log, each a JSON object. */
  log(settings: Configuration['log']): DestinationStream;
  /** Both ports are open. */
  listening(urls: { readonly api: string; readonly admin: string }, configuration: Configuration): void;
  /** Everything has ended. */
  stopped(metrics: Metrics): Promise<void>;
}

/**
 * Runs a replica until the first SIGTERM, SIGINT or SIGHUP, drains it, and resolves. A second signal exits at once.
 * Rejects with a ConfigurationError, StoreConfigurationError or ListenError when it cannot start.
 */
export async function serve(sources: ConfigurationSources, view: OperatorView): Promise<void> {
  const { configuration, warnings } = loadConfiguration(sources);
  const log = createLogger(configuration.log.level, view.log(configuration.log));
  for (const warning of warnings) log.warn(warning);

  const connections = readConnections(configuration);
  const webhooks = readWebhooks(configuration);
  const metrics = new Metrics();
  const keys = await UpstreamKeys.open(configuration, {
    time: systemTime,
    onRenewal: (upstream, fault) => {
      metrics.keyRenewals.inc({ upstream, outcome: fault === undefined ? 'renewed' : 'failed' });
      if (fault !== undefined) log.error({ upstream, fault }, 'the key of an upstream could not be renewed');
    },
  });
  const store = await openStore(configuration.checkpoint.store, {
    ...configuration.checkpoint,
    secret: configuration.secret,
    time: systemTime,
    onError: (error) => log.error({ err: error }, 'store upkeep failed'),
    onOutage: (error) => {
      metrics.storeWorks = false;
      log.warn({ err: error }, 'the store does not work: runs continue without checkpoints');
    },
    onRecovery: (outage_ms) => {
      metrics.storeWorks = true;
      log.info({ outage_ms: Math.round(outage_ms) }, 'the store works again');
    },
    onDoubt: (doubt) => log.warn(`checkpoint.store: Redis may lose runs: ${doubt}`),
  });
  const secret = await resolveSecret(configuration);
  const transport = createUndiciTransport(connections);
  const tracing = await startTracing(configuration, log);
  const server = createServer(keys.configuration, {
    ...{ relay, store, transport, secret, log, metrics, webhooks },
    ...(tracing && { observers: [tracing.observer] }),
  });

  const stop = firstSignal();
  const urls = await server.listen();
  boundYoungGeneration();
  view.listening(urls, configuration);
  log.info(urls, 'listening');

  const signal = await stop;
  log.info({ signal, drain_ms: configuration.limits.drain_ms }, 'draining');
  await server.drain();
  await server.close();
  keys.close();
  await transport.close();
  await Promise.all([store.close(), tracing?.close()]);
  log.info('stopped');
  await view.stopped(metrics);
}

/** The configured one; else the one kept beside the file store; else one that lives as long as the memory store. */
async function resolveSecret({ secret, checkpoint }: Configuration): Promise<string> {
  if (secret !== undefined) return secret;
  const directory = fileStoreDirectory(checkpoint.store);
  return directory === undefined
    ? randomBytes(SECRET_BYTES).toString('base64url')
    : loadOrCreateSecret(directory);
}

/** Resolves with the first signal; the second one ends the process. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    for (const signal of SIGNALS) process.on(signal, onSignal);
  });
}

/** Loads the OpenTelemetry SDK only where traces are asked for. */
async function startTracing(configuration: Configuration, log: Logger): Promise<Tracing | undefined> {
  const { settings, warnings } = tracingSettings(configuration.tracing, process.env);
  for (const warning of warnings) log.warn(warning);
  if (!settings) return undefined;
  const { createTracing } = await import('../tracing/tracing.ts');
  const { sampling, url } = settings;
  log.info({ receiver: new URL(url).host, sampling }, 'traces are exported');
  return createTracing(settings, configuration, log, systemTime);
}
