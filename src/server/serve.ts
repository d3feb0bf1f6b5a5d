import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import type { DestinationStream, Logger } from 'pino';
import { loadOrCreateSecret } from '../checkpoint/secret-file.ts';
import type { Configuration } from '../config/configuration.ts';
import { type ConfigurationSources, configurationFile, loadConfiguration } from '../config/load.ts';
import { createLogger } from '../lib/log.ts';
import { systemTime } from '../lib/time.ts';
import { Metrics } from '../metrics/metrics.ts';
import { relay } from '../proxy/run/relay.ts';
import type { UpstreamKeysOptions } from '../proxy/upstream/upstream-keys.ts';
import { tracingSettings } from '../tracing/settings.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { FileWatch } from './file-watch.ts';
import { openStore } from './open-store.ts';
import { type ReloadCause, Reloads } from './reload.ts';
import { Resources } from './resources.ts';
import { createServer } from './server.ts';
import { fileStoreDirectory } from './store-directory.ts';
import { boundYoungGeneration } from './young-generation.ts';

const SECRET_BYTES = 32;
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

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
 * Runs a replica until the first SIGTERM or SIGINT, drains it, and resolves. A second one exits at once. SIGHUP reloads the
 * configuration, and so does a change of its file.
 * Rejects with a ConfigurationError, StoreConfigurationError or ListenError when it cannot start.
 */
export async function serve(sources: ConfigurationSources, view: OperatorView): Promise<void> {
  const file = configurationFile(sources);
  const watch = file === undefined ? undefined : new FileWatch(file);
  const { configuration, warnings } = loadConfiguration(sources);
  const log = createLogger(configuration.log.level, view.log(configuration.log));
  for (const warning of warnings) log.warn(warning);

  const metrics = new Metrics();
  const keys: UpstreamKeysOptions = {
    time: systemTime,
    onRenewal: (upstream, fault) => {
      metrics.keyRenewals.inc({ upstream, outcome: fault === undefined ? 'renewed' : 'failed' });
      if (fault !== undefined) log.error({ upstream, fault }, 'the key of an upstream could not be renewed');
    },
  };
  const resources = await Resources.open(configuration, keys);
  const store = await openStore(configuration.checkpoint.store, {
    ...configuration.checkpoint,
    secret: configuration.secret,
    time: systemTime,
    onError: (error) => log.error({ err: error }, 'store upkeep failed'),
    onOutage: (error) => {
      metrics.storeWorks = false;
      log.warn({ err: error }, 'the store fails: runs continue without checkpoints');
    },
    onRecovery: (outage_ms) => {
      metrics.storeWorks = true;
      log.info({ outage_ms: Math.round(outage_ms) }, 'the store works again');
    },
    onDoubt: (doubt) => log.warn(`checkpoint.store: Redis may lose runs: ${doubt}`),
  });
  const secret = await resolveSecret(configuration);
  const tracing = await startTracing(configuration, log);
  const observersOf = (served: Configuration) => (tracing ? [tracing.observerOf(served)] : []);
  const { transport, webhooks } = resources;
  const server = createServer(resources.current, {
    ...{ relay, store, transport, secret, log, metrics, webhooks },
    observers: observersOf(configuration),
    reload: () => reloads.request('request'),
  });
  const reloads = new Reloads(server, resources, { sources, keys, metrics, log, observersOf });
  // What goes wrong is in the log.
  const reload = (cause: ReloadCause) => void reloads.request(cause).catch(() => {});

  const stop = firstSignal(() => reload('signal'));
  const urls = await server.listen();
  watch?.start({
    onChange: () => reload('file'),
    onFault: (error) =>
      log.warn({ file, err: error }, 'the configuration file is not watched: send SIGHUP after changes'),
  });
  boundYoungGeneration();
  view.listening(urls, configuration);
  log.info(urls, 'listening');

  const signal = await stop;
  watch?.close();
  await reloads.stop();
  log.info({ signal, drain_ms: reloads.configuration.limits.drain_ms }, 'draining');
  await server.drain();
  await server.close();
  await reloads.close();
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

/**
 * Resolves with the first signal to stop; the second one ends the process. SIGHUP is one only where it says that the terminal
 * was closed which the process was started on.
 */
function firstSignal(onReload: () => void): Promise<NodeJS.Signals> {
  const hadTerminal = hasTerminal();
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
    process.on('SIGHUP', (signal) => {
      if (hadTerminal && !hasTerminal()) onSignal(signal);
      else onReload();
    });
  });
}

/** Whether the process has a terminal that controls it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Loads the OpenTelemetry SDK only where traces are asked for. */
async function startTracing(configuration: Configuration, log: Logger): Promise<Tracing | undefined> {
  const { settings, warnings } = tracingSettings(configuration.tracing, process.env);
  for (const warning of warnings) log.warn(warning);
  if (!settings) return undefined;
  const { createTracing } = await import('../tracing/tracing.ts');
  const { sampling, url } = settings;
  log.info({ receiver: new URL(url).host, sampling }, 'traces are exported');
  return createTracing(settings, log, systemTime);
}
